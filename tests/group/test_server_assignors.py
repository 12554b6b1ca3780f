"""Targets that the coordinator computes itself (PROTOCOL §5)."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from coordinator import COMPUTE, COOPERATIVE, JOIN, Coordinator, resource, resources

from fairlead.actors.assignors.built_in.catalogue import SERVER_ASSIGNORS
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.computing import Assignment, InstallReply, Snapshot
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.messages.timers import EndRest, ExpireSession, RetryAssignor
from fairlead.actors.messages.work import PutConnector
from fairlead.events.model import Cause, Why
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    TargetAssignment,
)

SERVED = replace(JOIN, assignors=None, server_assignor="uniform")
ALL = "A A-0 B B-0"


@pytest.fixture
def coordinator() -> Coordinator:
    """A group with work and without members."""
    coordinator = Coordinator()
    coordinator.configure(ALL)
    return coordinator


def test_the_target_is_part_of_the_command_that_made_it_due(coordinator: Coordinator) -> None:
    joined = coordinator.carry_out(replace(SERVED, member_id="W1", url="http://w1"))
    assert [type(record) for record in joined.records] == [
        MemberMetadata,
        GroupMetadata,
        TargetAssignment,
        CurrentAssignment,
    ]
    assert joined.reply == replace(
        coordinator.beat("W1", ""),
        assignment=resources(ALL),
        log_offset=coordinator.group.end,
        sequence=0,
    )
    target = coordinator.group.target
    assert (target.assignment_epoch, target.assignor, target.computed_by, target.members) == (
        1,
        "uniform",
        "coordinator",
        {"W1": resources(ALL)},
    )
    put = coordinator.carry_out(PutConnector("connect", "C", {}))
    assert type(put.records[-1]) is TargetAssignment
    assert coordinator.group.target_of == {"W1": resources(ALL) | resources("C")}


def test_a_departure_is_answered_by_a_target_in_the_same_command(coordinator: Coordinator) -> None:
    coordinator.join("W1", SERVED)
    coordinator.join("W2", SERVED)
    coordinator.settle()
    coordinator.carry_out(Heartbeat("connect", "W1", -1, "1"))
    assert coordinator.group.target_of == {"W2": resources(ALL)}
    coordinator.carry_out(Heartbeat("connect", "W2", -1, "1"))
    assert (coordinator.group.group_epoch, coordinator.group.assignment_epoch) == (4, 3)


def test_what_a_crash_loses_is_parked(coordinator: Coordinator) -> None:
    coordinator.join("W1", SERVED)
    coordinator.join("W2", SERVED)
    coordinator.settle()
    lost = coordinator.group.target_of["W2"]
    coordinator.carry_out(ExpireSession("W2"))
    assert dict(coordinator.group.schedule.parked) == dict.fromkeys(lost, 300_000)
    assert coordinator.group.target_of == {"W1": resources(ALL) - lost}
    coordinator.join("W9", replace(SERVED, url="http://w2"))
    assert coordinator.group.target_of == {"W1": resources(ALL) - lost, "W9": lost}


def test_as_long_as_any_member_names_one_the_coordinator_computes(
    coordinator: Coordinator,
) -> None:
    assert coordinator.join("W1").error is COMPUTE
    snapshot = coordinator.prepare("W1")
    assert coordinator.join("W2", SERVED).error is Error.NONE
    assert coordinator.group.target.computed_by == "coordinator"
    assert coordinator.install("W1", snapshot).error is Error.UNKNOWN_MEMBER_ID
    assert coordinator.join("W3").error is Error.NONE, "clients' assignors matter no more"
    coordinator.carry_out(Heartbeat("connect", "W2", -1, "1"))
    assert coordinator.beat("W1", "").error is COMPUTE


def test_the_server_assignor_is_the_one_that_most_name_ties_by_name(
    coordinator: Coordinator,
) -> None:
    names = list[str]()
    for member_id, name in (("W1", "uniform"), ("W2", "range"), ("W3", "uniform")):
        coordinator.join(member_id, replace(SERVED, server_assignor=name))
        names.append(coordinator.group.target.assignor)
    assert names == ["uniform", "range", "uniform"]


def test_an_unknown_server_assignor_is_refused_with_those_that_there_are(
    coordinator: Coordinator,
) -> None:
    reply = coordinator.join("W1", replace(SERVED, server_assignor="sticky"))
    assert (reply.error, reply.message) == (
        Error.UNSUPPORTED_ASSIGNOR,
        "there is no server assignor 'sticky': name uniform or range, or list ClientAssignors",
    )
    assert coordinator.group.members == {}


def test_to_name_one_mode_ends_the_other_and_a_preference_does_not_bump(
    coordinator: Coordinator,
) -> None:
    coordinator.join("W1")
    coordinator.compute()
    beat = Heartbeat("connect", "W1", 0, "1", owned=())
    coordinator.heartbeat(replace(beat, server_assignor="range"))
    metadata = coordinator.member("W1").metadata
    assert (metadata.server_assignor, metadata.assignors) == ("range", ())
    assert (coordinator.group.group_epoch, coordinator.group.target.assignor) == (1, "balanced")
    coordinator.carry_out(PutConnector("connect", "C", {}))
    assert (coordinator.group.group_epoch, coordinator.group.target.assignor) == (2, "range")

    again = replace(beat, member_epoch=1, assignors=COOPERATIVE)
    assert coordinator.heartbeat(again).error is COMPUTE, "a list of assignors that changed bumps"
    metadata = coordinator.member("W1").metadata
    assert (metadata.server_assignor, metadata.assignors) == (None, COOPERATIVE)


def test_a_target_that_is_due_when_the_mode_changes_is_computed_at_once(
    coordinator: Coordinator,
) -> None:
    coordinator.join("W1")
    reply = coordinator.heartbeat(
        Heartbeat("connect", "W1", 0, "1", owned=(), server_assignor="uniform")
    )
    assert (reply.error, reply.assignment) == (Error.NONE, resources(ALL))
    assert (coordinator.group.group_epoch, coordinator.soft.computation) == (1, None)


def test_the_last_that_names_one_may_not_leave_a_group_that_nobody_can_compute_for(
    coordinator: Coordinator,
) -> None:
    coordinator.join("W1", SERVED)
    other = replace(COOPERATIVE[0], name="other")
    coordinator.join("W2", replace(JOIN, assignors=(other,)))
    coordinator.settle()
    change = Heartbeat("connect", "W1", 2, "1", assignors=COOPERATIVE)
    assert coordinator.heartbeat(change).error is Error.UNSUPPORTED_ASSIGNOR
    coordinator.carry_out(Heartbeat("connect", "W1", -1, "1"))
    assert coordinator.beat("W2", "").error is COMPUTE, "it was able all the time"


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
    coordinator: Coordinator,
    monkeypatch: pytest.MonkeyPatch,
    assignor: Callable[[Snapshot], Assignment],
    message: str,
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(SERVER_ASSIGNORS, "uniform", assignor)
        assert coordinator.join("W1", SERVED).error is Error.NONE
        target = coordinator.group.target
        assert (target.error, target.failures, target.retry_at_ms) == (message, 1, 5_000)
        assert (target.assignment_epoch, target.members) == (1, {})
        coordinator.join("W2", SERVED)
        assert coordinator.group.target.failures == 2
    coordinator.now_ms = 10_000
    retried = coordinator.carry_out(RetryAssignor())
    assert retried.records[0] == GroupMetadata(3, Cause(Why.ASSIGNOR_RETRY), 10_000)
    target = coordinator.group.target
    assert (target.error, target.failures, target.retry_at_ms) == ("", 0, 0)
    assert target.members.keys() == {"W1", "W2"}


def test_within_the_assignment_interval_bumps_wait_and_the_tick_after_it_serves_all() -> None:
    coordinator = Coordinator(GroupSettings(assignment_interval_ms=1_000))
    coordinator.configure(ALL)
    coordinator.join("W1", SERVED)
    assert coordinator.group.assignment_epoch == 1, "the first is not kept waiting"
    coordinator.join("W2", SERVED)
    coordinator.join("W3", SERVED)
    assert (coordinator.group.group_epoch, coordinator.group.assignment_epoch) == (3, 1)
    ended = coordinator.carry_out(EndRest())
    assert [type(record) for record in ended.records] == [TargetAssignment]
    assert (coordinator.group.assignment_epoch, coordinator.soft.rests) == (3, True)
    assert coordinator.carry_out(EndRest()).records == ()
    assert coordinator.soft.rests is False


def test_after_a_restart_the_next_command_computes_what_is_due() -> None:
    coordinator = Coordinator(GroupSettings(assignment_interval_ms=1_000))
    coordinator.configure("A")
    coordinator.join("W1", SERVED)
    coordinator.join("W2", SERVED)
    coordinator.restart()
    assert (coordinator.group.group_epoch, coordinator.group.assignment_epoch) == (2, 1)
    assert coordinator.beat("W1", "A").member_epoch == 2
    assert coordinator.group.assignment_epoch == 2


def test_where_nobody_qualifies_after_a_departure_the_built_in_assignor_computes(
    coordinator: Coordinator,
) -> None:
    ranges = (("W1", 0, 9, 5), ("W2", 0, 3, 1), ("W3", 4, 6, 6))
    for member_id, low, high, version in ranges:
        assignor = replace(
            COOPERATIVE[0], minimum_version=low, maximum_version=high, version=version
        )
        coordinator.join(member_id, replace(JOIN, assignors=(assignor,)))
    coordinator.settle()
    assert coordinator.group.target.computed_by == "W1"
    coordinator.carry_out(Heartbeat("connect", "W1", -1, "1"))
    target = coordinator.group.target
    assert (target.assignor, target.computed_by) == ("uniform", "coordinator")
    assert set().union(*target.members.values()) == resources(ALL)
    coordinator.settle()


def test_a_server_assignor_sees_that_a_worker_is_not_warm() -> None:
    coordinator = Coordinator()
    coordinator.configure("A")
    cold = replace(COOPERATIVE[0], metadata=b'{"capacity":0}')
    coordinator.join("W1", replace(JOIN, assignors=(cold,)))
    coordinator.join("W2", SERVED)
    assert coordinator.group.target_of == {"W1": resources(""), "W2": resources("A")}


def test_what_is_handed_in_after_the_coordinator_computed_is_dropped(
    coordinator: Coordinator,
) -> None:
    coordinator.join("W1")
    snapshot = coordinator.prepare("W1")
    coordinator.join("W2", SERVED)
    reply = coordinator.install("W1", snapshot)
    assert reply == InstallReply(
        Error.UNKNOWN_MEMBER_ID,
        "another member computes, or nobody needs to: drop this computation",
    )
    assert resource("A") in coordinator.group.target_owner
