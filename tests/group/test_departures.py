"""Who goes, in which records, and what is lost by it (PROTOCOL §7, §8; `timers` of the data)."""

from dataclasses import replace

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import ExpireRebalance, ExpireSession, ReleaseParked
from fairlead.actors.messages.computing import Assignment
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.events.model import Cause, GroupState, Why
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    ScheduledRebalance,
    TargetAssignment,
    Tombstone,
)
from fairlead_tests.decider import JOIN, Decider, resources

LOST_AT_MS, DELAY_MS = 1_000, 300_000
DUE_MS = LOST_AT_MS + DELAY_MS
W2_HAD = resources("B B-0")


@pytest.fixture
def decider() -> Decider:
    """A group of W1 with connector A and W2 with connector B, at rest at epoch 2."""
    decider = Decider(GroupSettings(max_delay_ms=DELAY_MS))
    decider.configure("A A-0 B B-0")
    decider.join("W1")
    decider.compute()
    decider.beat("W1", "")
    decider.join("W2")
    decider.settle()
    assert decider.current("W2").assigned.keys() == W2_HAD
    decider.now_ms = LOST_AT_MS
    return decider


GONE = (Tombstone(CurrentAssignment, ("W2",)), Tombstone(MemberMetadata, ("W2",)))


def test_an_expired_session_writes_tombstones_then_loss_then_bump(
    decider: Decider,
) -> None:
    cause = Cause(Why.SESSION_EXPIRED, "http://w2")
    assert decider.carry_out(ExpireSession("W2")).records == (
        *GONE,
        Loss("W2", None, "http://w2", W2_HAD, LOST_AT_MS, cause, DUE_MS),
        GroupMetadata(3, cause, LOST_AT_MS),
    )


LEFT = Cause(Why.MEMBER_LEFT, "http://w2")
LEAVE = Heartbeat("connect", "W2", -1, "1")


def test_a_goodbye_writes_tombstones_then_what_waits_then_bump(decider: Decider) -> None:
    assert decider.carry_out(LEAVE).records == (
        *GONE,
        Loss("W2", None, "http://w2", W2_HAD, LOST_AT_MS, LEFT, DUE_MS),
        GroupMetadata(3, LEFT, LOST_AT_MS),
    )
    assert decider.heartbeat(LEAVE).error is (Error.UNKNOWN_MEMBER_ID)


@pytest.mark.parametrize(
    ("leave_delay_ms", "due_ms"), [(-1, DUE_MS), (7_000, LOST_AT_MS + 7_000), (900_000, 901_000)]
)
def test_work_waits_after_a_goodbye_for_as_long_as_the_group_says(
    decider: Decider, leave_delay_ms: int, due_ms: int
) -> None:
    decider.soft = replace(
        decider.soft, settings=replace(decider.soft.settings, leave_delay_ms=leave_delay_ms)
    )
    decider.carry_out(LEAVE)
    decider.settle()
    assert decider.group.schedule.parked == dict.fromkeys(W2_HAD, due_ms)
    decider.now_ms = due_ms - 1
    assert decider.carry_out(ReleaseParked()).records == ()
    decider.now_ms = due_ms
    decider.carry_out(ReleaseParked())
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources("A A-0 B B-0")


@pytest.mark.parametrize(
    "settings",
    [GroupSettings(max_delay_ms=DELAY_MS, leave_delay_ms=0), GroupSettings(max_delay_ms=0)],
    ids=["after a leave", "at all"],
)
def test_where_nothing_waits_a_goodbye_loses_nothing(
    decider: Decider, settings: GroupSettings
) -> None:
    decider.soft = replace(decider.soft, settings=settings)
    assert decider.carry_out(LEAVE).records == (*GONE, GroupMetadata(3, LEFT, LOST_AT_MS))


