"""The topics that a config selects, and the source partitions and offsets of Kafka."""

from collections.abc import Mapping, Sequence
from typing import Final

from ......events.commits import Document, Lag, identity
from ....spi.errors import OffsetRefused
from ....spi.offsets import Offsets, PartitionOffset, Seek, check_members
from ....untrusted.patterns import PatternRefused, compile_pattern
from .. import keys
from ..cluster import KafkaCluster, TopicFacts, TopicPlace

TOPIC: Final = "kafka_topic"
PARTITION: Final = "kafka_partition"
OFFSET: Final = "kafka_offset"
TOPIC_ID: Final = "kafka_topic_id"
"""The members of partitions and offsets: Connect's names for sinks, and the topic's id."""


def document_of(place: TopicPlace) -> Document:
    """Return the source partition of a topic's partition."""
    return {TOPIC: place.topic, PARTITION: place.partition}


def offset_of(facts: TopicFacts, at: int) -> Document:
    """Return the offset document of a topic's offset."""
    return {OFFSET: at, TOPIC_ID: facts.id} if facts.id else {OFFSET: at}


def check_offset(config: Mapping[str, str], partition: Document, offset: Document | None) -> None:
    """Refuse a partition of a topic that is not read, and an invalid offset."""
    check_members("partition", partition, {TOPIC: str, PARTITION: int})
    topic = str(partition[TOPIC])
    if offset is None:
        return
    kinds: dict[str, type] = {OFFSET: int}
    if TOPIC_ID in offset:
        kinds[TOPIC_ID] = str
    check_members("offset", offset, kinds)
    if int(str(offset[OFFSET])) < 0:
        raise OffsetRefused(f"offset.{OFFSET} must be 0 or more")
    try:
        is_read = is_wanted(topic, config)
    except PatternRefused as error:  # taken by a release before, which used another library
        raise OffsetRefused(f"{keys.TOPICS_REGEX}: {error}") from None
    if not is_read:
        raise OffsetRefused(f"partition.{TOPIC}: this connector reads {topics_text(config)}")


def seek(cluster: KafkaCluster, config: Mapping[str, str], to: Seek) -> Offsets:
    """Return the offsets for an end or a time; raises `SourceAway`."""
    found = wanted_topics(cluster, config)
    starts = cluster.offsets(places(found), to)
    return [
        PartitionOffset(document_of(place), offset_of(found[place.topic], at))
        for place, at in starts.items()
    ]


def lag_of(offsets: Offsets, latest: Offsets) -> Lag | None:
    """Return the records from offsets to the ends; None before the first ones were read."""
    known = {identity(partition): offset for partition, offset in offsets if offset}
    if not known:
        return None
    ends = {identity(partition): offset for partition, offset in latest if offset}
    records = sum(max(0, _number(at) - _number(known.get(own))) for own, at in ends.items())
    return Lag(records, 0, records)


def _number(offset: Document | None) -> int:
    return int(str(offset[OFFSET])) if offset else 0


def topics_text(config: Mapping[str, str]) -> str:
    """Return the topics or the pattern in a config, for messages."""
    return config.get(keys.TOPICS) or config.get(keys.TOPICS_REGEX, "")


def is_wanted(topic: str, config: Mapping[str, str]) -> bool:
    """Return whether a config reads a topic; raises `PatternRefused`."""
    if config.get(keys.TOPICS):
        return topic in configured_topics(config)
    return compile_pattern(config.get(keys.TOPICS_REGEX, "")).matches(topic)


def wanted_topics(cluster: KafkaCluster, config: Mapping[str, str]) -> Mapping[str, TopicFacts]:
    """Return the existing topics that a config selects; raises `SourceAway`."""
    if config.get(keys.TOPICS):
        return cluster.facts(configured_topics(config))
    return cluster.facts([each for each in cluster.topics() if is_wanted(each, config)])


def missing_topics(cluster: KafkaCluster, config: Mapping[str, str]) -> str:
    """Return a warning about missing topics; empty if all exist."""
    found = wanted_topics(cluster, config)
    if missing := sorted(configured_topics(config) - found.keys()):
        return f"{keys.TOPICS}: {', '.join(missing)} does not exist: the connector waits for it"
    if not found:
        return f"{keys.TOPICS_REGEX}: no topic matches yet: the connector waits for one"
    return ""


def places(facts: Mapping[str, TopicFacts]) -> Sequence[TopicPlace]:
    """Return all partitions of topics, in their order."""
    return [
        TopicPlace(topic, number)
        for topic in sorted(facts)
        for number in range(facts[topic].partitions)
    ]


def spell_share(share: Sequence[TopicPlace]) -> str:
    """Return a task's share as text."""
    return ",".join(map(str, share))


def read_share(text: str) -> Sequence[TopicPlace]:
    """Parse a task's share."""
    return [
        TopicPlace(topic, int(number))
        for topic, _, number in (each.rpartition("-") for each in text.split(",") if each)
    ]


def later_places(
    config: Mapping[str, str],
    before: Sequence[Mapping[str, str]],
    places_now: Sequence[TopicPlace],
) -> set[TopicPlace]:
    """Return the partitions that were added after the first start, by the last split's configs.

    A topic that a user has added to the config does not count as added later.
    """
    former = {place for each in before for place in read_share(each.get(keys.TASK_PARTITIONS, ""))}
    later = {place for each in before for place in read_share(each.get(keys.TASK_LATER, ""))}
    names = {place.topic for place in former}
    pattern = config.get(keys.TOPICS_REGEX)
    is_found = pattern and all(each.get(keys.TOPICS_REGEX) == pattern for each in before)
    if former:
        new = {each for each in places_now if each not in former}
        later |= {each for each in new if is_found or each.topic in names}
    return later


def configured_topics(config: Mapping[str, str]) -> set[str]:
    """Return the topics that a config lists; empty: it has a pattern."""
    return {each.strip() for each in config.get(keys.TOPICS, "").split(",") if each.strip()}
