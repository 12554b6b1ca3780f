"""Which topics are read, how their partitions are named, and which offsets there may be in them."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ......events.commits import Document
from ....spi.errors import OffsetRefused
from ....spi.offsets import Offsets, PartitionOffset, Seek, check_members
from .. import keys
from ..cluster import KafkaCluster, TopicFacts, TopicPlace

TOPIC: Final = "kafka_topic"
PARTITION: Final = "kafka_partition"
OFFSET: Final = "kafka_offset"
TOPIC_ID: Final = "kafka_topic_id"
"""The members of partitions and offsets: as Connect names them for sinks, and the topic's id."""


def document_of(place: TopicPlace) -> Document:
    """Return a partition as the log names it."""
    return {TOPIC: place.topic, PARTITION: place.partition}


def offset_of(facts: TopicFacts, at: int) -> Document:
    """Return an offset in a topic as the log has it."""
    return {OFFSET: at, TOPIC_ID: facts.id} if facts.id else {OFFSET: at}


def check_offset(config: Mapping[str, str], partition: Document, offset: Document | None) -> None:
    """Refuse what is no partition of a topic that is read, or no offset in one."""
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
    if not is_wanted(topic, config):
        raise OffsetRefused(f"partition.{TOPIC}: this connector reads {topics_text(config)}")


def seek(cluster: KafkaCluster, config: Mapping[str, str], to: Seek) -> Offsets:
    """Return where the records of a time begin, or where all do, or end; raises `SourceAway`."""
    found = wanted_topics(cluster, config)
    starts = cluster.offsets(places(found), to)
    return [
        PartitionOffset(document_of(place), offset_of(found[place.topic], at))
        for place, at in starts.items()
    ]


def topics_text(config: Mapping[str, str]) -> str:
    """Return how a config names what it reads."""
    return config.get(keys.TOPICS) or config.get(keys.TOPICS_REGEX, "")


def is_wanted(topic: str, config: Mapping[str, str]) -> bool:
    """Tell whether a config reads a topic."""
    if config.get(keys.TOPICS):
        return topic in configured_topics(config)
    return re.fullmatch(config.get(keys.TOPICS_REGEX, ""), topic) is not None


def wanted_topics(cluster: KafkaCluster, config: Mapping[str, str]) -> Mapping[str, TopicFacts]:
    """Return the topics that are there of those that are wanted; raises `SourceAway`."""
    if config.get(keys.TOPICS):
        return cluster.facts(configured_topics(config))
    return cluster.facts([each for each in cluster.topics() if is_wanted(each, config)])


def missing_topics(cluster: KafkaCluster, config: Mapping[str, str]) -> str:
    """Return what is told of topics that are not there, empty if all are."""
    found = wanted_topics(cluster, config)
    if missing := sorted(configured_topics(config) - found.keys()):
        return f"{keys.TOPICS}: {', '.join(missing)} does not exist: the connector waits for it"
    if not found:
        return f"{keys.TOPICS_REGEX}: no topic matches yet: the connector waits for one"
    return ""


def places(found: Mapping[str, TopicFacts]) -> Sequence[TopicPlace]:
    """Return all partitions of topics, in their order."""
    return [
        TopicPlace(topic, number)
        for topic in sorted(found)
        for number in range(found[topic].partitions)
    ]


def spell_share(share: Sequence[TopicPlace]) -> str:
    """Spell a task's share as its config holds it."""
    return ",".join(map(str, share))


def read_share(text: str) -> Sequence[TopicPlace]:
    """Read a task's share."""
    return [
        TopicPlace(topic, int(number))
        for topic, _, number in (each.rpartition("-") for each in text.split(",") if each)
    ]


def later_places(
    config: Mapping[str, str],
    before: Sequence[Mapping[str, str]],
    places_now: Sequence[TopicPlace],
) -> set[TopicPlace]:
    """Return the partitions that came after the first start, by the task configs of the last split.

    A topic that somebody has added to the config since is none that came.
    """
    known = {place for each in before for place in read_share(each.get(keys.TASK_PARTITIONS, ""))}
    later = {place for each in before for place in read_share(each.get(keys.TASK_LATER, ""))}
    names = {place.topic for place in known}
    pattern = config.get(keys.TOPICS_REGEX)
    is_found = pattern and all(each.get(keys.TOPICS_REGEX) == pattern for each in before)
    if known:
        new = {each for each in places_now if each not in known}
        later |= {each for each in new if is_found or each.topic in names}
    return later


def configured_topics(config: Mapping[str, str]) -> set[str]:
    """Return the topics that a config names; empty: it has a pattern."""
    return {each.strip() for each in config.get(keys.TOPICS, "").split(",") if each.strip()}
