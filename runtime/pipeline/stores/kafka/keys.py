"""The config keys of the Kafka source and sink.

Names are those of Connect and of Kafka's clients, with the prefix `source.` or `sink.`. Three
groups are the same at both ends and made elsewhere: the connection (`connection`), the converters
(`converters`), and each converter's schema registry (`registry_keys`). Settings of librdkafka stand
behind `source.consumer.override.` and `sink.producer.override.`; `overrides` lists those taken.

A source has its topics by names or by patterns, and begins at an end or at a time. Keys and values
have a converter each, and columns that are given or inferred: the connector hands these to its
tasks (`task.kafka.schema`, `task.kafka.key.schema`). A sink has one topic, or a column that names
it.
"""

from collections.abc import Mapping
from typing import Final

from .....actors.settings import Value
from ...formats.evolution.policy import EVOLUTION_KEY
from ...spi.config import Definition, Importance, Width
from ...spi.keys.kinds import check_patterns, choice_key, flag_key, list_key, number_key, text_key
from .connection import connection_keys
from .converters import converter_key
from .registry_keys import registry_keys

METADATA_COLUMNS: Final = ("key", "topic", "partition", "offset", "timestamp", "headers")

TOPICS: Final = "source.topics"
TOPICS_REGEX: Final = "source.topics.regex"
KEY_CONVERTER: Final = "source.key.converter"
KEY_SCHEMAS: Final = "source.key.converter.schemas.enable"
KEY_SCHEMA: Final = "source.key.schema"
VALUE_CONVERTER: Final = "source.value.converter"
VALUE_SCHEMAS: Final = "source.value.converter.schemas.enable"
SCHEMA: Final = "source.schema"
METADATA: Final = "source.metadata.columns"
ISOLATION: Final = "source.isolation.level"
RESET: Final = "source.auto.offset.reset"
START_MS: Final = "source.start.timestamp.ms"
OUT_OF_RANGE: Final = "source.offset.out.of.range"
SHADOW: Final = "source.group.id.shadow"
CONSUMER: Final = "source.consumer.override."

SINK_TOPIC: Final = "sink.topic"
SINK_TOPIC_COLUMN: Final = "sink.topic.column"
SINK_KEY_COLUMNS: Final = "sink.key.columns"
SINK_KEY_CONVERTER: Final = "sink.key.converter"
SINK_KEY_SCHEMAS: Final = "sink.key.converter.schemas.enable"
SINK_VALUE_CONVERTER: Final = "sink.value.converter"
SINK_VALUE_SCHEMAS: Final = "sink.value.converter.schemas.enable"
STAGING: Final = "sink.staging.path"
RETENTION_MS: Final = "sink.offsets.retention.ms"
UNMARKED: Final = "sink.unmarked.batch"
PRODUCER: Final = "sink.producer.override."

TASK_PARTITIONS: Final = "task.kafka.partitions"
TASK_LATER: Final = "task.kafka.partitions.later"
TASK_SCHEMA: Final = "task.kafka.schema"
TASK_KEY_SCHEMA: Final = "task.kafka.key.schema"
TASK_TOPICS: Final = "task.kafka.topics"


def _columns_beside(value: Value) -> str | None:
    names = value if isinstance(value, tuple) else ()
    unknown = [each for each in names if each.removeprefix("_") not in METADATA_COLUMNS]
    return f"there are {', '.join(METADATA_COLUMNS)}, not {', '.join(unknown)}" if unknown else None


