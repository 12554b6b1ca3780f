"""Operators' commands where time, held requests and the offset log come in."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.actors.group.orders.departures import GOODBYE_MS
from fairlead.actors.group.timers import LOOK_MS, LOOK_SOON_MS
from fairlead.actors.messages.commands import AddressedReply, CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import CommitOffsets, CommitReply, HeartbeatReply
from fairlead.actors.messages.orders import (
    ConfigureGroup,
    Cordon,
    DeleteGroup,
    Expect,
    RemoveMember,
)
from fairlead.events.commits import Advance, Commit, CommitId, Manifest
from fairlead.events.group import token_of
from fairlead.events.model import Cause, GroupState, Why
from fairlead_tests.coordination.driver import HEARTBEAT_MS, SESSION_MS, CoordinatorDriver, told
from fairlead_tests.decider import resource


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[CoordinatorDriver]:
    """A group of `a`, at rest, which runs connector A."""
    driver = CoordinatorDriver.at(tmp_path)
    driver.put("A")
    driver.asks(driver.joining("a"))
    driver.compute("a")
    driver.beat("a")
    driver.asks(driver.full("a", "A"))
    assert driver.group.state is GroupState.STABLE
    yield driver
    driver.close()


def errors(said: list[AddressedReply]) -> list[Error]:
    return [each.reply.error for each in said if isinstance(each.reply, CommandReply)]


def test_who_is_removed_by_force_is_answered_no_more_and_goes_with_its_session(
    driver: CoordinatorDriver,
) -> None:
    assert driver.beat("a") == []
    since_ms = driver.now_ms
    driver.passes(1)
    driver.send(RemoveMember("connect", "a", force=True, principal="ann"))
    for _ in range(3):
        assert driver.passes(HEARTBEAT_MS) == []
        assert driver.asks(driver.full("a", "A")) == []
    assert driver.passes(since_ms + SESSION_MS - 1 - driver.now_ms) == []
    assert set(driver.group.members) == {"a"}
    driver.passes(1)
    assert driver.group.members == {}
    assert driver.group.bump is not None
    assert (driver.group.bump.cause, driver.group.bump.actor) == (
        Cause(Why.MEMBER_REMOVED, "http://a"),
        "ann",
    )
    assert told(driver.asks(driver.joining("a"))) == {"a": ("COMPUTE_ASSIGNMENT", "")}


def test_after_a_restart_who_is_removed_by_force_is_still_not_answered(
    driver: CoordinatorDriver,
) -> None:
    driver.send(RemoveMember("connect", "a", force=True))
    driver.open()
    assert driver.beat("a") == []
    driver.passes(SESSION_MS)
    assert driver.group.members == {}


def test_the_goodbye_of_who_is_removed_by_force_is_heard(driver: CoordinatorDriver) -> None:
    driver.send(RemoveMember("connect", "a", force=True))
    assert told(driver.asks(driver.request("a", -1))) == {"a": ("NONE", None)}
    assert (driver.group.members, driver.group.worker_orders) == ({}, {})


def test_a_removal_is_looked_at_often_only_while_it_waits_for_a_member_to_hold_nothing(
    driver: CoordinatorDriver,
) -> None:
    def looks_again_in_ms() -> int:
        driver.passes(1)
        return driver.coordinator.next_tick_ms(driver.now) - driver.now_ms

    assert looks_again_in_ms() == LOOK_MS
    driver.send(RemoveMember("connect", "a"))
    assert looks_again_in_ms() == LOOK_SOON_MS
    driver.send(RemoveMember("connect", "a", force=True))
    assert looks_again_in_ms() == LOOK_MS, "its session has a timer"


def test_an_order_wakes_who_has_to_compute_for_it(driver: CoordinatorDriver) -> None:
    assert driver.beat("a") == []
    assert told(driver.send(Cordon("connect", "a"))) == {"a": ("COMPUTE_ASSIGNMENT", None)}


def test_an_expected_worker_is_waited_for_by_the_clock(driver: CoordinatorDriver) -> None:
    driver.asks(driver.joining("b"))
    driver.compute("a")
    driver.beat("a")
    driver.beat("b")
    driver.send(Expect("connect", "a", 60_000))
    until_ms = driver.now_ms + 60_000
    while "a" in driver.group.members or driver.group.state is not GroupState.STABLE:
        driver.passes(HEARTBEAT_MS)
        if told(driver.asks(driver.full("b", ""))).get("b", ("", ""))[0] == "COMPUTE_ASSIGNMENT":
            driver.compute("b")
    assert driver.group.schedule.parked.keys() == {resource("A")}
    while driver.now_ms < until_ms - HEARTBEAT_MS:
        driver.passes(HEARTBEAT_MS)
        driver.asks(driver.full("b", ""))
    assert driver.group.schedule.fired == frozenset()
    driver.passes(HEARTBEAT_MS)
    assert driver.group.schedule.fired == {resource("A")}


def test_a_session_of_the_groups_own_is_good_at_once_and_after_a_restart(
    driver: CoordinatorDriver,
) -> None:
    driver.send(ConfigureGroup("connect", {"session.timeout.ms": "20000"}))
    for _ in range(2):
        driver.asks(driver.full("a", "A"))
        driver.passes(20_000 - 1)
        assert set(driver.group.members) == {"a"}
        driver.open()
    driver.passes(20_000)
    assert driver.group.members == {}


def commit(driver: CoordinatorDriver) -> Commit:
    """Have `a` commit a batch of task A-0, which is not published yet."""
    token = token_of(driver.group, "a", resource("A-0"))
    assert token is not None
    commit_id = CommitId("A", 0, token, 0)
    step = Advance({"file": "x"}, None, {"end": 1})
    batch = Commit(commit_id, (step,), Manifest("/sink", "_fairlead/0", 1, 10, 1), 1)
    driver.send(CommitOffsets("connect", "a", (batch,)))
    return batch


def test_a_group_is_not_deleted_before_what_counts_is_published(driver: CoordinatorDriver) -> None:
    driver.split("a", "A", 1)
    driver.beat("a")
    driver.compute("a")
    driver.asks(driver.full("a", "A"))
    commit(driver)
    assert errors(driver.send(DeleteGroup("connect"))) == [Error.NON_EMPTY_GROUP]
    driver.asks(driver.request("a", -1))
    (refused,) = driver.send(DeleteGroup("connect"))
    assert refused.reply == CommandReply(
        Error.NON_EMPTY_GROUP,
        "batches of A count, but are not published yet: start a worker, which publishes them,"
        " and delete the group then",
    )


def test_a_group_that_is_deleted_is_dead_and_lives_again(driver: CoordinatorDriver) -> None:
    driver.asks(driver.request("a", -1))
    epoch = driver.group.group_epoch
    assert errors(driver.send(DeleteGroup("connect"))) == [Error.NONE]
    driver.open()
    assert (driver.group.state, driver.group.connectors) == (GroupState.DEAD, {})
    assert told(driver.asks(driver.request("a", 4))) == {"a": ("GROUP_ID_NOT_FOUND", None)}
    assert told(driver.asks(driver.joining("a"))) == {"a": ("COMPUTE_ASSIGNMENT", "")}
    assert driver.group.group_epoch == epoch + 1


def test_nobody_is_held_by_an_interval_that_it_was_not_told(driver: CoordinatorDriver) -> None:
    """Its request would time out, and it would fence itself, before the answer comes."""
    driver.passes(HEARTBEAT_MS)
    longer = {"heartbeat.interval.ms": "9000", "session.timeout.ms": "30000"}
    driver.send(ConfigureGroup("connect", longer))
    (answer,) = driver.beat("a")
    assert isinstance(answer.reply, HeartbeatReply)
    assert (answer.reply.heartbeat_interval_ms, answer.reply.session_timeout_ms) == (9_000, 30_000)
    assert driver.beat("a") == []
    assert driver.passes(9_000 - 1) == []
    assert told(driver.passes(1)) == {"a": ("NONE", None)}


def test_no_batch_of_a_deleted_group_counts_in_the_next(driver: CoordinatorDriver) -> None:
    driver.split("a", "A", 1)
    driver.beat("a")
    driver.compute("a")
    driver.asks(driver.full("a", "A"))
    old = commit(driver)
    driver.send(CommitOffsets("connect", "a", (), (old.commit_id,)))
    driver.asks(driver.request("a", -1))
    assert errors(driver.send(DeleteGroup("connect"))) == [Error.NONE]
    driver.put("A")
    driver.asks(driver.joining("a"))
    driver.compute("a")
    driver.beat("a")
    driver.split("a", "A", 1)
    driver.asks(driver.full("a", "A"))
    driver.compute("a")
    driver.asks(driver.full("a", "A"))
    token = token_of(driver.group, "a", resource("A-0"))
    assert token is not None
    assert token > old.commit_id.token
    step = Advance({"file": "x"}, {"end": 1}, {"end": 2})
    late = replace(old, commit_id=old.commit_id._replace(batch=1), advances=(step,))
    new = replace(late, commit_id=CommitId("A", 0, token, 0))
    (answer,) = driver.send(CommitOffsets("connect", "a", (late, new)))
    assert isinstance(answer.reply, CommitReply)
    assert [each.error for each in answer.reply.verdicts] == [Error.FENCED, Error.NONE]


def test_who_is_removed_and_does_not_leave_by_itself_goes_once_it_holds_nothing(
    driver: CoordinatorDriver,
) -> None:
    driver.send(RemoveMember("connect", "a", principal="ann"))
    driver.compute("a")
    driver.beat("a")
    driver.asks(driver.full("a"))
    assert set(driver.group.members) == {"a"}
    driver.passes(GOODBYE_MS)
    assert (driver.group.members, driver.group.worker_orders) == ({}, {})
    assert driver.group.bump is not None
    assert (driver.group.bump.cause.why, driver.group.bump.actor) == (Why.MEMBER_REMOVED, "ann")
