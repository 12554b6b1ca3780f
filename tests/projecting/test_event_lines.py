"""The lines that a node's log has of what happened to a group: each thing once, by whom and why."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from unittest.mock import Mock

import pytest

from fairlead.actors.messages.commands import FinishDeletion
from fairlead.actors.messages.members import LEAVE_EPOCH, Heartbeat
from fairlead.actors.messages.orders import (
    Cordon,
    DeleteConnector,
    EndMember,
    PutConnector,
    Restart,
    SetTargetState,
)
from fairlead.events.log.frame import Entry
from fairlead.events.log.reader import Slice
from fairlead.events.model import BATCHES_RUN, Resource, RunState
from fairlead.events.records import OwnerBegan, OwnerResigned
from fairlead.projections.watch.group import GroupWatch
from fairlead.projections.watch.lines import EventLine
from fairlead_tests.decider import resource
from fairlead_tests.log.samples import TIME_MS
from fairlead_tests.projecting.timed_log import TimedDecider, computed, grown

A, B, C, D = map(resource, "ABCD")
BEFORE = {"x": "1", "password": "secret-1"}
AFTER = {"x": "2", "password": "secret-2"}


@dataclass
class Entries:
    """A log in memory."""

    entries: list[Entry]
    log_id = "connect"

    def low(self) -> int:
        return 0

    def load(self) -> Slice:
        latest = {(each.type, each.key): each for each in self.entries}
        return Slice([*latest.values()], len(self.entries))

    def tail(self, start: int) -> Iterator[list[Entry]]:
        yield from ([each] for each in self.entries[start:])


def lines_after(group: TimedDecider, start: int) -> list[EventLine]:
    log = Entries(group.entries[:start])
    watch, log.entries = GroupWatch(log, start), group.entries
    return [*watch.read()]


def texts(lines: list[EventLine], level: int = logging.INFO) -> list[str]:
    return [each.text for each in lines if each.level >= level]


def test_an_epoch_and_its_moves_are_told_with_their_reasons_and_when_they_happened() -> None:
    group = computed()
    start = len(group.entries)
    group.at(5_500).beat("W1", "A B C D")
    group.at(5_580).says(C, RunState.UNASSIGNED, "stopped")
    group.at(5_700).beat("W1", "A B")
    group.at(5_800).beat("W2", "")
    group.at(5_900).says(C, RunState.RUNNING)
    group.at(6_000).says(C, RunState.RUNNING, BATCHES_RUN)
    whole = lines_after(group, 0)
    assert "epoch 2: member-joined w2" in texts(whole)
    assert "target for epoch 2 by balanced: 2 moved, 2 kept" in texts(whole)
    moves = [each for each in whole if each.resource == C and "moves" in each.text]
    text = "C moves from w1 to w2: balance"
    assert moves == [EventLine(text, C, 2, "http://w2", time_ms=TIME_MS + 5_200)]
    assert lines_after(group, start) == [
        EventLine("C has ended at w1", C, 1, "http://w1", time_ms=TIME_MS + 5_580),
        EventLine("C runs at w2", C, 2, "http://w2", time_ms=TIME_MS + 5_900),
    ]


def test_what_people_did_to_a_connector_is_told_once_with_who_asked() -> None:
    group = grown()
    start, ann = len(group.entries), "rest ann"
    group.command(PutConnector("connect", "E", BEFORE, principal=ann))
    group.command(PutConnector("connect", "E", AFTER, principal=ann))
    group.command(SetTargetState("connect", "E", RunState.PAUSED, ann))
    group.command(Restart("connect", Resource("E"), principal="rest bob"))
    group.command(DeleteConnector("connect", "E", principal="rest bob"))
    group.settle()
    group.command(FinishDeletion("E"))
    told = lines_after(group, start)
    assert [each.text for each in told if each.resource == Resource("E") and each.level > 10] == [
        "connector E was created by rest ann",
        "the config of connector E was changed by rest ann: password, x",
        "connector E is to be PAUSED by rest ann",
        "connector E is restarted by rest bob",
        "connector E is being deleted by rest bob",
        "connector E is deleted",
    ]
    assert not [each for each in told if "secret" in each.text]


def test_who_owns_the_group_is_told_and_after_how_much_silence() -> None:
    group = grown()
    start = len(group.entries)
    group.write(OwnerBegan(1, "n1"), OwnerBegan(2, "n2", silence_ms=3_420))
    group.write(OwnerResigned(2, "n2", "n1"), OwnerBegan(3, "n1"), OwnerResigned(3, "n1"))
    assert texts(lines_after(group, start)) == [
        "node n1 owns the group, as owner 1",
        "node n2 owns the group after 3.4 s of silence, as owner 2",
        "node n2, owner 2, gives the group up to node n1",
        "node n1 owns the group, as owner 3",
        "node n1, owner 3, gives the group up to any other",
    ]


def test_sessions_and_orders_are_told() -> None:
    group = grown()
    start = len(group.entries)
    group.command(Cordon("connect", "http://w1", drain=True, principal="rest ann"))
    group.at(7_000).command(EndMember("connect", "W2", "1", TIME_MS + 6_900))
    told = texts(lines_after(group, start))
    assert "epoch 3: worker-drained w1 by rest ann" in told
    assert "worker w2 is no member any more" in told
    assert [each for each in told if each.startswith("epoch 4: process-ended w2")]


def test_a_worker_that_left_is_not_told_to_be_lost() -> None:
    group = grown()
    start = len(group.entries)
    group.join("W3")
    group.heartbeat(Heartbeat("connect", "W1", LEAVE_EPOCH, "1"))
    group.command(EndMember("connect", "W2", "1", TIME_MS))
    told = texts(lines_after(group, start))
    assert [each for each in told if "may wait for it" in each] == [
        "worker w1 left: 2 connectors and tasks may wait for it",
        "worker w2 is lost: 2 connectors and tasks may wait for it",
    ]


@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        (("", ""), ["A runs at w1"]),
        (("outside: waiting for the source: x", ""), ["A runs at w1: outside: waiting for the"
         " source: x", "A goes on at w1"]),
    ],
)  # fmt: skip
def test_a_state_is_told_when_it_changes_and_the_end_of_trouble(
    reasons: tuple[str, ...], told: list[str]
) -> None:
    group = grown()
    start = len(group.entries)
    for number, reason in enumerate(reasons):
        group.at(8_000 + number).says(A, RunState.RUNNING, reason)
    assert texts(lines_after(group, start)) == told


def test_what_is_read_in_parts_is_told_as_at_once() -> None:
    group = grown()
    log = Entries(group.entries)
    at_once = [*GroupWatch(log, 0).read()]
    part = Entries([])
    watch, told = GroupWatch(part, 0), list[EventLine]()
    for entry in group.entries:
        part.entries.append(entry)
        told += watch.read()
    assert told == at_once


def test_rebalances_moves_and_restarts_are_counted_from_where_the_watch_began() -> None:
    group = computed()
    group.at(5_500).beat("W1", "A B C D")
    group.at(5_580).says(C, RunState.UNASSIGNED)
    group.at(5_590).says(D, RunState.UNASSIGNED)
    group.at(5_700).beat("W1", "A B")
    group.at(5_800).beat("W2", "")
    for each in (C, D):
        group.at(6_000).says(each, RunState.RUNNING)
    group.settle()
    watch = GroupWatch(Entries(group.entries), 0)
    watch.read()
    watch._settle = Mock()  # type: ignore[method-assign]
    assert watch.read() == []
    watch._settle.assert_not_called()  # nothing can have come to its end without a record
    moves = watch.counted.moves
    assert (sum(moves.counts), moves.total_ms) == (2, 420 + 410)
    assert sum(watch.counted.rebalances.counts) >= 1
