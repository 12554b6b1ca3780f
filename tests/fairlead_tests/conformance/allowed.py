"""Where our answers may differ from those of a recorded broker: each difference with its reason.

It is found out by what a conversation says, so that it holds for any conversation.
"""
# pyright: basic

from collections.abc import Collection, Iterator
from typing import Any

from fairlead.actors.classic.bytes.consumer import decode_assignment
from fairlead.actors.classic.embedded import flaw_in_metadata
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.conversations import (
    Compared,
    call_of,
    groups_that_speak,
    read_exchanges,
)

IN_OUR_WORDS = "ErrorMessage"
"""What people read is told in other words: with what was kept, and what to do."""

INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS = 23, 27
CALLED_OR_FENCED = {22, 27, 110, 113}
"""Errors by which a member learns that the group has moved on."""

OF_A_TARGET = {
    "Assignment",
    "AssignmentEpoch",
    "GenerationId",
    "GroupEpoch",
    "GroupState",
    "MemberAssignment",
    "MemberEpoch",
    "TargetAssignment",
}
"""Fields that say who has what, and who has come how far."""


class Allowed:
    """What may differ in one conversation, whose answers are compared in their order."""

    def __init__(
        self, conversation: Case, older: Collection[str] = (), taken_over: Collection[str] = ()
    ) -> None:
        self._older = frozenset(older)
        """Groups that were there before the recording: nobody knows what was in them."""
        self._modern = groups_that_speak(conversation, {"ConsumerGroupHeartbeat"})
        self._called_late = frozenset(_called_late(conversation))
        """A broker computes a target with the next heartbeat of KIP-848, and we do at once."""
        self._unreadable: set[str] = set()
        """Groups in which a broker has a member whose metadata nobody can read: we refuse it."""
        self._others: set[str] = {*taken_over}
        """Groups with other partitions than at the broker. `uniform` there goes by the order of a
        hash map, and a pattern is matched a heartbeat after the join. A group that is taken over
        while it is empty is a new one there, whose first target does not wait. Hand-made members go
        on to name what they had at the broker."""
        self._counts: dict[tuple[str, str], tuple[int, int]] = {}
        """How many partitions a member was told last, there and here."""

    def differ(self, compared: list[Compared]) -> list[tuple[Any, ...]]:
        """Return the differences that are not allowed."""
        return [
            (each.told["api"], each.told["t"], plain(each.theirs), plain(each.ours))
            for each in compared
            if not self._is_alike(each)
        ]

    def _is_alike(self, each: Compared) -> bool:
        group_id = each.asked["fields"].get("GroupId", "")
        self._note(group_id, each)
        if group_id in self._older | self._unreadable:
            return True
        if each.told["api"] == "ListGroups":  # groups of other conversations were there as well
            return self._rows(each.theirs, each.ours) == self._rows(each.ours, each.theirs)
        theirs, ours = plain(each.theirs), plain(each.ours)
        named = {group_id, *_names_of(theirs)}
        if theirs == ours or named & self._older:
            return True
        if theirs is None or ours is None:
            return False
        if group_id in self._modern and call_of(each.told) in self._called_late:
            return bool(ours["ErrorCode"] == REBALANCE_IN_PROGRESS)
        return bool(named & self._others) and _differs_by_target(theirs, ours)

    def _rows(self, told: Any, other: Any) -> list[Any]:
        """Return what an answer tells of the groups that both know, and that are alike."""
        both = {row["GroupId"] for row in other["Groups"]} - self._older - self._unreadable
        rows = sorted((row for row in told["Groups"] if row["GroupId"] in both), key=_name)
        return [without_target(row) if row["GroupId"] in self._others else row for row in rows]

    def _note(self, group_id: str, each: Compared) -> None:
        """Take note of a group that is not as at the broker from now on."""
        fields = each.asked["fields"]
        if each.ours is None:
            return
        if fields.get("SubscribedTopicRegex") and not each.ours["ErrorCode"]:
            self._others.add(group_id)
        is_refused = each.ours.get("ErrorCode") == INCONSISTENT_GROUP_PROTOCOL
        if is_refused and any(
            flaw_in_metadata(fields["ProtocolType"], offered["Name"], _bytes(offered["Metadata"]))
            for offered in fields.get("Protocols", ())
        ):
            self._unreadable.add(group_id)
        if group_id in self._modern:
            self._note_partitions((group_id, fields.get("MemberId", "")), each)

    def _note_partitions(self, member: tuple[str, str], each: Compared) -> None:
        told = _assigned(each.theirs), _assigned(each.ours)
        had = self._counts.get(member, (0, 0))
        theirs, ours = (
            known if new is None else len(new) for new, known in zip(told, had, strict=True)
        )
        self._counts[member] = theirs, ours
        is_alone = all(known[0] != member[0] for known in self._counts.keys() - {member})
        if told[0] != told[1] and not is_alone and abs(theirs - ours) <= 1:
            self._others.add(member[0])