def test_a_worker_that_left_and_comes_back_has_its_work_again_and_nothing_else_moves(
    decider: Decider,
) -> None:
    before = decider.current("W1")
    decider.carry_out(LEAVE)
    decider.settle()
    decider.now_ms += DELAY_MS - 1
    decider.join("W9", replace(JOIN, url="http://w2"))
    decider.settle()
    assert decider.current("W9").assigned.keys() == W2_HAD
    assert decider.current("W1").assigned == before.assigned
    assert (decider.group.losses, decider.group.schedule.parked) == ({}, {})


@pytest.mark.parametrize(
    "name", [{"url": ""}, {"instance_id": "i"}], ids=["without a url", "static, for good"]
)
def test_a_goodbye_of_who_comes_back_under_no_such_name_parks_nothing(
    decider: Decider, name: dict[str, str]
) -> None:
    decider.join("W3", replace(JOIN, **{"url": "http://w3", **name}))  # type: ignore[arg-type]
    decider.settle()
    decider.carry_out(Heartbeat("connect", "W3", -1, "1", instance_id=name.get("instance_id")))
    decider.settle()
    assert (decider.group.losses, decider.group.schedule.parked) == ({}, {})


def test_a_crash_does_not_share_the_deadline_of_who_left(decider: Decider) -> None:
    decider.carry_out(LEAVE)
    decider.join("W3")
    decider.now_ms += 5_000
    decider.carry_out(ExpireSession("W1"))
    due_ms = {each.member_id: each.deadline_ms for each in decider.group.losses.values()}
    assert due_ms == {"W2": DUE_MS, "W1": DUE_MS + 5_000}


def test_the_answer_to_a_goodbye_says_minus_1(decider: Decider) -> None:
    reply = decider.heartbeat(Heartbeat("connect", "W2", -1, "1", sequence=7))
    assert (reply.error, reply.member_epoch, reply.sequence) == (Error.NONE, -1, 7)


def test_a_member_that_never_acknowledged_parks_nothing(decider: Decider) -> None:
    records = decider.expire("W2", acknowledged=False).records
    assert [type(record) for record in records] == [Tombstone, Tombstone, GroupMetadata]


def test_a_group_that_becomes_empty_parks_nothing(decider: Decider) -> None:
    decider.carry_out(ExpireSession("W2"))
    decider.compute()
    assert decider.group.schedule.parked.keys() == W2_HAD
    records = decider.carry_out(ExpireSession("W1")).records
    assert records == (
        Tombstone(CurrentAssignment, ("W1",)),
        Tombstone(MemberMetadata, ("W1",)),
        Tombstone(Loss, ("W2",)),
        ScheduledRebalance(),
        GroupMetadata(4, Cause(Why.SESSION_EXPIRED, "http://w1"), LOST_AT_MS),
    )
    assert decider.group.state is GroupState.EMPTY
    decider.join("W3")
    decider.compute()
    assert decider.beat("W3", "").assignment == resources("A A-0 B B-0")


def test_a_timer_that_finds_nobody_writes_nothing(decider: Decider) -> None:
    assert decider.carry_out(ExpireSession("W9")).records == ()
    assert decider.carry_out(ExpireRebalance("W9", 3)).records == ()


def test_a_session_timer_ends_only_the_seat_that_it_was_set_for(decider: Decider) -> None:
    seat = decider.member("W2").metadata.joined_epoch
    decider.carry_out(Heartbeat("connect", "W2", -1, "1"))
    decider.join("W2")
    assert decider.carry_out(ExpireSession("W2", joined_epoch=seat)).records == ()
    again = decider.member("W2").metadata.joined_epoch
    assert decider.carry_out(ExpireSession("W2", joined_epoch=again)).records != ()


def test_what_the_target_gives_to_another_is_not_lost(decider: Decider) -> None:
    decider.write(
        GroupMetadata(9, Cause(Why.OPERATOR), 0),
        TargetAssignment(9, {"W1": resources("A A-0 B"), "W2": resources("B-0")}),
    )
    decider.carry_out(ExpireSession("W2"))
    assert decider.group.losses["W2"].resources == resources("B-0")


