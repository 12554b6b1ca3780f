"""What bumps and what does not, where that is no single change, rule by rule (PROTOCOL §2)."""

from dataclasses import replace

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import ExpireSession, ReleaseParked
from fairlead.actors.messages.computing import Assignment
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.messages.orders import PutConnector
from fairlead.events.model import Cause, ClientAssignor, Why
from fairlead.events.records import GroupMetadata, TargetAssignment
from fairlead_tests.decider import JOIN, Decider, resources

TWO = (ClientAssignor("balanced", 0, 3, 1), ClientAssignor("eager"))
BEAT = Heartbeat("connect", "W1", 1, "1")


@pytest.fixture
def decider() -> Decider:
    """W1 alone, at rest at epoch 1 with A and B; it lists two assignors."""
    decider = Decider(GroupSettings(max_delay_ms=60_000))
    decider.configure("A B")
    decider.join("W1", replace(JOIN, assignors=TWO))
    decider.settle()
    return decider


LISTS: dict[str, tuple[tuple[ClientAssignor, ...], Why | None]] = {
    "one-less": (TWO[:1], Why.ASSIGNORS_CHANGED),
    "another-name": ((TWO[0], ClientAssignor("lazy")), Why.ASSIGNORS_CHANGED),
    "another-minimum": ((replace(TWO[0], minimum_version=1), TWO[1]), Why.ASSIGNORS_CHANGED),
    "another-maximum": ((replace(TWO[0], maximum_version=4), TWO[1]), Why.ASSIGNORS_CHANGED),
    "only-the-version-that-it-writes": ((replace(TWO[0], version=2), TWO[1]), None),
}


@pytest.mark.parametrize(("listed", "why"), LISTS.values(), ids=LISTS)
def test_a_list_of_assignors_changes_by_names_and_ranges_alone(
    decider: Decider, listed: tuple[ClientAssignor, ...], why: Why | None
) -> None:
    metadata = decider.member("W1").metadata
    records = decider.carry_out(replace(BEAT, assignors=listed)).records
    bump = () if why is None else (GroupMetadata(2, Cause(why, "http://w1"), 0),)
    assert records == (replace(metadata, assignors=listed), *bump)


def test_what_was_configured_before_anybody_joined_is_placed_by_the_first_join() -> None:
    decider = Decider()
    decider.carry_out(PutConnector("connect", "A", {"x": "1"}))
    assert decider.group.group_epoch == 0
    join = replace(JOIN, member_id="W1", url="http://w1")
    assert decider.carry_out(join).records[1:] == (
        GroupMetadata(1, Cause(Why.MEMBER_JOINED, "http://w1"), 0),
    )
    decider.compute()
    assert decider.beat("W1", "").assignment == resources("A")


def test_a_group_that_nobody_is_in_computes_nothing() -> None:
    decider = Decider()
    decider.carry_out(PutConnector("connect", "A", {"x": "1"}))
    assert decider.soft.computation is None
    decider.join("W1")
    decider.carry_out(ExpireSession("W1"))
    group = decider.group
    assert (group.group_epoch, group.assignment_epoch, decider.soft.computation) == (2, 0, None)


def test_reason_2_is_ignored_while_a_parked_deadline_is_recorded(decider: Decider) -> None:
    decider.join("W2", replace(JOIN, assignors=TWO))
    decider.settle()
    decider.carry_out(ExpireSession("W2"))
    decider.settle()
    assert decider.group.next_deadline_ms == 60_000
    epochs = [decider.group.group_epoch]
    for reason in (2, 0, 3, 2):
        listed = (replace(TWO[0], reason=reason), TWO[1])
        decider.carry_out(replace(coordinator_beat(decider), assignors=listed))
        epochs.append(decider.group.group_epoch)
    assert epochs == [3, 3, 3, 4, 4], "only reason 3 counts"


def test_reason_2_bumps_where_no_deadline_will(decider: Decider) -> None:
    listed = (replace(TWO[0], reason=2), TWO[1])
    decider.carry_out(replace(BEAT, assignors=listed))
    cause = Cause(Why.REASON_GIVEN, "http://w1")
    assert decider.group.bump == GroupMetadata(2, cause, 0)


def coordinator_beat(decider: Decider) -> Heartbeat:
    return replace(BEAT, member_epoch=decider.current("W1").member_epoch)


