"""Finds out which topics a recorded broker had: most recordings name them by ids alone."""
# pyright: basic

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from fairlead.actors.assignors.classic.protocol import VERSIONS
from fairlead.actors.classic.bytes.consumer import decode_assignment
from fairlead.actors.consumer.patterns import find_matches, flaw_in_pattern
from fairlead.events.records import Topic
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.conversations import read_carried, read_exchanges, read_frames

CALL = "ConsumerGroupHeartbeat"


def topics_in(conversation: Case) -> dict[str, Topic]:
    """Return the topics of a conversation by name, with as many partitions as occur.

    None, if nobody asks for what depends on that.

    An id is that of the name which stands beside it; else that of the name which is left of those
    that its member subscribes to; else names and ids belong together as they come.
    """
    sizes: dict[str, int] = {}
    names: dict[str, str] = {}
    for each in read_frames(conversation):
        for told in _dicts(each["fields"]):
            if not isinstance(topic_id := told.get("TopicId"), str):
                continue
            sizes[topic_id] = max(sizes.get(topic_id, 0), _size(told.get("Partitions") or ()))
            if name := told.get("TopicName") or told.get("Name"):
                names[topic_id] = name
    wanted = _wanted(conversation)
    for topic_id, candidates in sorted(wanted.items(), key=lambda each: len(each[1])):
        left = [name for name in candidates if name not in names.values()]
        if topic_id not in names and left:
            names[topic_id] = left[0]
    topics = {
        name: Topic(topic_id.removeprefix("hex:"), sizes[topic_id])
        for topic_id, name in names.items()
        if sizes.get(topic_id)
    }
    is_asked_for = any(each["api"] == CALL for each in read_frames(conversation))
    return {**_named(conversation), **topics} if is_asked_for else {}


def _size(partitions: Iterable[Any]) -> int:
    """Return how many partitions a topic has at least of which these are told."""
    numbers = (p.get("PartitionIndex", 0) if isinstance(p, dict) else p for p in partitions)
    return max((1 + number for number in numbers), default=0)


def _named(conversation: Case) -> dict[str, Topic]:
    """Return the topics that classic consumers are assigned, or of which an offset is committed.

    Their ids are our own.
    """
    sizes: dict[str, int] = {}
    for asked, told in read_exchanges(conversation):
        for each in told["fields"]["Topics"] if asked["api"] == "OffsetCommit" else ():
            name, known = (
                each.get("Name", ""),
                [p for p in each["Partitions"] if not p["ErrorCode"]],
            )
            sizes[name] = max(sizes.get(name, 0), _size(known))
    for carried in read_carried(conversation):
        if not carried.is_metadata and carried.protocol not in VERSIONS:
            for topic, number in decode_assignment(carried.data).partitions:
                sizes[topic] = max(sizes.get(topic, 0), number + 1)
    ids = {name: uuid5(NAMESPACE_URL, name).hex for name in sizes}
    return {name: Topic(ids[name], size) for name, size in sizes.items() if name and size}


def _wanted(conversation: Case) -> dict[str, list[str]]:
    """Return by the ids of assigned topics to which names all their members subscribe."""
    subscribed: dict[tuple[str, str], list[str]] = {}
    known = [*dict.fromkeys(_names(conversation))]
    wanted: dict[str, list[str]] = {}
    for asked, told in read_exchanges(conversation):
        fields, assignment = asked["fields"], told["fields"].get("Assignment")
        if asked["api"] != CALL:
            continue
        member = fields["GroupId"], fields["MemberId"] or told["fields"]["MemberId"]
        pattern = fields.get("SubscribedTopicRegex")
        if pattern and not flaw_in_pattern(pattern):
            subscribed[member] = [*find_matches(pattern, known)]
        if fields["SubscribedTopicNames"]:
            subscribed[member] = fields["SubscribedTopicNames"]
        for each in assignment["TopicPartitions"] if assignment else ():
            mine = subscribed.get(member, known)
            both = [name for name in wanted.get(each["TopicId"], mine) if name in mine]
            wanted[each["TopicId"]] = both
    return wanted


def _names(conversation: Case) -> Iterator[str]:
    """Yield all names of topics as they come."""
    for each in read_frames(conversation):
        for told in _dicts(each["fields"]):
            yield from told.get("SubscribedTopicNames") or ()
            if "Partitions" in told or "PartitionIndexes" in told:
                yield from (told[key] for key in ("Name", "TopicName") if told.get(key))


def _dicts(fields: Any) -> Iterator[dict[str, Any]]:
    """Yield all structures within a message."""
    if isinstance(fields, dict):
        yield fields
        fields = list(fields.values())
    for each in fields if isinstance(fields, list) else ():
        yield from _dicts(each)
