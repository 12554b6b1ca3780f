"""What a process that hosts a group can rely on, whatever the type of the group."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fairlead.actors.group.host import Ready, drain
from fairlead.actors.messages.members import CommitOffsets
from fairlead.actors.messages.orders import Cordon, PutConnector, RemoveMember
from fairlead.actors.timing import Now
from fairlead.events.commits import Advance, Commit, CommitId, Manifest
from fairlead.events.group import token_of
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.space import DiskSpace
from fairlead.events.model import Resource
from fairlead_tests.coordination.driver import HEARTBEAT_MS, SESSION_MS, CoordinatorDriver

OUT = DiskSpace(Path("/disk"), free_bytes=1)


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


def batch(driver: CoordinatorDriver) -> CommitOffsets:
    """A batch of the connector A, which `a` holds."""
    token = token_of(driver.group, "a", Resource("A"))
    assert token is not None
    advance = Advance({"file": "x"}, None, {"end": 1})
    commit = Commit(CommitId("A", -1, token, 0), (advance,), Manifest("/out", "s", 1, 1, 1), 1)
    return CommitOffsets("connect", "a", (commit,))


def test_the_offset_log_is_written_before_the_control_log(driver: CoordinatorDriver) -> None:
    driver.put("A")
    driver.asks(driver.joining("a"))
    driver.compute("a")
    driver.asks(driver.full("a", ""))
    driver.coordinator.submit(PutConnector("connect", "B", {"x": "y"}), "rest", driver.now)
    driver.coordinator.submit(batch(driver), "a", driver.now)
    deeds = Deeds()
    answers = drain(driver.coordinator, deeds, driver.now)
    assert [each.split()[1] for each in deeds.done] == ["offsets", "entries"]
    assert "0 offsets" not in deeds.done
    assert [each.to for each in answers][:2] == ["rest", "a"]


def test_what_was_handed_out_is_not_handed_out_again(driver: CoordinatorDriver) -> None:
    driver.coordinator.submit(driver.joining("a"), "a", driver.now)
    first = driver.coordinator.ready(driver.now)
    assert (first.has_entries, [each.to for each in first.answers]) == (True, ["a"])
    driver.coordinator.advance(first)
    again = driver.coordinator.ready(driver.now)
    assert (again.has_entries, again.answers) == (Ready().has_entries, [])


def test_nothing_is_said_of_what_could_not_be_written(driver: CoordinatorDriver) -> None:
    driver.coordinator.submit(driver.joining("a"), "a", driver.now)
    with pytest.raises(OSError):  # noqa: PT011  # whichever it is
        drain(driver.coordinator, Deeds(breaks=True), driver.now)


def test_nothing_is_written_where_nothing_was_decided(driver: CoordinatorDriver) -> None:
    deeds = Deeds(breaks=True)
    assert drain(driver.coordinator, deeds, driver.now) == []
    assert deeds.done == []


def sleeps_until_due(driver: CoordinatorDriver) -> None:
    """Let time pass as the process does that hosts the group: only when it has to."""
    at_ms = driver.coordinator.next_tick_ms(driver.now)
    driver.passes(max(0, at_ms - driver.now_ms))


def test_a_host_that_sleeps_until_something_is_due_ends_a_session_in_time(
    driver: CoordinatorDriver,
) -> None:
    driver.asks(driver.joining("a"))
    ticks = 0
    while "a" in driver.group.members:
        sleeps_until_due(driver)
        ticks += 1
        assert driver.now_ms <= SESSION_MS
    assert driver.now_ms == SESSION_MS
    assert ticks <= 20, "about one a second"


def test_a_host_that_sleeps_until_something_is_due_answers_what_is_held_in_time(
    driver: CoordinatorDriver,
) -> None:
    driver.asks(driver.joining("a"))
    driver.compute("a")
    driver.asks(driver.joining("a"))
    driver.asks(driver.request("a"))
    assert driver.coordinator.traffic().held == 1
    since_ms = driver.now_ms
    while driver.coordinator.traffic().held:
        sleeps_until_due(driver)
        assert driver.now_ms - since_ms <= HEARTBEAT_MS
    assert driver.now_ms - since_ms == HEARTBEAT_MS


def test_a_cordon_wakes_nobody_and_a_removal_is_looked_after_soon(
    driver: CoordinatorDriver,
) -> None:
    driver.asks(driver.joining("a"))
    driver.send(Cordon(driver.group.group_id, "a"))
    driver.passes(100)
    assert driver.group.worker_orders
    assert driver.coordinator.next_tick_ms(driver.now) > driver.now_ms + 100
    driver.send(RemoveMember(driver.group.group_id, "a", force=False))
    driver.passes(100)
    assert driver.coordinator.next_tick_ms(driver.now) == driver.now_ms + 100


def test_while_the_disk_is_full_room_is_looked_for_soon(driver: CoordinatorDriver) -> None:
    driver.coordinator.set_disk_space(OUT, driver.now)
    assert driver.coordinator.next_tick_ms(driver.now) == driver.now_ms + 100