def test_nothing_that_only_a_pending_computation_can_clear_bumps(decider: Decider) -> None:
    """A reason that stays, a deadline that has fired, work that is not placed: all once."""
    decider.join("W2", replace(JOIN, assignors=TWO))
    decider.settle()
    decider.carry_out(ExpireSession("W2"))
    decider.settle()
    decider.now_ms = 60_000
    decider.carry_out(ReleaseParked())
    reason = replace(coordinator_beat(decider), assignors=(replace(TWO[0], reason=3), TWO[1]))
    decider.carry_out(reason)
    end, epoch = decider.group.end, decider.group.group_epoch
    for _ in range(3):
        decider.now_ms += 10_000
        decider.carry_out(ReleaseParked())
        decider.carry_out(reason)
    assert (decider.group.end, decider.group.group_epoch) == (end, epoch)


# Epochs of requests, and what answers carry (PROTOCOL §3).


def move_on(decider: Decider, epoch: int, text: str) -> None:
    decider.write(
        GroupMetadata(epoch, Cause(Why.OPERATOR), 0),
        TargetAssignment(epoch, {"W1": resources(text)}),
    )


def test_two_lost_answers_across_two_targets_fence_and_a_join_heals(
    decider: Decider,
) -> None:
    for epoch in (2, 3):
        move_on(decider, epoch, "A B")
        decider.beat("W1", "A B")  # as if a second request had been lost with its answer
    behind = replace(BEAT, owned=tuple(resources("A B")))
    refused = decider.heartbeat(behind)
    assert (refused.error, refused.message) == (
        Error.FENCED_MEMBER_EPOCH,
        "epoch 1 is not the member's 3: its seat is kept; stop everything, and rejoin with epoch 0",
    )
    healed = decider.join("W1", replace(JOIN, assignors=TWO))
    assert (healed.error, healed.member_epoch, healed.assignment) == (
        Error.NONE,
        3,
        resources("A B"),
    )


def test_an_epoch_above_the_members_is_fenced(decider: Decider) -> None:
    end = decider.group.end
    reply = decider.heartbeat(replace(BEAT, member_epoch=2, owned=()))
    assert (reply.error, decider.group.end) == (Error.FENCED_MEMBER_EPOCH, end)


def test_an_answer_says_all_that_the_protocol_has(decider: Decider) -> None:
    move_on(decider, 2, "A")
    request = replace(BEAT, sequence=7, owned=())
    assert decider.heartbeat(request) == HeartbeatReply(
        Error.NONE,
        "W1",
        2,
        "1",
        7,
        heartbeat_interval_ms=3_000,
        throttle_time_ms=0,
        session_timeout_ms=10_000,
        log_offset=decider.group.end,
        assignment=resources("A"),
    )


def test_a_request_that_is_not_full_is_answered_with_the_assignment_only_when_it_changed(
    decider: Decider,
) -> None:
    move_on(decider, 2, "A")
    said = [decider.beat("W1", owned).assignment for owned in (None, None, "A", "A")]
    assert said == [resources("A"), None, None, None]


def test_an_empty_grant_is_empty_and_never_missing(decider: Decider) -> None:
    move_on(decider, 2, "")
    said = [decider.beat("W1", owned).assignment for owned in ("A B", "")]
    assert said == [frozenset(), None]
    full = replace(JOIN, member_id="W1", member_epoch=2, assignors=TWO, url="http://w1")
    assert decider.heartbeat(full).assignment == frozenset()
    assert decider.join("W9", replace(JOIN, assignors=TWO)).assignment == frozenset()


def test_who_rejoins_has_nothing_of_its_share_in_the_target_that_stands(
    decider: Decider,
) -> None:
    decider.join("W2", replace(JOIN, assignors=TWO))
    decider.settle()
    had = decider.group.target_of["W2"]
    decider.carry_out(ExpireSession("W2"))
    assert decider.group.target_of.keys() == {"W1"}
    assert not had & decider.group.target_owner.keys()
    assert decider.join("W2", replace(JOIN, assignors=TWO)).assignment == frozenset()
    assert decider.beat("W2", "").assignment is None
    assert decider.current("W2").assigned == {}, "at the same epoch no token could fence"


def test_a_refused_change_of_the_target_costs_nobody_what_runs(decider: Decider) -> None:
    decider.carry_out(replace(BEAT, assignors=(replace(TWO[0], reason=3), TWO[1])))
    snapshot = decider.prepare("W1")
    assert decider.install("W1", snapshot, Assignment({})).error is Error.INVALID_ASSIGNMENT
    decider.beat("W1")
    assert decider.current("W1").assigned.keys() == resources("A B")
