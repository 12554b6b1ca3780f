"""Who returns to a seat that was kept: records, work, tokens, and what the log tells of it."""

from dataclasses import replace

import pytest
from coordinator import COOPERATIVE, JOIN, Coordinator, resources
from group.static_seat import AT_2, AWAY, STATIC, WORK, refused, returning, seated, static_group

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.events.evolve import evolve, settle
from fairlead.events.group import Group, token_of
from fairlead.events.model import (
    NOTHING,
    Cause,
    ClientAssignor,
    GroupState,
    MemberState,
    Succession,
    Token,
    Why,
)
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


def test_a_return_under_a_new_member_id_writes_the_records_of_a_replacement(
    coordinator: Coordinator,
) -> None:
    coordinator.carry_out(AWAY)
    decision = coordinator.carry_out(returning("S2"))
    metadata = MemberMetadata("S2", "2", 2, 60_000, COOPERATIVE, None, "i", url="http://s")
    assert decision.records == (
        Tombstone(CurrentAssignment, ("S1",)),
        Tombstone(MemberMetadata, ("S1",)),
        replace(metadata, succession=Succession(1, "S1", 2)),
        CurrentAssignment("S2", 0, 0, MemberState.STABLE, {}, {}),
        CurrentAssignment("S2", 2, 0, MemberState.STABLE, AT_2, {}),
    )
    group = coordinator.group
    assert (group.group_epoch, group.share_of("S1"), group.share_of("S2")) == (2, NOTHING, WORK)
    coordinator.witness.compacted(group)


def test_a_return_under_the_same_member_id_buries_nothing(coordinator: Coordinator) -> None:
    metadata = coordinator.member("S1").metadata
    coordinator.carry_out(AWAY)
    assert coordinator.carry_out(returning("S1")).records == (
        replace(metadata, incarnation="2", succession=Succession(1, "S1", 2)),
        CurrentAssignment("S1", 0, 0, MemberState.STABLE, {}, {}),
        CurrentAssignment("S1", 2, 0, MemberState.STABLE, AT_2, {}),
    )


@pytest.mark.parametrize("member_id", ["S1", "S2"])
def test_the_answer_to_a_return_carries_the_work_at_the_epoch_it_had(
    coordinator: Coordinator, member_id: str
) -> None:
    coordinator.heartbeat(AWAY)
    reply = coordinator.heartbeat(returning(member_id))
    assert (reply.error, reply.member_id, reply.member_epoch, reply.assignment) == (
        Error.NONE,
        member_id,
        2,
        WORK,
    )
    again = coordinator.heartbeat(returning(member_id))
    assert replace(again, log_offset=0) == replace(reply, log_offset=0), "its answer was lost"


@pytest.mark.parametrize("names", [("S1", "S1"), ("S2", "S3")], ids=["same-id", "new-ids"])
def test_no_token_of_a_process_that_left_is_given_out_again(
    coordinator: Coordinator, names: tuple[str, str]
) -> None:
    (resource,) = resources("B-0")
    holder, process = "S1", "1"
    given = [token_of(coordinator.group, holder, resource)]
    for name in names:
        coordinator.heartbeat(replace(AWAY, member_id=holder, incarnation=process))
        holder, process = name, process + "1"
        coordinator.heartbeat(replace(returning(name), incarnation=process))
        given.append(token_of(coordinator.group, holder, resource))
    assert given == [Token(2, 1), Token(2, 2), Token(2, 3)]


def test_a_return_takes_new_grant_epochs_once_the_target_has_moved_on(
    coordinator: Coordinator,
) -> None:
    coordinator.carry_out(AWAY)
    coordinator.join("W3")
    coordinator.compute()
    coordinator.heartbeat(returning("S2"))
    assert set(coordinator.current("S2").assigned.values()) == {3}


def test_a_return_with_other_assignors_bumps(coordinator: Coordinator) -> None:
    coordinator.carry_out(AWAY)
    wider = (ClientAssignor("balanced", 0, 3),)
    decision = coordinator.carry_out(returning("S2", assignors=wider))
    assert [type(record) for record in decision.records] == [
        Tombstone,
        Tombstone,
        MemberMetadata,
        CurrentAssignment,
        GroupMetadata,
        CurrentAssignment,
    ]
    assert coordinator.group.bump == GroupMetadata(3, Cause(Why.ASSIGNORS_CHANGED, "http://s"), 0)
    coordinator.settle()
    assert coordinator.group.state is GroupState.STABLE


def test_a_return_that_would_leave_nobody_able_is_refused_and_the_seat_stays(
    coordinator: Coordinator,
) -> None:
    coordinator.carry_out(AWAY)
    request = returning("S2", assignors=(ClientAssignor("another"),))
    assert refused(coordinator, request) is Error.UNSUPPORTED_ASSIGNOR
    assert coordinator.current("S1").member_epoch == -2


def test_a_return_is_no_newcomer_to_a_full_group(coordinator: Coordinator) -> None:
    coordinator.soft = replace(coordinator.soft, settings=GroupSettings(max_size=2))
    seated(coordinator, "S2")
    assert set(coordinator.group.members) == {"W1", "S2"}


