"""A large imbalance is worked off a few moves at a time, through the coordinator to the end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from fairlead.actors.assignors.built_in import incremental
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import Cordon
from fairlead.events.entries.codec import decode
from fairlead.events.model import ClientAssignor, GroupState, Why
from fairlead.events.records import GroupMetadata, ScheduledRebalance
from fairlead_tests.coordination.driver import HEARTBEAT_MS, CoordinatorDriver

INTERVAL_MS = 30_000
CONNECTORS = "ABCDEFGH"


class Gently(CoordinatorDriver):
    """A driver whose members say what they run, and compute when they are to."""

    @classmethod
    def begun(cls, folder: Path) -> Self:
        """Let `a` run eight connectors, and `b` come: one has moved by then."""
        found = cls.at(folder)
        assert isinstance(found, cls)
        found.assignors = (ClientAssignor(incremental.NAME),)
        found.assign = lambda snapshot: incremental.assign(snapshot, 1, INTERVAL_MS)
        for name in CONNECTORS:
            found.put(name)
        for member in "ab":
            found.heeds(found.joining(member))
            found.settle()
        assert found.sizes == [7, 1]
        return found

    def heeds(self, request: Heartbeat) -> None:
        """Ask, and do what the answer says."""
        self.asks(request)

    @property
    def sizes(self) -> list[int]:
        """How many resources each member has, in the order of their names."""
        members = sorted(self.group.members.items())
        return [len(member.current.assigned) for _, member in members]

    @property
    def causes(self) -> list[Why]:
        """What has raised the epochs so far."""
        records = map(decode, self.control.read(0).entries)
        return [record.cause.why for record in records if isinstance(record, GroupMetadata)]

    def settle(self) -> None:
        """Have all beat and compute until nothing more is written."""
        for _ in range(20):
            end = self.group.end
            for name, member in sorted(self.group.members.items()):
                owned = tuple(sorted(member.current.assigned))
                epoch = member.current.member_epoch
                self.asks(self.request(name, owned=owned) if epoch else self.joining(name))
                if self.coordinator.group.state is GroupState.ASSIGNING:
                    self.compute(self.chosen)
            if self.group.end == end:
                return
        raise AssertionError("the group does not come to rest")

    @property
    def chosen(self) -> str:
        """Who is to compute: the lowest id that has not timed out keeps at it."""
        return min(self.group.members)

    def waits(self, milliseconds: int) -> None:
        """Let time pass in which all beat."""
        end = self.now_ms + milliseconds
        while self.now_ms < end:
            self.passes(min(HEARTBEAT_MS, end - self.now_ms))
            self.settle()


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Gently]:
    """`a` ran all eight connectors when `b` came; one has moved."""
    found = Gently.begun(tmp_path)
    yield found
    found.close()


def test_an_imbalance_is_worked_off_one_interval_after_the_other(driver: Gently) -> None:
    seen = [driver.sizes]
    for _ in range(4):
        driver.waits(INTERVAL_MS)
        seen.append(driver.sizes)
    assert seen == [[7, 1], [6, 2], [5, 3], [4, 4], [4, 4]]
    assert driver.causes == [Why.MEMBER_JOINED] * 2 + [Why.MOVES_DUE] * 3
    assert driver.group.schedule == ScheduledRebalance()
    assert driver.group.state is GroupState.STABLE


def test_nothing_moves_before_the_interval_is_over(driver: Gently) -> None:
    end = driver.group.end
    driver.waits(INTERVAL_MS - 1)
    assert (driver.sizes, driver.group.end) == ([7, 1], end)
    driver.waits(1)
    assert driver.sizes == [6, 2]


def test_a_join_while_moves_are_left_finds_no_new_budget_and_the_moves_go_on(
    driver: Gently,
) -> None:
    driver.waits(INTERVAL_MS // 2)
    driver.asks(driver.joining("c"))
    driver.settle()
    assert driver.sizes == [7, 1, 0]
    driver.waits(INTERVAL_MS // 2)
    assert driver.sizes == [6, 1, 1]
    driver.waits(3 * INTERVAL_MS)
    assert driver.sizes == [3, 3, 2]
    assert driver.group.schedule == ScheduledRebalance()


def test_a_drain_while_moves_are_left_is_carried_out_at_once(driver: Gently) -> None:
    driver.send(Cordon("connect", "http://b", drain=True))
    driver.settle()
    assert driver.sizes == [8, 0]
    assert driver.group.schedule == ScheduledRebalance()
    driver.waits(INTERVAL_MS)
    assert driver.causes == [*[Why.MEMBER_JOINED] * 2, Why.WORKER_DRAINED]


def test_a_cordon_while_moves_are_left_ends_them(driver: Gently) -> None:
    driver.send(Cordon("connect", "http://b"))
    driver.waits(2 * INTERVAL_MS)
    assert (driver.sizes, driver.group.schedule) == ([7, 1], ScheduledRebalance())


def test_a_restart_of_the_coordinator_while_moves_are_left_delays_none(driver: Gently) -> None:
    driver.waits(INTERVAL_MS // 2)
    driver.open()
    driver.waits(INTERVAL_MS // 2 - 1)
    assert driver.sizes == [7, 1]
    driver.waits(1)
    assert driver.sizes == [6, 2]


def test_moves_that_came_due_while_the_coordinator_was_down_are_made_once_it_is_back(
    driver: Gently,
) -> None:
    driver.now_ms += 10 * INTERVAL_MS
    driver.open()
    driver.waits(1)
    assert driver.sizes == [6, 2]
    assert driver.causes == [*[Why.MEMBER_JOINED] * 2, Why.MOVES_DUE]


def test_a_wall_clock_that_is_set_back_puts_no_moves_off(driver: Gently) -> None:
    driver.wall_jump_ms = -3_600_000
    driver.waits(INTERVAL_MS)
    assert driver.sizes == [6, 2]


def test_a_wall_clock_that_is_set_forth_makes_them_due(driver: Gently) -> None:
    driver.wall_jump_ms = INTERVAL_MS
    driver.waits(1)
    assert driver.sizes == [6, 2]