SOURCE: Final = (
    *connection_keys("source"),
    list_key(
        TOPICS,
        f"The topics to read; or set `{TOPICS_REGEX}`.",
        importance=Importance.HIGH,
    ),
    text_key(
        TOPICS_REGEX,
        "A regular expression for the whole names of the topics to read. New topics are found "
        "within 10 s.",
        importance=Importance.HIGH,
        validator=check_patterns,
        width=Width.LONG,
    ),
    converter_key(
        VALUE_CONVERTER,
        "The format of values: `string` and `bytes` give the column `_value`, `json` the columns "
        "of its object, `avro` the columns of its subject in the schema registry.",
    ),
    *registry_keys(VALUE_CONVERTER, writes=False),
    flag_key(
        VALUE_SCHEMAS,
        "Whether a value in JSON is Connect's envelope of `schema` and `payload`. Without it the "
        f"columns are those of `{SCHEMA}`.",
        default=True,
    ),
    text_key(
        SCHEMA,
        "The columns of values in JSON without schemas, or in Avro, as in `CREATE TABLE`: `day "
        "DATE, delay INT`. Without it the connector infers them, once: from the last JSON "
        "records, or from the latest version of the Avro subject. Other fields of a value are "
        "left out, with a remark in the status.",
        width=Width.LONG,
    ),
    EVOLUTION_KEY,
    converter_key(
        KEY_CONVERTER,
        "The format of keys, in the column `_key`: `string` and `bytes` as they are, `json` and "
        "`avro` a struct of the fields of an object, or a single value.",
        importance=Importance.MEDIUM,
    ),
    *registry_keys(KEY_CONVERTER, writes=False),
    flag_key(
        KEY_SCHEMAS,
        "Whether a key in JSON is Connect's envelope of `schema` and `payload`. Without it the "
        f"fields are those of `{KEY_SCHEMA}`.",
        default=True,
    ),
    text_key(
        KEY_SCHEMA,
        "The fields of keys in JSON without schemas, as in `CREATE TABLE`: `id BIGINT`. Without it "
        "the connector infers them, once, from the last records. A key with other fields cannot be "
        "decoded.",
        width=Width.LONG,
    ),
    list_key(
        METADATA,
        "The metadata of a record to add as columns: `_key`, `_topic`, "
        "`_partition`, `_offset`, `_timestamp`, `_headers`.",
        *METADATA_COLUMNS,
        importance=Importance.LOW,
        validator=_columns_beside,
    ),
    choice_key(
        ISOLATION,
        "Whether records of aborted and open transactions are skipped.",
        "read_committed",
        "read_uncommitted",
    ),
    choice_key(
        RESET,
        "Where to begin at the first start of the connector. A partition that is added to a topic "
        "later, or whose topic is found later, is read from its first record.",
        "earliest",
        "latest",
    ),
    number_key(
        START_MS,
        f"Begin at this time, in ms since 1970, instead of `{RESET}`.",
        None,
        importance=Importance.LOW,
    ),
    text_key(
        SHADOW,
        "A consumer group that gets the committed offsets, for tools that monitor lag. It is never "
        "read.",
        importance=Importance.LOW,
    ),
    choice_key(
        OUT_OF_RANGE,
        "What to do if the records after the offset are gone, by retention or since the topic was "
        "deleted and created again: with `fail` the task fails and reports how many; `earliest` "
        "and `latest` continue there, with a warning.",
        "fail",
        "earliest",
        "latest",
    ),
)

SOURCE_TASK: Final = (
    text_key(TASK_PARTITIONS, "Set by the connector: the task's share of the partitions."),
    text_key(TASK_LATER, "Set by the connector: the partitions added after its first start."),
    text_key(TASK_SCHEMA, "Set by the connector: the columns of values in JSON or Avro."),
    text_key(TASK_KEY_SCHEMA, "Set by the connector: the column of keys in JSON or Avro."),
    text_key(TASK_TOPICS, "Set by the connector: these two for each topic, as JSON."),
)

SINK: Final = (
    *connection_keys("sink"),
    text_key(SINK_TOPIC, f"The topic to write to; or set `{SINK_TOPIC_COLUMN}`."),
    text_key(SINK_TOPIC_COLUMN, "The column that names the topic of each row; it is not written."),
    list_key(
        SINK_KEY_COLUMNS,
        "The columns of a record's key. Default: the column `_key`; without such a column records "
        "have no key.",
        importance=Importance.HIGH,
    ),
    converter_key(
        SINK_KEY_CONVERTER,
        "The format of keys: `json` writes an object of the columns, `avro` a record, `string` and "
        "`bytes` a single column.",
    ),
    *registry_keys(SINK_KEY_CONVERTER, writes=True),
    flag_key(SINK_KEY_SCHEMAS, "Whether keys in JSON are in Connect's envelope.", default=False),
    converter_key(
        SINK_VALUE_CONVERTER,
        "The format of values: `json` writes an object of all columns whose names do not begin "
        "with an underscore, `avro` a record of them, `string` and `bytes` a single column.",
        "json",
    ),
    *registry_keys(SINK_VALUE_CONVERTER, writes=True),
    flag_key(
        SINK_VALUE_SCHEMAS,
        "Whether values in JSON are in Connect's envelope of `schema` and `payload`.",
        default=False,
    ),
    text_key(
        STAGING,
        "The folder where batches are staged; by default the node's own. If workers run on several "
        "hosts, all of them must share it: otherwise a batch that was staged on a lost host cannot "
        "be published.",
        width=Width.LONG,
    ),
    number_key(
        RETENTION_MS,
        "The brokers' `offsets.retention.minutes`, in ms: the mark of the last batch exists for at "
        "least this long.",
        7 * 24 * 3600 * 1000,
        least=1,
        importance=Importance.LOW,
    ),
    choice_key(
        UNMARKED,
        "What to do with a committed batch if the mark that shows whether it was published may "
        "have expired, or if it was staged for another cluster: with `fail` the task fails, "
        "`publish` assumes that it was not published, `skip` that it was.",
        "fail",
        "publish",
        "skip",
    ),
)

OVERRIDES: Final[Mapping[str, Definition]] = {
    prefix: text_key(
        f"{prefix}*",
        f"A setting of librdkafka, with the name after the prefix: `{prefix}{name}`.",
        importance=Importance.LOW,
    )
    for prefix, name in ((CONSUMER, "fetch.max.bytes"), (PRODUCER, "compression.type"))
}
