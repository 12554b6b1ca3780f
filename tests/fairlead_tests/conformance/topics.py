"""Finds out which topics a recorded broker had: most recordings name them by ids alone."""
# pyright: basic

from collections.abc import Iterable, Iterator
from typing import Any

from fairlead.actors.consumer.patterns import find_matches, flaw_in_pattern
from fairlead.events.kafka.consumers import Topic
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.conversations import read_exchanges, read_frames

CALL = "ConsumerGroupHeartbeat"


def topics_in(conversation: Case) -> dict[str, Topic]:
    """Return the topics of a conversation by name, with as many partitions as occur.

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
    return {**_committed(conversation), **topics} if topics else {}


def _size(partitions: Iterable[Any]) -> int:
    """Return how many partitions a topic has at least of which these are told."""
    numbers = (p.get("PartitionIndex", 0) if isinstance(p, dict) else p for p in partitions)
    return max((1 + number for number in numbers), default=0)


def _committed(conversation: Case) -> dict[str, Topic]:
    """Return the topics of which an offset was committed, with ids of our own."""
    told = [t["fields"] for a, t in read_exchanges(conversation) if a["api"] == "OffsetCommit"]
    found = (topic for fields in told for topic in fields["Topics"])
    return {
        each["Name"]: Topic(f"id of {each['Name']}", _size(each["Partitions"]))
        for each in found
        if each.get("Name") and any(not p["ErrorCode"] for p in each["Partitions"])
    }


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
