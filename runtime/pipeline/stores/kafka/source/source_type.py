# pyright: basic
"""`source.type=kafka`: topics whose partitions are assigned to tasks.

The connector finds the topics and partitions, and looks for new ones every few seconds. It gives
each task a share of the partitions, and the columns that must be known before the first record is
decoded. A subclass may decode the records in another way (`decoder`, `has_headers`).
"""

import json
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial, reduce
from typing import ClassVar, Final

import pyarrow as pa

from ......events.commits import Document
from ....spi.config import ConfigDef, ConfigInvalid, Definition, ParsedConfig, any_reference
from ....spi.connector import Delivery, Promise
from ....spi.context import Context, ExternalAccess, ProbeResult
from ....spi.errors import Away, NotReady, OffsetRefused, SourceAway
from ....spi.lineage import Dataset
from ....spi.offsets import Offsets, Seek, SeekEnd, refuse_references
from ....spi.types import SourceType
from .. import keys
from ..cluster import EPOCH, KafkaCluster, TopicFacts, TopicPlace
from ..connection import (
    LOOK_S,
    Settings,
    client_settings,
    complaints,
    datasets_in,
    locations,
)
from ..registry_keys import complaints as avro_complaints
from ..registry_keys import is_avro
from ..shadow_group import ShadowGroup
from . import by_topic, topics
from .by_topic import is_by_topic
from .columns import (
    declared_columns,
    decoder,
    keeps_records,
    letter_keys,
    read_sample,
    reads_headers,
    schema_of,
    schemas_needed,
    schemas_of,
)
from .decoding import RecordDecoder
from .reader import PartitionReader
from .source import KafkaSource, Listeners, StartRules

_REFRESH_S: Final = 10.0
"""How often a connector checks for new topics and partitions."""


