"""The keys of topics of Kafka, as a source and as a sink: each says what it means.

Names are those of Connect and of Kafka's clients behind `source.` or `sink.`.
"""

from collections.abc import Mapping
from typing import Final

from .....actors.settings import Value
from ...spi.config import Definition, Importance, Width
from ...spi.key_kinds import check_patterns, choice_key, flag_key, list_key, number_key, text_key
from ..evolution.policy import EVOLUTION_KEY
from .connection import connection_keys
from .converters import converter_key
from .registry_keys import AVRO, registry_keys

KEY_CONVERTERS: Final = ("string", "bytes", AVRO)
METADATA_COLUMNS: Final = ("key", "topic", "partition", "offset", "timestamp", "headers")

TOPICS: Final = "source.topics"
TOPICS_REGEX: Final = "source.topics.regex"
KEY_CONVERTER: Final = "source.key.converter"
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


def _columns_beside(value: Value) -> str | None:
    names = value if isinstance(value, tuple) else ()
    unknown = [each for each in names if each.removeprefix("_") not in METADATA_COLUMNS]
    return f"there are {', '.join(METADATA_COLUMNS)}, not {', '.join(unknown)}" if unknown else None


SOURCE: Final = (
    *connection_keys("source"),
    list_key(
        TOPICS,
        f"The topics that are read; or `{TOPICS_REGEX}`.",
        importance=Importance.HIGH,
    ),
    text_key(
        TOPICS_REGEX,
        "A regular expression, which the whole name of a topic has to match to be read. Topics "
        "that come later are found within 10 s.",
        importance=Importance.HIGH,
        validator=check_patterns,
        width=Width.LONG,
    ),
    converter_key(
        VALUE_CONVERTER,
        "What a record's value is: `string` and `bytes` stand in the column `_value`, `json` has "
        "the columns of its object, `avro` those that its subject has in the schema registry.",
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
        "The columns of values in JSON without a schema, or in Avro, as in `CREATE TABLE`: `day "
        "DATE, delay INT`. Without it the connector finds them, once: those of the last records "
        "in JSON that are there, those of the latest version that Avro's subject has. Further "
        "fields of a value are left out, and told.",
        width=Width.LONG,
    ),
    EVOLUTION_KEY,
    converter_key(
        KEY_CONVERTER,
        "What a record's key is, in the column `_key`: a text, bytes, or Avro. JSON is a text.",
        words=KEY_CONVERTERS,
        importance=Importance.MEDIUM,
    ),
    *registry_keys(KEY_CONVERTER, writes=False),
    list_key(
        METADATA,
        "What is told of a record beside its value, each in a column of its own: `_key`, `_topic`, "
        "`_partition`, `_offset`, `_timestamp`, `_headers`.",
        *METADATA_COLUMNS,
        importance=Importance.LOW,
        validator=_columns_beside,
    ),
    choice_key(
        ISOLATION,
        "Whether records of transactions that were aborted, or have not ended, are left out.",
        "read_committed",
        "read_uncommitted",
    ),
    choice_key(
        RESET,
        "Where a partition without an offset begins: the first start alone. One that is added to a "
        "topic later, or whose topic is found later, begins with its first record.",
        "earliest",
        "latest",
    ),
    number_key(
        START_MS,
        f"Begin with the records of this time, in ms since 1970, instead of `{RESET}`.",
        None,
        importance=Importance.LOW,
    ),
    text_key(
        SHADOW,
        "A group of Kafka's that is told the offsets, once they count, so that tools that watch "
        "lag see them. Nothing is read from it.",
        importance=Importance.LOW,
    ),
    choice_key(
        OUT_OF_RANGE,
        "What happens if records behind the offset are gone, since the topic keeps them no longer "
        "or was deleted and made anew: `fail` ends the task and says how many; `earliest` and "
        "`latest` go on there, and warn.",
        "fail",
        "earliest",
        "latest",
    ),
)

SOURCE_TASK: Final = (
    text_key(TASK_PARTITIONS, "Set by the connector: the task's share of the partitions."),
    text_key(TASK_LATER, "Set by the connector: the partitions that came after its first start."),
    text_key(TASK_SCHEMA, "Set by the connector: the columns of values in JSON or Avro."),
    text_key(TASK_KEY_SCHEMA, "Set by the connector: the column of keys in Avro."),
)

SINK: Final = (
    *connection_keys("sink"),
    text_key(SINK_TOPIC, f"The topic that is written to; or `{SINK_TOPIC_COLUMN}`."),
    text_key(SINK_TOPIC_COLUMN, "The column that names the topic of each row; it is not written."),
    list_key(
        SINK_KEY_COLUMNS,
        "The columns that make a record's key. Without them the column `_key` does, if there is "
        "one; else records have none.",
        importance=Importance.HIGH,
    ),
    converter_key(
        SINK_KEY_CONVERTER,
        "How a key is written: `json` as an object of its columns, `avro` as a record, `string` "
        "and `bytes` from one.",
    ),
    *registry_keys(SINK_KEY_CONVERTER, writes=True),
    flag_key(SINK_KEY_SCHEMAS, "Whether keys in JSON are in Connect's envelope.", default=False),
    converter_key(
        SINK_VALUE_CONVERTER,
        "How a value is written: `json` as an object of all columns whose names do not begin with "
        "an underscore, `avro` as a record of them, `string` and `bytes` from the one that there "
        "is.",
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
        "The folder where batches lie until they are published; the node's own unless set. If "
        "workers run on several hosts it must be one that all of them see: what was staged on a "
        "host that is lost can be published by no other.",
        width=Width.LONG,
    ),
    number_key(
        RETENTION_MS,
        "The brokers' `offsets.retention.minutes`, in ms: how long the mark of the last batch is "
        "sure to stand.",
        7 * 24 * 3600 * 1000,
        least=1,
        importance=Importance.LOW,
    ),
    choice_key(
        UNMARKED,
        "What becomes of a committed batch that waited for longer than that, or for the brokers of "
        "another cluster, if there is no mark to tell whether it was published: `fail` waits for "
        "you, `publish` and `skip` take it for one that was not, or was.",
        "fail",
        "publish",
        "skip",
    ),
)

OVERRIDES: Final[Mapping[str, Definition]] = {
    prefix: text_key(
        f"{prefix}*",
        f"A setting of librdkafka's, handed on under the name after the prefix: `{prefix}{name}`.",
        importance=Importance.LOW,
    )
    for prefix, name in ((CONSUMER, "fetch.max.bytes"), (PRODUCER, "compression.type"))
}