# Parking.


def parked(decider: Decider) -> None:
    """Lose W2, and let W1 compute: B is parked."""
    decider.carry_out(ExpireSession("W2"))
    decider.compute()
    decider.settle()
    assert decider.group.schedule == ScheduledRebalance(dict.fromkeys(W2_HAD, DUE_MS))
    assert decider.group.state is GroupState.STABLE


def test_lost_work_waits_until_its_deadline_and_not_longer(decider: Decider) -> None:
    parked(decider)
    decider.now_ms = DUE_MS - 1
    assert decider.carry_out(ReleaseParked()).records == ()
    decider.now_ms = DUE_MS
    assert decider.carry_out(ReleaseParked()).records == (
        ScheduledRebalance(dict.fromkeys(W2_HAD, DUE_MS), W2_HAD),
        GroupMetadata(4, Cause(Why.DELAY_EXPIRED, "B and 1 more"), DUE_MS),
    )
    assert decider.carry_out(ReleaseParked()).records == (), "it fires once"
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources("A A-0 B B-0")
    assert (decider.group.losses, decider.group.schedule) == ({}, ScheduledRebalance())


def test_who_returns_with_the_same_url_gets_its_work_at_once(decider: Decider) -> None:
    parked(decider)
    decider.join("W3", replace(JOIN, url="http://w2"))
    decider.settle()
    assert decider.current("W3").assigned.keys() == W2_HAD
    assert (decider.group.losses, decider.group.schedule) == ({}, ScheduledRebalance())


def test_another_newcomer_gets_none_of_what_is_parked(decider: Decider) -> None:
    parked(decider)
    decider.join("W3")
    decider.settle()
    held = decider.current("W3").assigned.keys() | decider.current("W1").assigned.keys()
    assert held == resources("A A-0")


def test_a_later_loss_shares_the_running_deadline(decider: Decider) -> None:
    decider.join("W3")
    decider.settle()
    decider.carry_out(ExpireSession("W2"))
    decider.now_ms += 5_000
    decider.carry_out(ExpireSession("W1"))
    assert [loss.deadline_ms for loss in decider.group.losses.values()] == [DUE_MS, DUE_MS]


def test_who_is_lost_again_while_its_work_waits_has_lost_both(decider: Decider) -> None:
    decider.carry_out(ExpireSession("W2"))
    decider.compute()
    assert decider.group.schedule.parked.keys() == W2_HAD
    decider.configure("A A-0 B B-0 C")
    decider.join("W2", replace(JOIN, incarnation="2", url="http://w2"))
    snapshot = decider.prepare("W1")
    own = Assignment(  # an assignor of its own, to which W2 is not back
        {"W1": resources("A A-0"), "W2": resources("C")}, dict.fromkeys(W2_HAD, DUE_MS)
    )
    assert decider.install("W1", snapshot, own).error is Error.NONE
    decider.beat("W2", "")
    assert decider.current("W2").assigned.keys() == resources("C")
    decider.carry_out(ExpireSession("W2"))
    assert decider.group.losses["W2"].resources == W2_HAD | resources("C")
    decider.compute()
    assert decider.group.target.error == ""
    assert decider.group.schedule.parked.keys() == W2_HAD | resources("C")


def test_delay_0_parks_nothing() -> None:
    decider = Decider(GroupSettings(max_delay_ms=0))
    decider.configure("A A-0")
    decider.join("W1")
    decider.settle()
    decider.join("W2")
    decider.settle()
    decider.carry_out(ExpireSession("W1"))
    decider.settle()
    assert decider.current("W2").assigned.keys() == resources("A A-0")


