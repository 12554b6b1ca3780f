"""Seats that outlive a process: instance ids, leaving for a while, returning (PROTOCOL §8)."""

from dataclasses import replace

import pytest
from coordinator import Coordinator, resources
from group.static_seat import (
    AT_2,
    AWAY,
    BEAT,
    DELAY_MS,
    STATIC,
    WORK,
    refused,
    returning,
    static_group,
)

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.messages.timers import ExpireSession
from fairlead.events.model import Cause, GroupState, MemberState, Why
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    TargetAssignment,
    Tombstone,
)


@pytest.fixture
def coordinator() -> Coordinator:
    return static_group()


# Whose instance id it is.


def test_the_index_tells_who_sits_in_the_seat_of_an_instance_id(coordinator: Coordinator) -> None:
    assert coordinator.group.instances == {"i": "S1"}
    coordinator.carry_out(replace(BEAT, member_epoch=-1))
    assert coordinator.group.instances == {}


def test_an_instance_id_in_use_by_another_member_id_is_unreleased(coordinator: Coordinator) -> None:
    assert refused(coordinator, returning("S2")) is Error.UNRELEASED_INSTANCE_ID


def test_an_instance_id_is_free_once_its_session_has_expired(coordinator: Coordinator) -> None:
    coordinator.carry_out(ExpireSession("S1"))
    assert coordinator.heartbeat(returning("S2")).error is Error.NONE
    assert coordinator.group.instances == {"i": "S2"}
    coordinator.settle()
    assert coordinator.current("S2").assigned.keys() == WORK, "returned by its instance id"


@pytest.mark.parametrize("epoch", [2, -1, -2])
def test_a_known_instance_id_of_another_member_id_is_fenced(
    coordinator: Coordinator, epoch: int
) -> None:
    for member_id in ("S2", "W1"):
        request = replace(BEAT, member_id=member_id, member_epoch=epoch)
        assert refused(coordinator, request) is Error.FENCED_INSTANCE_ID


@pytest.mark.parametrize("epoch", [2, -1, -2])
def test_an_unknown_instance_id_that_does_not_join_is_an_unknown_member(
    coordinator: Coordinator, epoch: int
) -> None:
    for member_id in ("S2", "W1", "S1"):
        request = replace(BEAT, member_id=member_id, member_epoch=epoch, instance_id="x")
        assert refused(coordinator, request) is Error.UNKNOWN_MEMBER_ID


def test_a_member_with_a_seat_can_not_join_in_another(coordinator: Coordinator) -> None:
    request = replace(STATIC, member_id="W1", url="http://w1")
    assert refused(coordinator, request) is Error.UNRELEASED_INSTANCE_ID
    coordinator.heartbeat(AWAY)
    assert refused(coordinator, request) is Error.INVALID_REQUEST
    assert refused(coordinator, replace(request, instance_id="x")) is Error.INVALID_REQUEST


def test_a_full_group_refuses_an_instance_id_in_use_as_unreleased(coordinator: Coordinator) -> None:
    # It would take no other seat once the old one is gone, so it must ask again.
    coordinator.soft = replace(coordinator.soft, settings=GroupSettings(max_size=2))
    assert refused(coordinator, returning("S2")) is Error.UNRELEASED_INSTANCE_ID
    newcomer = returning("S2", instance_id="j")
    assert refused(coordinator, newcomer) is Error.GROUP_MAX_SIZE_REACHED


# Leaving for a while.


def test_a_temporary_leave_writes_one_record_and_bumps_nothing(coordinator: Coordinator) -> None:
    before = coordinator.member("S1")
    decision = coordinator.carry_out(AWAY)
    assert before.current == CurrentAssignment("S1", 2, 2, MemberState.STABLE, AT_2, {})
    assert decision.records == (CurrentAssignment("S1", -2, 2, MemberState.AWAY, {}, {}),)
    group = coordinator.group
    assert (group.group_epoch, group.share_of("S1"), group.members["S1"].metadata) == (
        2,
        WORK,
        before.metadata,
    )
    assert {each: group.owner.get(each) for each in WORK} == dict.fromkeys(WORK)
    assert {each: group.target_owner[each] for each in WORK} == dict.fromkeys(WORK, "S1")


