"""Targets that the process computes beside its loop: nobody waits for them but who gets them."""

import os
import select
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.group.computing.compute import run_assignor
from fairlead.actors.group.evolving_group import HostComputation
from fairlead.actors.messages.computing import Assignment, EndComputation, Snapshot
from fairlead.actors.shards.actor import TargetComputer
from fairlead.events.log.space import DiskSpace
from fairlead_tests.consumer.driver import SETTINGS, ConsumerDriver, topic

INTERVAL_MS = 1_000
ALL = "t4-0 t4-1 t4-2 t4-3"


@pytest.fixture
def driver() -> ConsumerDriver:
    settings = replace(SETTINGS, assignment_interval_ms=INTERVAL_MS)
    driver = ConsumerDriver(settings=settings, topics={"t4": topic("t4", 4)})
    driver.shard.offload()
    return driver


def begun(driver: ConsumerDriver) -> HostComputation:
    found = driver.shard.take_computation()
    assert found is not None
    assert driver.shard.take_computation() is None, "it is handed out once"
    return found


def begin(driver: ConsumerDriver) -> HostComputation:
    """Let a second member join a group with a target, and return the computation for both."""
    driver.joins("A", "t4")
    driver.settles()
    driver.passes(INTERVAL_MS)
    driver.joins("B", "t4")
    return begun(driver)


def end(driver: ConsumerDriver, computation: HostComputation, **ended: Any) -> None:
    """Tell the group what was computed, by default what its assignor says."""
    found = run_assignor(computation.assignor, computation.computes, computation.snapshot)
    told = EndComputation(computation.number, *found)
    driver.shard.submit(replace(told, **ended), None, driver.now)
    driver.flush()


def test_the_first_members_of_a_group_get_their_target_at_once(driver: ConsumerDriver) -> None:
    reply = driver.joins("A", "t4")
    assert (reply.member_epoch, driver.shard.take_computation()) == (2, None)
    driver.settles()
    assert driver.holds() == {"A": ALL}


def test_a_join_is_answered_before_its_target_is_computed(driver: ConsumerDriver) -> None:
    computation = begin(driver)
    assert (driver.group.assignment_epoch, driver.group.group_epoch) == (2, 3)
    assert driver.group.members["B"].current.member_epoch == 2
    end(driver, computation)
    assert driver.group.assignment_epoch == 3
    driver.settles()
    assert driver.holds() == {"A": "t4-0 t4-1", "B": "t4-2 t4-3"}


def test_who_joins_meanwhile_gets_the_next_target_an_interval_later(driver: ConsumerDriver) -> None:
    first = begin(driver)
    for member_id in ("C", "D"):
        driver.joins(member_id, "t4")
    assert driver.shard.take_computation() is None, "one at a time"
    end(driver, first)
    assert (driver.group.assignment_epoch, driver.group.group_epoch) == (3, 5)
    assert driver.shard.take_computation() is None
    driver.passes(INTERVAL_MS)
    end(driver, begun(driver))
    driver.settles()
    assert sorted(map(len, driver.holds().values())) == [len("t4-0")] * 4


def test_a_target_of_members_that_have_left_meanwhile_is_none(driver: ConsumerDriver) -> None:
    computation = begin(driver)
    driver.beats("A", -1)
    driver.beats("B", -1)
    end(driver, computation)
    assert (driver.group.members, driver.group.assignment_epoch) == ({}, 2)
    driver.joins("C", "t4")
    driver.passes(INTERVAL_MS)
    end(driver, computation)  # an earlier one counts for nothing
    assert driver.group.assignment_epoch == 2
    end(driver, begun(driver))
    driver.settles()
    assert driver.holds() == {"C": ALL}


def test_a_computation_that_fails_or_never_ends_is_tried_again(driver: ConsumerDriver) -> None:
    end(driver, begin(driver), assignment=None, error="uniform: ValueError: no")
    assert driver.group.target.error == "uniform: ValueError: no"
    _live(driver, 20)  # the back-off
    again = begun(driver)
    _live(driver, 80)  # as long as a computation may take, and the next back-off
    last = begun(driver)
    assert last.number > again.number
    end(driver, again)  # too late
    assert driver.group.target.error == "no member computed an assignment in time"
    end(driver, last)
    driver.settles()
    assert driver.holds() == {"A": "t4-0 t4-1", "B": "t4-2 t4-3"}


def test_a_target_that_could_not_be_written_is_computed_once_the_disk_has_room(
    driver: ConsumerDriver, tmp_path: Path
) -> None:
    computation = begin(driver)
    driver.shard.set_disk_space(DiskSpace(tmp_path, 0), driver.now)
    end(driver, computation)
    assert driver.group.assignment_epoch == 2
    driver.shard.set_disk_space(DiskSpace(tmp_path, 1 << 40), driver.now)
    _live(driver, 2)
    end(driver, begun(driver))
    assert (driver.group.assignment_epoch, driver.group.target.error) == (3, "")


def _live(driver: ConsumerDriver, seconds: int) -> None:
    """Let time pass in which all members send heartbeats."""
    for _ in range(seconds):
        for member_id in [*driver.group.members]:
            driver.acknowledges(member_id)
        driver.passes(1_000)


def test_a_restart_computes_anew_what_was_not_done(driver: ConsumerDriver) -> None:
    begin(driver)
    driver.open(is_told=False)
    driver.shard.offload()
    driver.sees(driver.topics)
    driver.acknowledges("A")
    end(driver, begun(driver))
    driver.settles()
    assert driver.holds() == {"A": "t4-0 t4-1", "B": "t4-2 t4-3"}


def test_a_thread_computes_and_wakes_the_process(driver: ConsumerDriver) -> None:
    computation, computer = begin(driver), TargetComputer()

    def fails(_: Snapshot) -> Assignment:
        raise ValueError("no")

    computer.start({"g": computation, "h": computation._replace(computes=fails)})
    found: dict[str, EndComputation] = {}
    while len(found) < 2:
        select.select([computer], [], [], 10)
        found |= dict(computer.ended())
    expected = run_assignor("uniform", computation.computes, computation.snapshot)
    assert found == {
        "g": EndComputation(computation.number, *expected),
        "h": EndComputation(computation.number, None, "uniform: ValueError: no"),
    }
    assert [*computer.ended()] == []
    os.close(computer.fileno())