def test_a_stale_target_can_not_park_again_what_has_fired(decider: Decider) -> None:
    decider.carry_out(ExpireSession("W2"))
    snapshot = decider.prepare("W1")
    decider.compute()
    decider.carry_out(replace(JOIN, member_id="W3", url="http://w3"))
    snapshot = decider.prepare("W1")
    decider.now_ms = DUE_MS
    decider.carry_out(ReleaseParked())
    assert decider.install("W1", snapshot).error is Error.NONE
    assert decider.group.schedule.fired == W2_HAD
    assert decider.carry_out(ReleaseParked()).records == ()
    decider.settle()
    held = decider.current("W3").assigned.keys() | decider.current("W1").assigned.keys()
    assert held == resources("A A-0 B B-0")


# The rebalance timer.


def revoking(decider: Decider, timeout_ms: int = -1) -> Heartbeat:
    """Let W3 join and W1 be asked to give something up; return the heartbeat that asked."""
    decider.configure("A A-0 A-1 A-2 B B-0")
    decider.carry_out(replace(JOIN, member_id="W0", url="http://w0"))
    decider.settle()
    decider.write(
        GroupMetadata(9, Cause(Why.OPERATOR), 0),
        TargetAssignment(9, {"W0": decider.group.configured}),
    )
    epoch = decider.current("W1").member_epoch
    request = Heartbeat("connect", "W1", epoch, "1", rebalance_timeout_ms=timeout_ms)
    decision = decider.carry_out(request)
    assert decider.current("W1").pending
    assert isinstance(decision.records[-1], CurrentAssignment)
    return request


def test_who_does_not_give_up_in_time_is_removed(decider: Decider) -> None:
    revoking(decider)
    records = decider.carry_out(ExpireRebalance("W1", decider.member("W1").offset)).records
    cause = Cause(Why.REBALANCE_EXPIRED, "http://w1")
    assert records == (
        Tombstone(CurrentAssignment, ("W1",)),
        Tombstone(MemberMetadata, ("W1",)),
        GroupMetadata(10, cause, LOST_AT_MS),
    )


def test_the_timeout_is_that_of_the_very_request(decider: Decider) -> None:
    revoking(decider, timeout_ms=12_000)
    assert decider.member("W1").metadata.rebalance_timeout_ms == 12_000


def test_a_heartbeat_without_an_answer_does_not_extend_the_timer(decider: Decider) -> None:
    request = revoking(decider)
    offset = decider.member("W1").offset
    decider.carry_out(request)
    assert decider.member("W1").offset == offset


def test_a_timer_of_an_older_step_is_void(decider: Decider) -> None:
    revoking(decider)
    offset = decider.member("W1").offset
    decider.beat("W1", "")
    assert decider.carry_out(ExpireRebalance("W1", offset)).records == ()


def test_a_second_revocation_starts_a_timer_of_its_own(decider: Decider) -> None:
    decider.configure("A A-0 A-1")
    decider.write(
        GroupMetadata(8, Cause(Why.OPERATOR), 0),
        TargetAssignment(8, {"W1": resources("A-0"), "W2": resources("B B-0")}),
    )
    decider.beat("W1")
    first = decider.member("W1")
    decider.write(
        GroupMetadata(9, Cause(Why.OPERATOR), 0),
        TargetAssignment(9, {"W1": resources(""), "W2": resources("B B-0")}),
    )
    decider.beat("W1", "A-0")
    second = decider.member("W1")
    assert second.current.pending.keys() == resources("A-0")
    assert second.current.member_epoch == first.current.member_epoch
    assert decider.carry_out(ExpireRebalance("W1", first.offset)).records == ()
    assert decider.carry_out(ExpireRebalance("W1", second.offset)).records != ()


def test_waiting_has_no_timer(decider: Decider) -> None:
    decider.write(
        GroupMetadata(9, Cause(Why.OPERATOR), 0),
        TargetAssignment(9, {"W1": resources("A A-0 B B-0")}),
    )
    decider.beat("W1")
    offset = decider.member("W1").offset
    assert decider.current("W1").state.name == "UNRELEASED"
    assert decider.carry_out(ExpireRebalance("W1", offset)).records == ()
