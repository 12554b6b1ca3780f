"""Who returns to a seat that was kept: records, work, tokens, and what the log tells of it."""

from dataclasses import replace

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
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
from fairlead_tests.decider import COOPERATIVE, JOIN, Decider, resources
from fairlead_tests.group.static_seat import (
    AT_2,
    AWAY,
    STATIC,
    WORK,
    refused,
    returning,
    seated,
    static_group,
)


@pytest.fixture
def decider() -> Decider:
    return static_group()


def test_a_return_under_a_new_member_id_writes_the_records_of_a_replacement(
    decider: Decider,
) -> None:
    decider.carry_out(AWAY)
    decision = decider.carry_out(returning("S2"))
    metadata = MemberMetadata("S2", "2", 2, 60_000, COOPERATIVE, None, "i", url="http://s")
    assert decision.records == (
        Tombstone(CurrentAssignment, ("S1",)),
        Tombstone(MemberMetadata, ("S1",)),
        replace(metadata, succession=Succession(1, "S1", 2)),
        CurrentAssignment("S2", 0, 0, MemberState.STABLE, {}, {}),
        CurrentAssignment("S2", 2, 0, MemberState.STABLE, AT_2, {}),
    )
    group = decider.group
    assert (group.group_epoch, group.share_of("S1"), group.share_of("S2")) == (2, NOTHING, WORK)
    decider.witness.compacted(group)


def test_a_return_under_the_same_member_id_buries_nothing(decider: Decider) -> None:
    metadata = decider.member("S1").metadata
    decider.carry_out(AWAY)
    assert decider.carry_out(returning("S1")).records == (
        replace(metadata, incarnation="2", succession=Succession(1, "S1", 2)),
        CurrentAssignment("S1", 0, 0, MemberState.STABLE, {}, {}),
        CurrentAssignment("S1", 2, 0, MemberState.STABLE, AT_2, {}),
    )


@pytest.mark.parametrize("member_id", ["S1", "S2"])
def test_the_answer_to_a_return_carries_the_work_at_the_epoch_it_had(
    decider: Decider, member_id: str
) -> None:
    decider.heartbeat(AWAY)
    reply = decider.heartbeat(returning(member_id))
    assert (reply.error, reply.member_id, reply.member_epoch, reply.assignment) == (
        Error.NONE,
        member_id,
        2,
        WORK,
    )
    again = decider.heartbeat(returning(member_id))
    assert replace(again, log_offset=0) == replace(reply, log_offset=0), "its answer was lost"


@pytest.mark.parametrize("names", [("S1", "S1"), ("S2", "S3")], ids=["same-id", "new-ids"])
def test_no_token_of_a_process_that_left_is_given_out_again(
    decider: Decider, names: tuple[str, str]
) -> None:
    (resource,) = resources("B-0")
    holder, process = "S1", "1"
    given = [token_of(decider.group, holder, resource)]
    for name in names:
        decider.heartbeat(replace(AWAY, member_id=holder, incarnation=process))
        holder, process = name, process + "1"
        decider.heartbeat(replace(returning(name), incarnation=process))
        given.append(token_of(decider.group, holder, resource))
    assert given == [Token(2, 1), Token(2, 2), Token(2, 3)]


def test_a_return_takes_new_grant_epochs_once_the_target_has_moved_on(
    decider: Decider,
) -> None:
    decider.carry_out(AWAY)
    decider.join("W3")
    decider.compute()
    decider.heartbeat(returning("S2"))
    assert set(decider.current("S2").assigned.values()) == {3}


def test_a_return_with_other_assignors_bumps(decider: Decider) -> None:
    decider.carry_out(AWAY)
    wider = (ClientAssignor("balanced", 0, 3),)
    decision = decider.carry_out(returning("S2", assignors=wider))
    assert [type(record) for record in decision.records] == [
        Tombstone,
        Tombstone,
        MemberMetadata,
        CurrentAssignment,
        GroupMetadata,
        CurrentAssignment,
    ]
    assert decider.group.bump == GroupMetadata(3, Cause(Why.ASSIGNORS_CHANGED, "http://s"), 0)
    decider.settle()
    assert decider.group.state is GroupState.STABLE


def test_a_return_that_would_leave_nobody_able_is_refused_and_the_seat_stays(
    decider: Decider,
) -> None:
    decider.carry_out(AWAY)
    request = returning("S2", assignors=(ClientAssignor("another"),))
    assert refused(decider, request) is Error.UNSUPPORTED_ASSIGNOR
    assert decider.current("S1").member_epoch == -2


