"""Targets that the coordinator computes itself (PROTOCOL §5)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fairlead.actors.assignors.built_in.catalogue import SERVER_ASSIGNORS
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import EndInterval, ExpireSession, RetryAssignor
from fairlead.actors.messages.computing import Assignment, InstallReply, Snapshot
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import PutConnector
from fairlead.events.model import Cause, Why
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    TargetAssignment,
)
from fairlead_tests.decider import COMPUTE, COOPERATIVE, JOIN, Decider, resource, resources

SERVED = replace(JOIN, assignors=None, server_assignor="uniform")
ALL = "A A-0 B B-0"


@pytest.fixture
def decider() -> Decider:
    """A group with work and without members."""
    decider = Decider(GroupSettings(leave_delay_ms=0))
    decider.configure(ALL)
    return decider


def test_the_target_is_part_of_the_command_that_made_it_due(decider: Decider) -> None:
    joined = decider.carry_out(replace(SERVED, member_id="W1", url="http://w1"))
    assert [type(record) for record in joined.records] == [
        MemberMetadata,
        GroupMetadata,
        TargetAssignment,
        CurrentAssignment,
    ]
    assert joined.reply == replace(
        decider.beat("W1", ""),
        assignment=resources(ALL),
        log_offset=decider.group.end,
        sequence=0,
    )
    target = decider.group.target
    assert (target.assignment_epoch, target.assignor, target.computed_by, target.members) == (
        1,
        "uniform",
        "coordinator",
        {"W1": resources(ALL)},
    )
    put = decider.carry_out(PutConnector("connect", "C", {}))
    assert type(put.records[-1]) is TargetAssignment
    assert decider.group.target_of == {"W1": resources(ALL) | resources("C")}


def test_a_departure_is_answered_by_a_target_in_the_same_command(decider: Decider) -> None:
    decider.join("W1", SERVED)
    decider.join("W2", SERVED)
    decider.settle()
    decider.carry_out(Heartbeat("connect", "W1", -1, "1"))
    assert decider.group.target_of == {"W2": resources(ALL)}
    decider.carry_out(Heartbeat("connect", "W2", -1, "1"))
    assert (decider.group.group_epoch, decider.group.assignment_epoch) == (4, 3)


def test_what_a_crash_loses_is_parked(decider: Decider) -> None:
    decider.join("W1", SERVED)
    decider.join("W2", SERVED)
    decider.settle()
    lost = decider.group.target_of["W2"]
    decider.carry_out(ExpireSession("W2"))
    assert dict(decider.group.schedule.parked) == dict.fromkeys(lost, 300_000)
    assert decider.group.target_of == {"W1": resources(ALL) - lost}
    decider.join("W9", replace(SERVED, url="http://w2"))
    assert decider.group.target_of == {"W1": resources(ALL) - lost, "W9": lost}


def test_as_long_as_any_member_names_one_the_coordinator_computes(
    decider: Decider,
) -> None:
    assert decider.join("W1").error is COMPUTE
    snapshot = decider.prepare("W1")
    assert decider.join("W2", SERVED).error is Error.NONE
    assert decider.group.target.computed_by == "coordinator"
    assert decider.install("W1", snapshot).error is Error.UNKNOWN_MEMBER_ID
    assert decider.join("W3").error is Error.NONE, "clients' assignors matter no more"
    decider.carry_out(Heartbeat("connect", "W2", -1, "1"))
    assert decider.beat("W1", "").error is COMPUTE


def test_the_server_assignor_is_the_one_that_most_name_ties_by_name(
    decider: Decider,
) -> None:
    names = list[str]()
    for member_id, name in (("W1", "uniform"), ("W2", "range"), ("W3", "uniform")):
        decider.join(member_id, replace(SERVED, server_assignor=name))
        names.append(decider.group.target.assignor)
    assert names == ["uniform", "range", "uniform"]


def test_an_unknown_server_assignor_is_refused_with_those_that_there_are(
    decider: Decider,
) -> None:
    reply = decider.join("W1", replace(SERVED, server_assignor="sticky"))
    assert (reply.error, reply.message) == (
        Error.UNSUPPORTED_ASSIGNOR,
        "there is no server assignor 'sticky': name uniform or range, or list ClientAssignors",
    )
    assert decider.group.members == {}


def test_to_name_one_mode_ends_the_other_and_a_preference_does_not_bump(
    decider: Decider,
) -> None:
    decider.join("W1")
    decider.compute()
    beat = Heartbeat("connect", "W1", 0, "1", owned=())
    decider.heartbeat(replace(beat, server_assignor="range"))
    metadata = decider.member("W1").metadata
    assert (metadata.server_assignor, metadata.assignors) == ("range", ())
    assert (decider.group.group_epoch, decider.group.target.assignor) == (1, "balanced")
    decider.carry_out(PutConnector("connect", "C", {}))
    assert (decider.group.group_epoch, decider.group.target.assignor) == (2, "range")

    again = replace(beat, member_epoch=1, assignors=COOPERATIVE)
    assert decider.heartbeat(again).error is COMPUTE, "a list of assignors that changed bumps"
    metadata = decider.member("W1").metadata
    assert (metadata.server_assignor, metadata.assignors) == (None, COOPERATIVE)


def test_a_target_that_is_due_when_the_mode_changes_is_computed_at_once(
    decider: Decider,
) -> None:
    decider.join("W1")
    reply = decider.heartbeat(
        Heartbeat("connect", "W1", 0, "1", owned=(), server_assignor="uniform")
    )
    assert (reply.error, reply.assignment) == (Error.NONE, resources(ALL))
    assert (decider.group.group_epoch, decider.soft.computation) == (1, None)


def test_the_last_that_names_one_may_not_leave_a_group_that_nobody_can_compute_for(
    decider: Decider,
) -> None:
    decider.join("W1", SERVED)
    other = replace(COOPERATIVE[0], name="other")
    decider.join("W2", replace(JOIN, assignors=(other,)))
    decider.settle()
    change = Heartbeat("connect", "W1", 2, "1", assignors=COOPERATIVE)
    assert decider.heartbeat(change).error is Error.UNSUPPORTED_ASSIGNOR
    decider.carry_out(Heartbeat("connect", "W1", -1, "1"))
    assert decider.beat("W2", "").error is COMPUTE, "it was able all the time"


def raising(_: Snapshot) -> Assignment:
    raise RuntimeError("no luck")


def wrong(snapshot: Snapshot) -> Assignment:
    return Assignment(dict.fromkeys(snapshot.members, resources("Z")))


FAILURES = {
    "raises": (raising, "uniform: RuntimeError: no luck"),
    "wrong": (wrong, "uniform: Z is not configured"),
}


@pytest.mark.parametrize(("assignor", "message"), FAILURES.values(), ids=FAILURES)
def test_a_server_assignor_that_fails_costs_the_attempt_and_not_the_group(
    decider: Decider,
    monkeypatch: pytest.MonkeyPatch,
    assignor: Callable[[Snapshot], Assignment],
    message: str,
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(SERVER_ASSIGNORS, "uniform", assignor)
        assert decider.join("W1", SERVED).error is Error.NONE
        target = decider.group.target
        assert (target.error, target.failures, target.retry_at_ms) == (message, 1, 5_000)
        assert (target.assignment_epoch, target.members) == (1, {})
        decider.join("W2", SERVED)
        assert decider.group.target.failures == 2
    decider.now_ms = 10_000
    retried = decider.carry_out(RetryAssignor())
    assert retried.records[0] == GroupMetadata(3, Cause(Why.ASSIGNOR_RETRY), 10_000)
    target = decider.group.target
    assert (target.error, target.failures, target.retry_at_ms) == ("", 0, 0)
    assert target.members.keys() == {"W1", "W2"}


def test_within_the_assignment_interval_bumps_wait_and_the_tick_after_it_serves_all() -> None:
    decider = Decider(GroupSettings(assignment_interval_ms=1_000))
    decider.configure(ALL)
    decider.join("W1", SERVED)
    assert decider.group.assignment_epoch == 1, "the first is not kept waiting"
    decider.join("W2", SERVED)
    decider.join("W3", SERVED)
    assert (decider.group.group_epoch, decider.group.assignment_epoch) == (3, 1)
    ended = decider.carry_out(EndInterval())
    assert [type(record) for record in ended.records] == [TargetAssignment]
    assert (decider.group.assignment_epoch, decider.soft.is_in_interval) == (3, True)
    assert decider.carry_out(EndInterval()).records == ()
    assert decider.soft.is_in_interval is False


def test_after_a_restart_the_next_command_computes_what_is_due() -> None:
    decider = Decider(GroupSettings(assignment_interval_ms=1_000))
    decider.configure("A")
    decider.join("W1", SERVED)
    decider.join("W2", SERVED)
    decider.restart()
    assert (decider.group.group_epoch, decider.group.assignment_epoch) == (2, 1)
    assert decider.beat("W1", "A").member_epoch == 2
    assert decider.group.assignment_epoch == 2


def test_where_nobody_qualifies_after_a_departure_the_built_in_assignor_computes(
    decider: Decider,
) -> None:
    ranges = (("W1", 0, 9, 5), ("W2", 0, 3, 1), ("W3", 4, 6, 6))
    for member_id, low, high, version in ranges:
        assignor = replace(
            COOPERATIVE[0], minimum_version=low, maximum_version=high, version=version
        )
        decider.join(member_id, replace(JOIN, assignors=(assignor,)))
    decider.settle()
    assert decider.group.target.computed_by == "W1"
    decider.carry_out(Heartbeat("connect", "W1", -1, "1"))
    target = decider.group.target
    assert (target.assignor, target.computed_by) == ("uniform", "coordinator")
    assert set().union(*target.members.values()) == resources(ALL)
    decider.settle()


def test_a_server_assignor_sees_that_a_worker_is_not_warm() -> None:
    decider = Decider()
    decider.configure("A")
    cold = replace(COOPERATIVE[0], metadata=b'{"capacity":0}')
    decider.join("W1", replace(JOIN, assignors=(cold,)))
    decider.join("W2", SERVED)
    assert decider.group.target_of == {"W1": resources(""), "W2": resources("A")}


def test_what_is_handed_in_after_the_coordinator_computed_is_dropped(
    decider: Decider,
) -> None:
    decider.join("W1")
    snapshot = decider.prepare("W1")
    decider.join("W2", SERVED)
    reply = decider.install("W1", snapshot)
    assert reply == InstallReply(
        Error.UNKNOWN_MEMBER_ID,
        "another member computes, or nobody needs to: drop this computation",
    )
    assert resource("A") in decider.group.target_owner
