"""What a process that hosts a group can rely on, whatever the type of the group."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fairlead.actors.group.shard import Now, Ready, drain
from fairlead.actors.messages.orders import Cordon, RemoveMember
from fairlead.actors.messages.work import CommitOffsets, PutConnector
from fairlead.events.group import token_of
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.space import Room
from fairlead.events.model import Advance, Commit, CommitId, Manifest, Resource
from fairlead_tests.coordination.office import HEARTBEAT_MS, SESSION_MS, Office

OUT = Room(Path("/disk"), free_bytes=1)


@dataclass
class Deeds:
    """Logs that tell in which order they were written to, and may break."""

    done: list[str] = field(default_factory=list[str])
    breaks: bool = False

    def append_offsets(self, entries: Sequence[NewEntry], _: Now, /) -> None:
        """Note how much came."""
        self.done.append(f"{len(entries)} offsets")

    def append(self, entries: Sequence[NewEntry], _: Now, /) -> None:
        """Note how much came, or break."""
        if self.breaks:
            raise OSError
        self.done.append(f"{len(entries)} entries")


def batch(office: Office) -> CommitOffsets:
    """A batch of the connector A, which `a` holds."""
    token = token_of(office.group, "a", Resource("A"))
    assert token is not None
    advance = Advance({"file": "x"}, None, {"end": 1})
    commit = Commit(CommitId("A", -1, token, 0), (advance,), Manifest("/out", "s", 1, 1, 1), 1)
    return CommitOffsets("connect", "a", (commit,))


def test_the_offset_log_is_written_before_the_control_log(office: Office) -> None:
    office.put("A")
    office.asks(office.joining("a"))
    office.compute("a")
    office.asks(office.full("a", ""))
    office.coordinator.take(PutConnector("connect", "B", {"x": "y"}), "rest", office.now)
    office.coordinator.take(batch(office), "a", office.now)
    deeds = Deeds()
    answers = drain(office.coordinator, deeds, office.now)
    assert [each.split()[1] for each in deeds.done] == ["offsets", "entries"]
    assert "0 offsets" not in deeds.done
    assert [each.to for each in answers][:2] == ["rest", "a"]


def test_what_was_handed_out_is_not_handed_out_again(office: Office) -> None:
    office.coordinator.take(office.joining("a"), "a", office.now)
    first = office.coordinator.ready(office.now)
    assert (first.has_entries, [each.to for each in first.answers]) == (True, ["a"])
    office.coordinator.advance(first)
    again = office.coordinator.ready(office.now)
    assert (again.has_entries, again.answers) == (Ready().has_entries, [])


def test_nothing_is_said_of_what_could_not_be_written(office: Office) -> None:
    office.coordinator.take(office.joining("a"), "a", office.now)
    with pytest.raises(OSError):  # noqa: PT011  # whichever it is
        drain(office.coordinator, Deeds(breaks=True), office.now)


def test_nothing_is_written_where_nothing_was_decided(office: Office) -> None:
    deeds = Deeds(breaks=True)
    assert drain(office.coordinator, deeds, office.now) == []
    assert deeds.done == []


def sleeps_until_due(office: Office) -> None:
    """Let time pass as the process does that hosts the group: only when it has to."""
    at_ms = office.coordinator.next_tick_ms(office.now)
    office.passes(max(0, at_ms - office.now_ms))


def test_a_host_that_sleeps_until_something_is_due_ends_a_session_in_time(office: Office) -> None:
    office.asks(office.joining("a"))
    ticks = 0
    while "a" in office.group.members:
        sleeps_until_due(office)
        ticks += 1
        assert office.now_ms <= SESSION_MS
    assert office.now_ms == SESSION_MS
    assert ticks <= 20, "about one a second"


def test_a_host_that_sleeps_until_something_is_due_answers_what_is_held_in_time(
    office: Office,
) -> None:
    office.asks(office.joining("a"))
    office.compute("a")
    office.asks(office.joining("a"))
    office.asks(office.request("a"))
    assert office.coordinator.traffic().held == 1
    since_ms = office.now_ms
    while office.coordinator.traffic().held:
        sleeps_until_due(office)
        assert office.now_ms - since_ms <= HEARTBEAT_MS
    assert office.now_ms - since_ms == HEARTBEAT_MS


def test_a_cordon_wakes_nobody_and_a_removal_is_looked_after_soon(office: Office) -> None:
    office.asks(office.joining("a"))
    office.send(Cordon(office.group.group_id, "a"))
    office.passes(100)
    assert office.group.worker_orders
    assert office.coordinator.next_tick_ms(office.now) > office.now_ms + 100
    office.send(RemoveMember(office.group.group_id, "a", force=False))
    office.passes(100)
    assert office.coordinator.next_tick_ms(office.now) == office.now_ms + 100


def test_while_the_disk_is_full_room_is_looked_for_soon(office: Office) -> None:
    office.coordinator.see_room(OUT, office.now)
    assert office.coordinator.next_tick_ms(office.now) == office.now_ms + 100
