"""Moves that are left wait for static members that are away, and are made when they are back."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from coordination.test_more_moves import INTERVAL_MS, Gently

from fairlead.actors.assignors.built_in import incremental
from fairlead.actors.messages.commands import AddressedReply
from fairlead.actors.messages.members import Heartbeat
from fairlead.events.model import GroupState, Why
from fairlead.events.records import ScheduledRebalance
from fairlead_tests.coordination.driver import told

JOINED = [Why.MEMBER_JOINED] * 2
LONG_MS = 4 * INTERVAL_MS
"""Less than who is away is waited for."""


class Static(Gently):
    """A driver whose members are static; those that are away do not beat."""

    def joining(self, member: str) -> Heartbeat:
        """The join of a member, or with another digit behind its name of who follows it."""
        seat = member[0]
        return replace(super().joining(member), instance_id=f"i-{seat}", url=f"http://{seat}")

    def leave(self, *members: str) -> None:
        """Have members leave for a while."""
        for each in members:
            self.asks(self.request(each, -2, instance_id=f"i-{each[0]}"))

    def settle(self) -> None:
        """Have all that are there beat and compute until nothing more is written."""
        for _ in range(20):
            end = self.group.end
            for name, member in sorted(self.group.members.items()):
                current = member.current
                if current.member_epoch >= 0:
                    owned = tuple(sorted(current.assigned))
                    is_in = current.member_epoch > 0
                    asked = self.request(name, owned=owned) if is_in else self.joining(name)
                    self.heeds(asked)
            if self.group.end == end:
                return
        raise AssertionError("the group does not come to rest")

    def passes(self, milliseconds: int) -> list[AddressedReply]:
        """Let time pass, and members do what they are told when they have waited for it."""
        said = super().passes(milliseconds)
        self.carried_out(said)
        return said

    def heeds(self, request: Heartbeat) -> None:
        """Have members do what they are told once this is asked."""
        self.carried_out(self.asks(request))

    def carried_out(self, said: list[AddressedReply]) -> None:
        """Have who is told to compute do so."""
        for name, (error, _) in told(said).items():
            if error == "COMPUTE_ASSIGNMENT":
                self.carried_out(self.compute(name))

    def rests(self) -> None:
        """See that all moves are made, and that nothing more is written for a long time."""
        assert (self.group.schedule, self.group.state) == (ScheduledRebalance(), GroupState.STABLE)
        end = self.group.end
        self.waits(LONG_MS)
        assert self.group.end == end


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Static]:
    """`a` ran all eight connectors when `b` came; one has moved."""
    found = Static.begun(tmp_path)
    yield found
    found.close()


@pytest.mark.parametrize("wall_jump_ms", [0, -3_600_000], ids=["in time", "set back"])
def test_moves_that_are_due_while_all_are_away_are_made_when_somebody_is_back(
    driver: Static, wall_jump_ms: int
) -> None:
    driver.leave("a", "b")
    end = driver.group.end
    driver.wall_jump_ms = wall_jump_ms
    driver.waits(LONG_MS)
    assert (driver.group.end, driver.causes) == (end, JOINED)
    for name in ("a2", "b2"):
        driver.heeds(driver.joining(name))
    driver.waits(1_000)
    assert (driver.sizes, driver.causes) == ([6, 2], [*JOINED, Why.MOVES_DUE])
    driver.waits(2 * INTERVAL_MS)
    assert driver.sizes == [4, 4]
    driver.rests()


def test_a_restart_of_the_coordinator_while_all_are_away_forgets_no_moves(driver: Static) -> None:
    driver.leave("a", "b")
    driver.waits(LONG_MS)
    driver.open()
    driver.waits(INTERVAL_MS)
    assert driver.causes == JOINED
    driver.heeds(driver.joining("a2"))
    driver.waits(1_000)
    assert driver.causes == [*JOINED, Why.MOVES_DUE]


def test_a_target_that_the_coordinator_computes_while_all_are_away_loses_no_moves(
    driver: Static,
) -> None:
    driver.leave("a", "b")
    due_ms = driver.group.schedule.again_at_ms
    driver.put("I")
    assert driver.group.target.computed_by == "coordinator"
    assert driver.group.schedule == ScheduledRebalance(again_at_ms=due_ms)
    driver.waits(LONG_MS)
    for name in ("a2", "b2"):
        driver.heeds(driver.joining(name))
    driver.waits(LONG_MS)
    assert (sorted(driver.sizes), driver.group.target.assignor) == ([4, 5], incremental.NAME)
    driver.rests()


def test_a_round_while_the_one_that_was_to_take_is_away_is_followed_by_others(
    driver: Static,
) -> None:
    driver.leave("b")
    driver.waits(LONG_MS)
    assert driver.sizes == [7, 0]
    driver.heeds(driver.joining("b2"))
    driver.waits(LONG_MS)
    assert driver.sizes == [4, 4]
    driver.rests()


def test_rounds_end_with_the_removal_of_who_is_away(driver: Static) -> None:
    driver.leave("b")
    driver.waits(driver.settings.max_delay_ms + INTERVAL_MS)
    assert driver.causes[-1] is Why.SESSION_EXPIRED
    driver.waits(driver.settings.max_delay_ms + INTERVAL_MS)
    assert driver.sizes == [8]
    driver.rests()


def test_moves_that_are_left_are_over_when_all_who_were_away_are_removed(driver: Static) -> None:
    driver.leave("a", "b")
    driver.waits(driver.settings.max_delay_ms + INTERVAL_MS)
    assert (driver.group.state, driver.group.schedule) == (GroupState.EMPTY, ScheduledRebalance())
    end = driver.group.end
    driver.waits(LONG_MS)
    assert driver.group.end == end
