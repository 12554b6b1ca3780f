"""Seats that outlive a process: instance ids, leaving for a while, returning (PROTOCOL §8)."""

from dataclasses import replace

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import ExpireSession
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.events.model import Cause, GroupState, MemberState, Why
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    TargetAssignment,
    Tombstone,
)
from fairlead_tests.decider import Decider, resources
from fairlead_tests.group.static_seat import (
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


@pytest.fixture
def decider() -> Decider:
    return static_group()


# Whose instance id it is.


def test_the_index_tells_who_sits_in_the_seat_of_an_instance_id(decider: Decider) -> None:
    assert decider.group.instances == {"i": "S1"}
    decider.carry_out(replace(BEAT, member_epoch=-1))
    assert decider.group.instances == {}


def test_an_instance_id_in_use_by_another_member_id_is_unreleased(decider: Decider) -> None:
    assert refused(decider, returning("S2")) is Error.UNRELEASED_INSTANCE_ID


def test_an_instance_id_is_free_once_its_session_has_expired(decider: Decider) -> None:
    decider.carry_out(ExpireSession("S1"))
    assert decider.heartbeat(returning("S2")).error is Error.NONE
    assert decider.group.instances == {"i": "S2"}
    decider.settle()
    assert decider.current("S2").assigned.keys() == WORK, "returned by its instance id"


@pytest.mark.parametrize("epoch", [2, -1, -2])
def test_a_known_instance_id_of_another_member_id_is_fenced(decider: Decider, epoch: int) -> None:
    for member_id in ("S2", "W1"):
        request = replace(BEAT, member_id=member_id, member_epoch=epoch)
        assert refused(decider, request) is Error.FENCED_INSTANCE_ID


@pytest.mark.parametrize("epoch", [2, -1, -2])
def test_an_unknown_instance_id_that_does_not_join_is_an_unknown_member(
    decider: Decider, epoch: int
) -> None:
    for member_id in ("S2", "W1", "S1"):
        request = replace(BEAT, member_id=member_id, member_epoch=epoch, instance_id="x")
        assert refused(decider, request) is Error.UNKNOWN_MEMBER_ID


def test_a_member_with_a_seat_can_not_join_in_another(decider: Decider) -> None:
    request = replace(STATIC, member_id="W1", url="http://w1")
    assert refused(decider, request) is Error.UNRELEASED_INSTANCE_ID
    decider.heartbeat(AWAY)
    assert refused(decider, request) is Error.INVALID_REQUEST
    assert refused(decider, replace(request, instance_id="x")) is Error.INVALID_REQUEST


def test_a_full_group_refuses_an_instance_id_in_use_as_unreleased(decider: Decider) -> None:
    # It would take no other seat once the old one is gone, so it must ask again.
    decider.soft = replace(decider.soft, settings=GroupSettings(max_size=2))
    assert refused(decider, returning("S2")) is Error.UNRELEASED_INSTANCE_ID
    newcomer = returning("S2", instance_id="j")
    assert refused(decider, newcomer) is Error.GROUP_MAX_SIZE_REACHED


# Leaving for a while.


def test_a_temporary_leave_writes_one_record_and_bumps_nothing(decider: Decider) -> None:
    before = decider.member("S1")
    decision = decider.carry_out(AWAY)
    assert before.current == CurrentAssignment("S1", 2, 2, MemberState.STABLE, AT_2, {})
    assert decision.records == (CurrentAssignment("S1", -2, 2, MemberState.AWAY, {}, {}),)
    group = decider.group
    assert (group.group_epoch, group.share_of("S1"), group.members["S1"].metadata) == (
        2,
        WORK,
        before.metadata,
    )
    assert {each: group.owner.get(each) for each in WORK} == dict.fromkeys(WORK)
    assert {each: group.target_owner[each] for each in WORK} == dict.fromkeys(WORK, "S1")


def test_the_answer_to_a_temporary_leave_says_minus_2_and_is_not_held(
    decider: Decider,
) -> None:
    decision = decider.carry_out(replace(AWAY, sequence=7))
    reply = decider.heartbeat(replace(AWAY, sequence=8))
    assert decision.news
    assert (reply.error, reply.member_epoch, reply.sequence) == (Error.NONE, -2, 8)
    assert isinstance(decision.reply, HeartbeatReply)
    assert decision.reply.log_offset == decider.group.end, "it rests on its own record"


def test_a_temporary_leave_said_again_writes_nothing(decider: Decider) -> None:
    decider.carry_out(AWAY)
    assert decider.carry_out(AWAY).records == ()


def test_a_temporary_leave_clears_what_is_pending(decider: Decider) -> None:
    decider.write(
        GroupMetadata(3, Cause(Why.OPERATOR), 0),
        TargetAssignment(3, {"W1": resources("A A-0 B-0"), "S1": resources("B")}),
    )
    decider.beat("S1")
    decider.beat("W1", "A A-0")
    assert decider.current("S1").pending.keys() == resources("B-0")
    decider.carry_out(AWAY)
    assert decider.current("S1").pending == {}
    assert decider.beat("W1").assignment == resources("A A-0 B-0"), "its process has stopped"


def test_a_member_that_is_away_keeps_the_group_from_being_stable(decider: Decider) -> None:
    states = list[GroupState]()
    for request in (AWAY, returning("S2")):
        decider.heartbeat(request)
        states.append(decider.group.state)
    assert states == [GroupState.RECONCILING, GroupState.STABLE]


def test_a_member_that_is_away_is_not_asked_to_compute(decider: Decider) -> None:
    decider.carry_out(Heartbeat("connect", "W1", -1, "1"))
    assert decider.beat("S1").error is Error.COMPUTE_ASSIGNMENT
    decider.carry_out(AWAY)
    computation = decider.soft.computation
    assert computation is None or computation.member_id != "S1"


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_who_is_away_comes_back_by_a_join_and_by_nothing_else(decider: Decider, epoch: int) -> None:
    decider.carry_out(AWAY)
    request = replace(BEAT, member_epoch=epoch, owned=(), sequence=9)
    error = decider.heartbeat(request).error
    assert error is (Error.NONE if epoch == 0 else Error.FENCED_MEMBER_EPOCH)


def test_who_is_away_may_leave_for_good(decider: Decider) -> None:
    decider.carry_out(AWAY)
    assert decider.carry_out(replace(BEAT, member_epoch=-1)).records == (
        Tombstone(CurrentAssignment, ("S1",)),
        Tombstone(MemberMetadata, ("S1",)),
        GroupMetadata(3, Cause(Why.MEMBER_LEFT, "http://s"), 0),
    )


def test_what_a_seat_had_is_placed_at_once_when_it_was_waited_for_in_vain(
    decider: Decider,
) -> None:
    decider.carry_out(AWAY)
    decider.now_ms = DELAY_MS
    cause = Cause(Why.SESSION_EXPIRED, "http://s")
    assert decider.carry_out(ExpireSession("S1")).records == (
        Tombstone(CurrentAssignment, ("S1",)),
        Tombstone(MemberMetadata, ("S1",)),
        GroupMetadata(3, cause, DELAY_MS),
    )
    decider.settle()
    assert decider.group.schedule.parked == {}
    assert decider.current("W1").assigned.keys() == resources("A A-0 B B-0")