def test_a_new_member_id_has_to_say_everything(coordinator: Coordinator) -> None:
    coordinator.carry_out(AWAY)
    assert refused(coordinator, returning("S2", assignors=None)) is Error.INVALID_REQUEST
    assert refused(coordinator, returning("S2", rebalance_timeout_ms=-1)) is Error.INVALID_REQUEST
    assert coordinator.heartbeat(returning("S1", assignors=None)).error is Error.NONE


def test_what_a_target_takes_from_who_is_away_is_free_before_it_returns(
    coordinator: Coordinator,
) -> None:
    coordinator.carry_out(AWAY)
    coordinator.write(
        GroupMetadata(3, Cause(Why.OPERATOR), 0),
        TargetAssignment(3, {"W1": resources("A A-0 B-0"), "S1": resources("B")}),
    )
    assert coordinator.beat("W1").assignment == resources("A A-0 B-0"), "nobody runs it"
    assert coordinator.heartbeat(returning("S2")).assignment == resources("B")


def test_a_member_that_left_before_its_first_target_finds_its_work_when_it_returns() -> None:
    coordinator = Coordinator()
    coordinator.configure("A A-0")
    coordinator.join("S1", STATIC)
    coordinator.heartbeat(AWAY)
    coordinator.heartbeat(returning("S2"))
    coordinator.settle()
    assert coordinator.current("S2").assigned.keys() == resources("A A-0")


# What the log tells of it.


def test_the_share_follows_the_seat_through_many_returns(coordinator: Coordinator) -> None:
    holder = "S1"
    for number in range(2, 6):
        incarnation = coordinator.member(holder).metadata.incarnation
        coordinator.heartbeat(replace(AWAY, member_id=holder, incarnation=incarnation))
        holder = f"S{number}"
        coordinator.heartbeat(returning(holder))
        coordinator.witness.compacted(coordinator.group)
    assert coordinator.group.target_of == {"W1": resources("A A-0"), "S5": WORK}
    metadata = coordinator.member("S5").metadata
    assert metadata.succession == Succession(4, "S1", 2)
    coordinator.restart()
    assert coordinator.group.target_of == {"W1": resources("A A-0"), "S5": WORK}


def test_a_later_target_knows_the_seat_by_its_new_name(coordinator: Coordinator) -> None:
    seated(coordinator, "S2")
    coordinator.join("W3")
    coordinator.settle()
    shares = dict(coordinator.group.target_of)
    coordinator.heartbeat(
        Heartbeat("connect", "S2", coordinator.current("S2").member_epoch, "2", rack="north")
    )
    assert coordinator.group.target_of == shares
    coordinator.witness.compacted(coordinator.group)


def test_a_stranger_with_the_old_member_id_takes_nothing_from_the_seat(
    coordinator: Coordinator,
) -> None:
    seated(coordinator, "S2")
    coordinator.join("S1", replace(JOIN, incarnation="9"))
    assert coordinator.group.share_of("S1") == NOTHING
    assert coordinator.group.share_of("S2") == WORK
    coordinator.witness.compacted(coordinator.group)
    coordinator.heartbeat(Heartbeat("connect", "S2", 2, "2", rack="north"))
    assert coordinator.group.share_of("S2") == WORK
    coordinator.witness.compacted(coordinator.group)


def test_a_later_target_may_mean_somebody_else_by_the_old_member_id(
    coordinator: Coordinator,
) -> None:
    seated(coordinator, "S2")
    coordinator.join("S1", replace(JOIN, incarnation="9"))
    coordinator.configure("A A-0 B B-0 C C-0")
    coordinator.settle()
    shares = dict(coordinator.group.target_of)
    assert shares["S1"]
    epoch = coordinator.current("S2").member_epoch
    coordinator.heartbeat(Heartbeat("connect", "S2", epoch, "2", rack="north"))
    assert coordinator.group.target_of == shares
    coordinator.witness.compacted(coordinator.group)


def test_what_was_computed_before_a_return_moves_by_instance_id(coordinator: Coordinator) -> None:
    coordinator.join("W3")
    computation = coordinator.soft.computation
    assert computation is not None
    chosen = "W1" if computation.member_id == "S1" else computation.member_id
    coordinator.heartbeat(AWAY)
    snapshot = coordinator.prepare(chosen)
    seated_now = coordinator.heartbeat(returning("S2"))
    assert seated_now.error is Error.NONE
    assert coordinator.install(chosen, snapshot).error is Error.NONE
    assert "S2" in coordinator.group.target_of
    assert "S1" not in coordinator.group.target_of
    coordinator.settle()
    assert coordinator.group.state is GroupState.STABLE


def test_who_left_and_took_anothers_seat_has_that_seats_work_alone_after_compaction() -> None:
    own, seats = resources("B-1"), resources("A-1")
    group = Group("connect")
    for record in (
        GroupMetadata(2, Cause(Why.MEMBER_JOINED), 0),
        TargetAssignment(2, {"W5": own, "S1": seats}),
        MemberMetadata("W5", joined_epoch=2, instance_id="i", succession=Succession(1, "S1", 2)),
    ):  # compacted: that W5 left its own seat meanwhile is overwritten
        evolve(group, record, group.end)
    settle(group)
    assert (group.target_of, group.target_owner) == ({"W5": seats}, dict.fromkeys(seats, "W5"))