def test_the_answer_to_a_temporary_leave_says_minus_2_and_is_not_held(
    coordinator: Coordinator,
) -> None:
    decision = coordinator.carry_out(replace(AWAY, sequence=7))
    reply = coordinator.heartbeat(replace(AWAY, sequence=8))
    assert decision.news
    assert (reply.error, reply.member_epoch, reply.sequence) == (Error.NONE, -2, 8)


def test_a_temporary_leave_said_again_writes_nothing(coordinator: Coordinator) -> None:
    coordinator.carry_out(AWAY)
    assert coordinator.carry_out(AWAY).records == ()


def test_a_temporary_leave_clears_what_is_pending(coordinator: Coordinator) -> None:
    coordinator.write(
        GroupMetadata(3, Cause(Why.OPERATOR), 0),
        TargetAssignment(3, {"W1": resources("A A-0 B-0"), "S1": resources("B")}),
    )
    coordinator.beat("S1")
    coordinator.beat("W1", "A A-0")
    assert coordinator.current("S1").pending.keys() == resources("B-0")
    coordinator.carry_out(AWAY)
    assert coordinator.current("S1").pending == {}
    assert coordinator.beat("W1").assignment == resources("A A-0 B-0"), "its process has stopped"


def test_a_member_that_is_away_keeps_the_group_from_being_stable(coordinator: Coordinator) -> None:
    states = list[GroupState]()
    for request in (AWAY, returning("S2")):
        coordinator.heartbeat(request)
        states.append(coordinator.group.state)
    assert states == [GroupState.RECONCILING, GroupState.STABLE]


def test_a_member_that_is_away_is_not_asked_to_compute(coordinator: Coordinator) -> None:
    coordinator.carry_out(Heartbeat("connect", "W1", -1, "1"))
    assert coordinator.beat("S1").error is Error.COMPUTE_ASSIGNMENT
    coordinator.carry_out(AWAY)
    computation = coordinator.soft.computation
    assert computation is None or computation.member_id != "S1"


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_who_is_away_comes_back_by_a_join_and_by_nothing_else(
    coordinator: Coordinator, epoch: int
) -> None:
    coordinator.carry_out(AWAY)
    request = replace(BEAT, member_epoch=epoch, owned=(), sequence=9)
    error = coordinator.heartbeat(request).error
    assert error is (Error.NONE if epoch == 0 else Error.FENCED_MEMBER_EPOCH)


def test_who_is_away_may_leave_for_good(coordinator: Coordinator) -> None:
    coordinator.carry_out(AWAY)
    assert coordinator.carry_out(replace(BEAT, member_epoch=-1)).records == (
        Tombstone(CurrentAssignment, ("S1",)),
        Tombstone(MemberMetadata, ("S1",)),
        GroupMetadata(3, Cause(Why.MEMBER_LEFT, "http://s"), 0),
    )


def test_what_a_seat_had_is_placed_at_once_when_it_was_waited_for_in_vain(
    coordinator: Coordinator,
) -> None:
    coordinator.carry_out(AWAY)
    coordinator.now_ms = DELAY_MS
    cause = Cause(Why.SESSION_EXPIRED, "http://s")
    assert coordinator.carry_out(ExpireSession("S1")).records == (
        Tombstone(CurrentAssignment, ("S1",)),
        Tombstone(MemberMetadata, ("S1",)),
        GroupMetadata(3, cause, DELAY_MS),
    )
    coordinator.settle()
    assert coordinator.group.schedule.parked == {}
    assert coordinator.current("W1").assigned.keys() == resources("A A-0 B B-0")
