"""Operators' commands where time, held requests and the offset log come in."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.actors.group.orders.remove import GOODBYE_MS
from fairlead.actors.group.shard import AddressedReply
from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import HeartbeatReply
from fairlead.actors.messages.orders import (
    ConfigureGroup,
    Cordon,
    DeleteGroup,
    Expect,
    RemoveMember,
)
from fairlead.actors.messages.work import CommitOffsets, CommitReply
from fairlead.events.group import token_of
from fairlead.events.model import (
    Advance,
    Cause,
    Commit,
    CommitId,
    GroupState,
    Manifest,
    Why,
)
from fairlead_tests.coordination.office import HEARTBEAT_MS, SESSION_MS, Office, told
from fairlead_tests.decider import resource


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """A group of `a`, at rest, which runs connector A."""
    office = Office.at(tmp_path)
    office.put("A")
    office.asks(office.joining("a"))
    office.compute("a")
    office.beat("a")
    office.asks(office.full("a", "A"))
    assert office.group.state is GroupState.STABLE
    yield office
    office.close()


def errors(said: list[AddressedReply]) -> list[Error]:
    return [each.reply.error for each in said if isinstance(each.reply, CommandReply)]


def test_who_is_removed_by_force_is_answered_no_more_and_goes_with_its_session(
    office: Office,
) -> None:
    assert office.beat("a") == []
    since_ms = office.now_ms
    office.passes(1)
    office.send(RemoveMember("connect", "a", force=True, principal="ann"))
    for _ in range(3):
        assert office.passes(HEARTBEAT_MS) == []
        assert office.asks(office.full("a", "A")) == []
    assert office.passes(since_ms + SESSION_MS - 1 - office.now_ms) == []
    assert set(office.group.members) == {"a"}
    office.passes(1)
    assert office.group.members == {}
    assert office.group.bump is not None
    assert (office.group.bump.cause, office.group.bump.actor) == (
        Cause(Why.MEMBER_REMOVED, "http://a"),
        "ann",
    )
    assert told(office.asks(office.joining("a"))) == {"a": ("COMPUTE_ASSIGNMENT", "")}


def test_after_a_restart_who_is_removed_by_force_is_still_not_answered(office: Office) -> None:
    office.send(RemoveMember("connect", "a", force=True))
    office.open()
    assert office.beat("a") == []
    office.passes(SESSION_MS)
    assert office.group.members == {}


def test_the_goodbye_of_who_is_removed_by_force_is_heard(office: Office) -> None:
    office.send(RemoveMember("connect", "a", force=True))
    assert told(office.asks(office.request("a", -1))) == {"a": ("NONE", None)}
    assert (office.group.members, office.group.worker_orders) == ({}, {})


def test_an_order_wakes_who_has_to_compute_for_it(office: Office) -> None:
    assert office.beat("a") == []
    assert told(office.send(Cordon("connect", "a"))) == {"a": ("COMPUTE_ASSIGNMENT", None)}


def test_an_expected_worker_is_waited_for_by_the_clock(office: Office) -> None:
    office.asks(office.joining("b"))
    office.compute("a")
    office.beat("a")
    office.beat("b")
    office.send(Expect("connect", "a", 60_000))
    until_ms = office.now_ms + 60_000
    while "a" in office.group.members or office.group.state is not GroupState.STABLE:
        office.passes(HEARTBEAT_MS)
        if told(office.asks(office.full("b", ""))).get("b", ("", ""))[0] == "COMPUTE_ASSIGNMENT":
            office.compute("b")
    assert office.group.schedule.parked.keys() == {resource("A")}
    while office.now_ms < until_ms - HEARTBEAT_MS:
        office.passes(HEARTBEAT_MS)
        office.asks(office.full("b", ""))
    assert office.group.schedule.fired == frozenset()
    office.passes(HEARTBEAT_MS)
    assert office.group.schedule.fired == {resource("A")}


def test_a_session_of_the_groups_own_is_good_at_once_and_after_a_restart(office: Office) -> None:
    office.send(ConfigureGroup("connect", {"session.timeout.ms": "20000"}))
    for _ in range(2):
        office.asks(office.full("a", "A"))
        office.passes(20_000 - 1)
        assert set(office.group.members) == {"a"}
        office.open()
    office.passes(20_000)
    assert office.group.members == {}


def commit(office: Office) -> Commit:
    """Have `a` commit a batch of task A-0, which is not published yet."""
    token = token_of(office.group, "a", resource("A-0"))
    assert token is not None
    commit_id = CommitId("A", 0, token, 0)
    step = Advance({"file": "x"}, None, {"end": 1})
    batch = Commit(commit_id, (step,), Manifest("/sink", "_fairlead/0", 1, 10, 1), 1)
    office.send(CommitOffsets("connect", "a", (batch,)))
    return batch


def test_a_group_is_not_deleted_before_what_counts_is_published(office: Office) -> None:
    office.split("a", "A", 1)
    office.beat("a")
    office.compute("a")
    office.asks(office.full("a", "A"))
    commit(office)
    assert errors(office.send(DeleteGroup("connect"))) == [Error.NON_EMPTY_GROUP]
    office.asks(office.request("a", -1))
    (refused,) = office.send(DeleteGroup("connect"))
    assert refused.reply == CommandReply(
        Error.NON_EMPTY_GROUP,
        "batches of A count, but are not published yet: start a worker, which publishes them,"
        " and delete the group then",
    )


def test_a_group_that_is_deleted_is_dead_and_lives_again(office: Office) -> None:
    office.asks(office.request("a", -1))
    epoch = office.group.group_epoch
    assert errors(office.send(DeleteGroup("connect"))) == [Error.NONE]
    office.open()
    assert (office.group.state, office.group.connectors) == (GroupState.DEAD, {})
    assert told(office.asks(office.request("a", 4))) == {"a": ("GROUP_ID_NOT_FOUND", None)}
    assert told(office.asks(office.joining("a"))) == {"a": ("COMPUTE_ASSIGNMENT", "")}
    assert office.group.group_epoch == epoch + 1


def test_nobody_is_held_by_an_interval_that_it_was_not_told(office: Office) -> None:
    """Its request would time out, and it would fence itself, before the answer comes."""
    office.passes(HEARTBEAT_MS)
    longer = {"heartbeat.interval.ms": "9000", "session.timeout.ms": "30000"}
    office.send(ConfigureGroup("connect", longer))
    (answer,) = office.beat("a")
    assert isinstance(answer.reply, HeartbeatReply)
    assert (answer.reply.heartbeat_interval_ms, answer.reply.session_timeout_ms) == (9_000, 30_000)
    assert office.beat("a") == []
    assert office.passes(9_000 - 1) == []
    assert told(office.passes(1)) == {"a": ("NONE", None)}


def test_no_batch_of_a_deleted_group_counts_in_the_next(office: Office) -> None:
    office.split("a", "A", 1)
    office.beat("a")
    office.compute("a")
    office.asks(office.full("a", "A"))
    old = commit(office)
    office.send(CommitOffsets("connect", "a", (), (old.commit_id,)))
    office.asks(office.request("a", -1))
    assert errors(office.send(DeleteGroup("connect"))) == [Error.NONE]
    office.put("A")
    office.asks(office.joining("a"))
    office.compute("a")
    office.beat("a")
    office.split("a", "A", 1)
    office.asks(office.full("a", "A"))
    office.compute("a")
    office.asks(office.full("a", "A"))
    token = token_of(office.group, "a", resource("A-0"))
    assert token is not None
    assert token > old.commit_id.token
    step = Advance({"file": "x"}, {"end": 1}, {"end": 2})
    late = replace(old, commit_id=old.commit_id._replace(batch=1), advances=(step,))
    new = replace(late, commit_id=CommitId("A", 0, token, 0))
    (answer,) = office.send(CommitOffsets("connect", "a", (late, new)))
    assert isinstance(answer.reply, CommitReply)
    assert [each.error for each in answer.reply.verdicts] == [Error.FENCED, Error.NONE]


def test_who_is_removed_and_does_not_leave_by_itself_goes_once_it_holds_nothing(
    office: Office,
) -> None:
    office.send(RemoveMember("connect", "a", principal="ann"))
    office.compute("a")
    office.beat("a")
    office.asks(office.full("a"))
    assert set(office.group.members) == {"a"}
    office.passes(GOODBYE_MS)
    assert (office.group.members, office.group.worker_orders) == ({}, {})
    assert office.group.bump is not None
    assert (office.group.bump.cause.why, office.group.bump.actor) == (Why.MEMBER_REMOVED, "ann")