def older_groups(conversation: Case) -> frozenset[str]:
    """Return the groups of which the first that is told is that they are there already."""
    first: dict[str, bool] = {}
    for asked, told in read_exchanges(conversation):
        group_id = asked["fields"].get("GroupId", "")
        rows = {row["GroupId"]: row for row in told["fields"].get("Groups", ()) if "GroupId" in row}
        rows = {} if told["api"] == "ListGroups" else rows
        for name, row in {**rows, group_id: told["fields"]}.items():
            if not row.get("ErrorCode") or _was_there(row):
                first.setdefault(name, _was_there(row))
    return frozenset(name for name, was_there in first.items() if name and was_there)


def _called_late(conversation: Case) -> Iterator[Any]:
    """Yield each Heartbeat that is answered by nothing, and the next of that member by a call."""
    last: dict[Any, dict[str, Any]] = {}
    for asked, told in read_exchanges(conversation):
        if told["api"] == "Heartbeat":
            member = asked["fields"]["GroupId"], asked["fields"]["MemberId"]
            before, last[member] = last.get(member), told
            errors = before and before["fields"]["ErrorCode"], told["fields"]["ErrorCode"]
            if before and errors == (0, REBALANCE_IN_PROGRESS):
                yield call_of(before)


def _was_there(fields: dict[str, Any]) -> bool:
    if max(fields.get("GenerationId", 0), fields.get("MemberEpoch", 0) - 1) > 1:
        return True
    offsets = [p for topic in fields.get("Topics", ()) for p in topic["Partitions"]]
    if any(p.get("CommittedOffset", -1) >= 0 for p in offsets):
        return True
    is_described = fields.get("GroupState", "") not in {"", "Dead"}
    return is_described or "is not a" in (fields.get(IN_OUR_WORDS) or "")


def plain(fields: Any) -> Any:
    """Return an answer with only whether it has a message."""
    if fields is None or IN_OUR_WORDS not in fields:
        return fields
    return {**fields, IN_OUR_WORDS: fields[IN_OUR_WORDS] is not None}


def without_target(fields: Any) -> Any:
    """Return an answer without what a target decides."""
    if isinstance(fields, list):
        return [without_target(each) for each in fields]
    if not isinstance(fields, dict):
        return fields
    return {name: without_target(each) for name, each in fields.items() if name not in OF_A_TARGET}


def _differs_by_target(theirs: Any, ours: Any) -> bool:
    """Tell whether answers differ by who has what: one of them may call or fence the member."""
    errors = {theirs.get("ErrorCode"), ours.get("ErrorCode")}
    is_called = 0 in errors and bool(errors & CALLED_OR_FENCED)
    return is_called or without_target(theirs) == without_target(ours)


def _assigned(fields: Any) -> set[tuple[str, int]] | None:
    """Return the partitions that a member is told; None: it is told nothing of them."""
    told = fields.get("Assignment")
    if fields.get("ErrorCode") or told is None:
        return None
    if isinstance(told, str):
        data = _bytes(told)
        return {*decode_assignment(data).partitions} if data else set()
    told = told["TopicPartitions"]
    return {(each["TopicId"], number) for each in told for number in each["Partitions"]}


def _bytes(told: str) -> bytes:
    return bytes.fromhex(told.removeprefix("hex:"))


def _names_of(fields: Any) -> set[str]:
    """Return the groups that an answer to several names."""
    rows = fields.get("Groups", ()) if fields else ()
    return {row["GroupId"] for row in rows if isinstance(row, dict) and "GroupId" in row}


def _name(row: dict[str, Any]) -> str:
    return str(row["GroupId"])