class KafkaSourceType(SourceType):
    """Topics of a cluster; one task reads a partition."""

    version: ClassVar[str] = "1.0"
    delivery: ClassVar[Delivery] = Delivery.EXACTLY_ONCE
    prefixes: ClassVar[tuple[str, ...]] = (keys.CONSUMER,)

    def __init__(self, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> None:
        """Start with a config; raises `ConfigInvalid`."""
        super().__init__(context, config, settings)
        self._cluster = _cluster(context, config)
        self._found: Mapping[str, TopicFacts] | None = None
        """The topics of the last split; None: there was no split."""
        self._last = context.split
        """The task configs of the last split."""
        self._look_at = 0.0
        """The monotonic time of the next check for new ones."""

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the keys of the source."""
        return keys.SOURCE

    @classmethod
    def task_keys(cls) -> Sequence[Definition]:
        """Return the keys of a task's share."""
        return keys.SOURCE_TASK

    @classmethod
    def families(cls) -> Sequence[Definition]:
        """Return the consumer overrides."""
        return (keys.OVERRIDES[keys.CONSUMER],)

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return errors of keys that do not fit together, by the key to change."""
        errors = dict(complaints("source", config, keys.CONSUMER))
        errors |= avro_complaints((keys.KEY_CONVERTER, keys.VALUE_CONVERTER), config)
        if bool(config.get(keys.TOPICS)) == bool(config.get(keys.TOPICS_REGEX)):
            errors[keys.TOPICS] = f"give either {keys.TOPICS} or {keys.TOPICS_REGEX}"
        return errors

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return exactly once, unless the source may skip or repeat out-of-range records."""
        place = config.get(keys.OUT_OF_RANGE)
        if place == SeekEnd.EARLIEST.value:
            told = f"{keys.OUT_OF_RANGE}={place} reads a partition again that lost records"
            return Promise(Delivery.AT_LEAST_ONCE, (told,))
        if place == SeekEnd.LATEST.value:
            told = f"{keys.OUT_OF_RANGE}={place} skips records that are still there"
            return Promise(Delivery.BEST_EFFORT, (told,))
        return Promise(cls.delivery)

    @classmethod
    def datasets(
        cls, config: Mapping[str, str], partitions: Iterable[Document]
    ) -> Sequence[Dataset]:
        """Return the topics."""
        return datasets_in("source", config, {str(each.get("topic", "")) for each in partitions})

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check that the cluster, the topics, the registry and its subjects exist."""
        if any_reference("source.", config):
            return ProbeResult()
        settings = ConfigDef(keys.SOURCE).parse(config)
        columns = declared_columns(settings)
        for key, path in locations("source", config).items():
            if flaw := outside.reach.flaw_in_path(path):
                return ProbeResult({key: flaw}, columns=columns)
        registries = _registries(config, has_schema=bool(settings.text(keys.SCHEMA)))
        return reduce(ProbeResult.plus, registries, replace(_probe(config), columns=columns))

    @classmethod
    def letter_keys(
        cls, config: Mapping[str, str], task_config: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return the schema of values that are texts, bytes, or JSON; raises `LettersRefused`."""
        return letter_keys(config, task_config)

    def split(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Assign the partitions to tasks; raises `NotReady` while there are none."""
        try:
            found = topics.wanted_topics(self._cluster, self.config)
            schemas = self._schemas(found)
        except Away as away:
            raise NotReady(str(away)) from None
        self._found, self._look_at = found, time.monotonic() + _REFRESH_S
        places = topics.places(found)
        if not places:
            raise NotReady(f"there is no topic {topics.topics_text(self.config)}")
        tasks = min(max_tasks, len(places))
        later = self._later(places)
        shares = [{**schemas, **_share(places[task::tasks], later)} for task in range(tasks)]
        self._last = [{**self.config, **each} for each in shares]
        return shares

    def split_sample(self) -> Mapping[str, str]:
        """Return the keys of one task that reads all partitions from their first records on."""
        return {**self.split(1)[0], keys.RESET: SeekEnd.EARLIEST.value, keys.SHADOW: ""}

    def needs_reconfiguration(self) -> bool:
        """Return whether topics or partitions have changed, checked every few seconds."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + _REFRESH_S
        try:
            return topics.wanted_topics(self._cluster, self.config) != self._found
        except Away:
            return False  # its tasks report that

    @classmethod
    def decoder(
        cls,
        context: Context,
        config: Mapping[str, str],
        settings: ParsedConfig,
        sample: Callable[[], pa.Table],
    ) -> RecordDecoder:
        """Return the decoder of a task; `sample` returns the last records of its partitions."""
        return decoder(context, config, settings, sample)

    @classmethod
    def has_headers(cls, config: Mapping[str, str], settings: ParsedConfig) -> bool:
        """Tell whether the headers of records are read."""
        return reads_headers(settings) or keeps_records(config)

    @classmethod
    def source(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> KafkaSource:
        """Make the source of one share; raises `ConfigInvalid`."""
        cluster = _cluster(context, config)  # first: checks paths against the node's limits
        client = _consumer(config, f"fairlead.{context.resource.connector}")
        shadow = settings.text(keys.SHADOW)
        isolation = settings.text(keys.ISOLATION)
        reads = {**client, "isolation.level": isolation}
        start_ms = settings.values[keys.START_MS]
        rules = StartRules(
            EPOCH + timedelta(milliseconds=start_ms)
            if isinstance(start_ms, int)
            else SeekEnd(settings.text(keys.RESET)),
            settings.text(keys.OUT_OF_RANGE),
            isolation == "read_committed",
            frozenset(topics.read_share(settings.text(keys.TASK_LATER))),
        )
        places = topics.read_share(settings.text(keys.TASK_PARTITIONS))
        sample = partial(read_sample, cluster, client, places)
        has_headers = cls.has_headers(config, settings)
        return KafkaSource(
            places,
            cluster,
            lambda: PartitionReader(reads, SourceAway, has_headers=has_headers),
            cls.decoder(context, config, settings, sample),
            rules,
            Listeners(context.warn, ShadowGroup(client, shadow) if shadow else None),
        )

    @classmethod
    def check_offset(
        cls, config: Mapping[str, str], partition: Document, offset: Document | None
    ) -> None:
        """Refuse a partition of a topic that is not read, and an invalid offset."""
        topics.check_offset(config, partition, offset)

    @classmethod
    def seek(
        cls, config: Mapping[str, str], outside: ExternalAccess, to: Seek, offsets: Offsets
    ) -> Offsets:
        """Return the offsets of the cluster for an end or a time."""
        del offsets
        refuse_references(config)
        for key, path in locations("source", config).items():
            if flaw := outside.reach.flaw_in_path(path):
                raise OffsetRefused(f"{key}: {flaw}")
        settings = client_settings("source", config, keys.CONSUMER)
        return topics.seek(KafkaCluster(settings, SourceAway, LOOK_S), config, to)

    lag_of = staticmethod(topics.lag_of)

    def _later(self, places: Sequence[TopicPlace]) -> Container[TopicPlace]:
        """Return the partitions added after the first start, if `latest` would skip records."""
        is_late = self.settings.text(keys.RESET) == SeekEnd.LATEST.value
        if not is_late or self.settings.values[keys.START_MS] is not None:
            return ()
        if not self.context.logged_offsets():
            return ()  # the first start, or a reset
        return topics.later_places(self.config, self._last, places)

    def _schemas(self, facts: Mapping[str, TopicFacts]) -> Mapping[str, str]:
        """Return the schemas that tasks need beforehand; raises `NotReady`, `Away`."""
        before = next(iter(self.context.split), dict[str, str]())
        mine = {key for key in {*self.config, *before} if key.startswith("source.")}
        is_same = all(self.config.get(key) == before.get(key) for key in mine)
        kept = before if is_same else {}
        if is_by_topic(self.config):
            return self._schemas_by_topic(kept, facts)
        return {
            key: kept.get(key) or self._schema(of, facts)
            for key, of in schemas_needed(self.settings).items()
        }

    def _schemas_by_topic(
        self, kept: Mapping[str, str], facts: Mapping[str, TopicFacts]
    ) -> Mapping[str, str]:
        """Return the schemas of each topic; one without records has its own at its first one."""
        known: dict[str, dict[str, str]] = json.loads(kept.get(keys.TASK_TOPICS) or "{}")
        if not schemas_needed(self.settings):
            return {}
        sample = cache(lambda: self._sample(facts))
        schemas = {topic: each for topic, each in known.items() if topic in facts}
        for topic in sorted(facts.keys() - known.keys()):
            records = partial(lambda of: by_topic.of_topic(sample(), of), topic)
            with suppress(NotReady):
                schemas[topic] = schemas_of(
                    self.context, self.config, self.settings, [topic], records
                )
        return {keys.TASK_TOPICS: json.dumps(schemas, sort_keys=True)}

    def _schema(self, converter: str, facts: Mapping[str, TopicFacts]) -> str:
        """Return the columns of a converter; raises `NotReady`, `Away`."""
        sample = partial(self._sample, facts)
        return schema_of(converter, self.context, self.config, self.settings, facts, sample)

    def _sample(self, found: Mapping[str, TopicFacts]) -> pa.Table:
        client = _consumer(self.config, "fairlead")
        return read_sample(self._cluster, client, topics.places(found))


def _share(places: Sequence[TopicPlace], later: Container[TopicPlace]) -> Mapping[str, str]:
    told = [each for each in places if each in later]
    added = {keys.TASK_LATER: topics.spell_share(told)} if told else {}
    return {keys.TASK_PARTITIONS: topics.spell_share(places), **added}


def _probe(config: Mapping[str, str]) -> ProbeResult:
    servers = "source.bootstrap.servers"
    try:
        settings = client_settings("source", config, keys.CONSUMER)
        cluster = KafkaCluster(settings, SourceAway, LOOK_S)
    except ConfigInvalid as error:
        return ProbeResult({servers: str(error)})
    try:
        missing = topics.missing_topics(cluster, config)
    except ConfigInvalid as error:
        return ProbeResult({"source.security.protocol": str(error)})
    except Away as away:
        return ProbeResult(warnings=(f"{servers}: {away}",))
    return ProbeResult(warnings=(missing,) if missing else ())


def _registries(config: Mapping[str, str], *, has_schema: bool) -> Iterator[ProbeResult]:
    """Check the registries of converters; `has_schema`: the value subjects are not needed."""
    for converter in (keys.KEY_CONVERTER, keys.VALUE_CONVERTER):
        if not is_avro(converter, config):
            continue
        from .avro import probe_subjects  # noqa: PLC0415  # loads fastavro

        is_given = has_schema and converter == keys.VALUE_CONVERTER
        yield probe_subjects(
            converter, config, () if is_given else topics.configured_topics(config)
        )


def _consumer(config: Mapping[str, str], group: str) -> Settings:
    """Return the settings of a consumer; librdkafka needs a group's name, but it joins none."""
    return {**client_settings("source", config, keys.CONSUMER), "group.id": group}


def _cluster(context: Context, config: Mapping[str, str]) -> KafkaCluster:
    """Return the cluster client, shared by all tasks on this worker; raises `ConfigInvalid`."""
    for key, path in locations("source", config).items():
        context.check_path(key, path)
    settings = client_settings("source", config, keys.CONSUMER)
    shared = ("kafka source", frozenset(settings.items()))
    return context.shared.get(shared, lambda: KafkaCluster(settings, SourceAway))