def test_a_return_is_no_newcomer_to_a_full_group(decider: Decider) -> None:
    decider.soft = replace(decider.soft, settings=GroupSettings(max_size=2))
    seated(decider, "S2")
    assert set(decider.group.members) == {"W1", "S2"}


def test_a_new_member_id_has_to_say_everything(decider: Decider) -> None:
    decider.carry_out(AWAY)
    assert refused(decider, returning("S2", assignors=None)) is Error.INVALID_REQUEST
    assert refused(decider, returning("S2", rebalance_timeout_ms=-1)) is Error.INVALID_REQUEST
    assert decider.heartbeat(returning("S1", assignors=None)).error is Error.NONE


def test_what_a_target_takes_from_who_is_away_is_free_before_it_returns(
    decider: Decider,
) -> None:
    decider.carry_out(AWAY)
    decider.write(
        GroupMetadata(3, Cause(Why.OPERATOR), 0),
        TargetAssignment(3, {"W1": resources("A A-0 B-0"), "S1": resources("B")}),
    )
    assert decider.beat("W1").assignment == resources("A A-0 B-0"), "nobody runs it"
    assert decider.heartbeat(returning("S2")).assignment == resources("B")


def test_a_member_that_left_before_its_first_target_finds_its_work_when_it_returns() -> None:
    decider = Decider()
    decider.configure("A A-0")
    decider.join("S1", STATIC)
    decider.heartbeat(AWAY)
    decider.heartbeat(returning("S2"))
    decider.settle()
    assert decider.current("S2").assigned.keys() == resources("A A-0")


# What the log tells of it.


def test_the_share_follows_the_seat_through_many_returns(decider: Decider) -> None:
    holder = "S1"
    for number in range(2, 6):
        incarnation = decider.member(holder).metadata.incarnation
        decider.heartbeat(replace(AWAY, member_id=holder, incarnation=incarnation))
        holder = f"S{number}"
        decider.heartbeat(returning(holder))
        decider.witness.compacted(decider.group)
    assert decider.group.target_of == {"W1": resources("A A-0"), "S5": WORK}
    metadata = decider.member("S5").metadata
    assert metadata.succession == Succession(4, "S1", 2)
    decider.restart()
    assert decider.group.target_of == {"W1": resources("A A-0"), "S5": WORK}


def test_a_later_target_knows_the_seat_by_its_new_name(decider: Decider) -> None:
    seated(decider, "S2")
    decider.join("W3")
    decider.settle()
    shares = dict(decider.group.target_of)
    decider.heartbeat(
        Heartbeat("connect", "S2", decider.current("S2").member_epoch, "2", rack="north")
    )
    assert decider.group.target_of == shares
    decider.witness.compacted(decider.group)


def test_a_stranger_with_the_old_member_id_takes_nothing_from_the_seat(
    decider: Decider,
) -> None:
    seated(decider, "S2")
    decider.join("S1", replace(JOIN, incarnation="9"))
    assert decider.group.share_of("S1") == NOTHING
    assert decider.group.share_of("S2") == WORK
    decider.witness.compacted(decider.group)
    decider.heartbeat(Heartbeat("connect", "S2", 2, "2", rack="north"))
    assert decider.group.share_of("S2") == WORK
    decider.witness.compacted(decider.group)


def test_a_later_target_may_mean_somebody_else_by_the_old_member_id(
    decider: Decider,
) -> None:
    seated(decider, "S2")
    decider.join("S1", replace(JOIN, incarnation="9"))
    decider.configure("A A-0 B B-0 C C-0")
    decider.settle()
    shares = dict(decider.group.target_of)
    assert shares["S1"]
    epoch = decider.current("S2").member_epoch
    decider.heartbeat(Heartbeat("connect", "S2", epoch, "2", rack="north"))
    assert decider.group.target_of == shares
    decider.witness.compacted(decider.group)


def test_what_was_computed_before_a_return_moves_by_instance_id(decider: Decider) -> None:
    decider.join("W3")
    computation = decider.soft.computation
    assert computation is not None
    chosen = "W1" if computation.member_id == "S1" else computation.member_id
    decider.heartbeat(AWAY)
    snapshot = decider.prepare(chosen)
    seated_now = decider.heartbeat(returning("S2"))
    assert seated_now.error is Error.NONE
    assert decider.install(chosen, snapshot).error is Error.NONE
    assert "S2" in decider.group.target_of
    assert "S1" not in decider.group.target_of
    decider.settle()
    assert decider.group.state is GroupState.STABLE


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
