"""Replays recorded conversations against consumer groups, and decodes the responses."""
# pyright: basic

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat, Partitions
from fairlead.actors.messages.errors import MEANINGS
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.conversations import (
    Compared,
    call_of,
    groups_that_speak,
    read_frames,
)
from fairlead_tests.conformance.topics import CALL, topics_in
from fairlead_tests.consumer.driver import SETTINGS, ConsumerDriver

AS_SHIPPED = replace(SETTINGS, assignment_interval_ms=1_000)
"""With Kafka's `consumer.assignment.interval.ms`."""


class ConsumerReplay:
    """The groups of one conversation that have no classic members."""

    def __init__(self, conversation: Case) -> None:
        self.groups: dict[str, ConsumerDriver] = {}
        self.topics = topics_in(conversation)
        self._conversation = conversation
        self._left_out = groups_that_speak(conversation, {"JoinGroup"})
        self._asked: dict[Any, tuple[ConsumerDriver, int, dict[str, Any]]] = {}

    def play(self) -> Iterator[Compared]:
        """Yield each recorded answer with ours."""
        for each in read_frames(self._conversation):
            if each["api"] != CALL:
                continue
            for driver in self.groups.values():
                driver.passes(max(0, round(each["t"] * 1_000) - driver.now_ms))
            key = call_of(each)
            if each["direction"] == "request":
                if (group_id := each["fields"]["GroupId"]) not in self._left_out:
                    driver = self._group(group_id, each["t"])
                    number = driver.ask(heartbeat_of(each["fields"], str(key[0])))
                    self._asked[key] = driver, number, each
            elif key in self._asked:
                driver, number, asked = self._asked[key]
                told = in_order(each["fields"]), in_order(spell(driver.said[number]))
                yield Compared(asked, each, *told)

    def _group(self, group_id: str, at: float) -> ConsumerDriver:
        if group_id not in self.groups:
            self.groups[group_id] = ConsumerDriver(
                group_id or "none", AS_SHIPPED, round(at * 1_000), topics=self.topics
            )
        return self.groups[group_id]


def heartbeat_of(fields: dict[str, Any], who: str) -> ConsumerGroupHeartbeat:
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


def in_order(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with sorted topics: a broker has the order of a hash map."""
    if fields["Assignment"] is None:
        return fields
    topics = sorted(fields["Assignment"]["TopicPartitions"], key=lambda each: str(each["TopicId"]))
    return {**fields, "Assignment": {"TopicPartitions": topics}}
