"""Replays recorded conversations against consumer groups, and decodes the responses."""
# pyright: basic

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat, Partitions
from fairlead.actors.messages.errors import MEANINGS
from fairlead.events.kafka.consumers import Topic
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.conversations import read_frames
from fairlead_tests.consumer.driver import SETTINGS, ConsumerDriver

CALL = "ConsumerGroupHeartbeat"
AS_SHIPPED = replace(SETTINGS, assignment_interval_ms=1_000)
"""With Kafka's `consumer.assignment.interval.ms`."""


class Compared(NamedTuple):
    """A response of the broker, and ours."""

    told: dict[str, Any]
    """The recorded response."""
    theirs: dict[str, Any]
    ours: dict[str, Any]


class ConsumerReplay:
    """The groups of one conversation."""

    def __init__(self, conversation: Case) -> None:
        self.groups: dict[str, ConsumerDriver] = {}
        self.topics = topics_in(conversation)
        self._conversation = conversation
        self._asked: dict[Any, tuple[ConsumerDriver, int]] = {}

    def play(self) -> Iterator[Compared]:
        """Yield each recorded answer with ours."""
        for each in read_frames(self._conversation):
            if each["api"] != CALL:
                continue
            for driver in self.groups.values():
                driver.passes(max(0, round(each["t"] * 1_000) - driver.now_ms))
            key = each["connection"], each["correlation"]
            if each["direction"] == "request":
                driver = self._group(each["fields"]["GroupId"], each["t"])
                call = call_of(each["fields"], str(key[0]))
                self._asked[key] = driver, driver.ask(call)
            else:
                driver, number = self._asked[key]
                yield Compared(each, plain(each["fields"]), plain(spell(driver.said[number])))

    def _group(self, group_id: str, at: float) -> ConsumerDriver:
        if group_id not in self.groups:
            self.groups[group_id] = ConsumerDriver(
                group_id or "none", AS_SHIPPED, round(at * 1_000), topics=self.topics
            )
        return self.groups[group_id]


def topics_in(conversation: Case) -> dict[str, Topic]:
    """Return the topics in a conversation by name, with as many partitions as occur."""
    names: list[str] = []
    numbers: dict[str, int] = {}
    for each in read_frames(conversation):
        fields = each["fields"]
        names += fields.get("SubscribedTopicNames") or () if each["api"] == CALL else ()
        assignment = fields.get("Assignment") if each["api"] == CALL else None
        for told in assignment["TopicPartitions"] if assignment else ():
            topic_id, most = told["TopicId"].removeprefix("hex:"), max(told["Partitions"]) + 1
            numbers[topic_id] = max(most, numbers.get(topic_id, 0))
    known = dict.fromkeys(names)
    assert len(known) == len(numbers) or not numbers, "which topic has which id?"
    return {name: Topic(*told) for name, told in zip(known, numbers.items(), strict=False)}


def call_of(fields: dict[str, Any], who: str) -> ConsumerGroupHeartbeat:
    """Return a request from its recorded fields."""
    names, owned = fields["SubscribedTopicNames"], fields["TopicPartitions"]
    return ConsumerGroupHeartbeat(
        fields["GroupId"],
        fields["MemberId"],
        fields["MemberEpoch"],
        fields["InstanceId"],
        fields["RackId"],
        fields["RebalanceTimeoutMs"],
        None if names is None else tuple(names),
        fields.get("SubscribedTopicRegex"),
        fields["ServerAssignor"],
        None if owned is None else partitions_of(owned),
        client_id=who,
    )


def partitions_of(told: list[dict[str, Any]]) -> Partitions:
    """Return partitions by the ids of their topics."""
    return {
        each["TopicId"].removeprefix("hex:"): tuple(each["Partitions"])
        for each in told
        if each["Partitions"]
    }


def spell(reply: Any) -> dict[str, Any]:
    """Return a response with Kafka's field names."""
    assignment = reply.assignment
    return {
        "ThrottleTimeMs": reply.throttle_time_ms,
        "ErrorCode": MEANINGS[reply.error].code,
        "ErrorMessage": reply.message,
        "MemberId": reply.member_id,
        "MemberEpoch": reply.member_epoch,
        "HeartbeatIntervalMs": reply.heartbeat_interval_ms,
        "Assignment": None
        if assignment is None
        else {
            "TopicPartitions": [
                {"TopicId": f"hex:{topic_id}", "Partitions": [*numbers]}
                for topic_id, numbers in assignment.items()
            ]
        },
    }


def plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields without the order of topics, and only whether there is a message."""
    assignment = fields["Assignment"]
    told = None if assignment is None else partitions_of(assignment["TopicPartitions"])
    has_message = fields["ErrorMessage"] is not None
    return {**fields, "Assignment": told, "ErrorMessage": has_message}
