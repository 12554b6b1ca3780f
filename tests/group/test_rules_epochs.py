"""What bumps and what does not, where that is no single change, rule by rule (PROTOCOL §2)."""

from dataclasses import replace

import pytest
from coordinator import JOIN, Coordinator, resources

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.computing import Assignment
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat, HeartbeatReply
from fairlead.actors.messages.timers import ExpireSession, ReleaseParked
from fairlead.actors.messages.work import PutConnector
from fairlead.events.model import Cause, ClientAssignor, Why
from fairlead.events.records import GroupMetadata, TargetAssignment

TWO = (ClientAssignor("balanced", 0, 3, 1), ClientAssignor("eager"))
BEAT = Heartbeat("connect", "W1", 1, "1")


@pytest.fixture
def coordinator() -> Coordinator:
    """W1 alone, at rest at epoch 1 with A and B; it lists two assignors."""
    coordinator = Coordinator(GroupSettings(max_delay_ms=60_000))
    coordinator.configure("A B")
    coordinator.join("W1", replace(JOIN, assignors=TWO))
    coordinator.settle()
    return coordinator


LISTS: dict[str, tuple[tuple[ClientAssignor, ...], Why | None]] = {
    "one-less": (TWO[:1], Why.ASSIGNORS_CHANGED),
    "another-name": ((TWO[0], ClientAssignor("lazy")), Why.ASSIGNORS_CHANGED),
    "another-minimum": ((replace(TWO[0], minimum_version=1), TWO[1]), Why.ASSIGNORS_CHANGED),
    "another-maximum": ((replace(TWO[0], maximum_version=4), TWO[1]), Why.ASSIGNORS_CHANGED),
    "only-the-version-that-it-writes": ((replace(TWO[0], version=2), TWO[1]), None),
}


@pytest.mark.parametrize(("listed", "why"), LISTS.values(), ids=LISTS)
def test_a_list_of_assignors_changes_by_names_and_ranges_alone(
    coordinator: Coordinator, listed: tuple[ClientAssignor, ...], why: Why | None
) -> None:
    metadata = coordinator.member("W1").metadata
    records = coordinator.carry_out(replace(BEAT, assignors=listed)).records
    bump = () if why is None else (GroupMetadata(2, Cause(why, "http://w1"), 0),)
    assert records == (replace(metadata, assignors=listed), *bump)


def test_what_was_configured_before_anybody_joined_is_placed_by_the_first_join() -> None:
    coordinator = Coordinator()
    coordinator.carry_out(PutConnector("connect", "A", {"x": "1"}))
    assert coordinator.group.group_epoch == 0
    join = replace(JOIN, member_id="W1", url="http://w1")
    assert coordinator.carry_out(join).records[1:] == (
        GroupMetadata(1, Cause(Why.MEMBER_JOINED, "http://w1"), 0),
    )
    coordinator.compute()
    assert coordinator.beat("W1", "").assignment == resources("A")


def test_a_group_that_nobody_is_in_computes_nothing() -> None:
    coordinator = Coordinator()
    coordinator.carry_out(PutConnector("connect", "A", {"x": "1"}))
    assert coordinator.soft.computation is None
    coordinator.join("W1")
    coordinator.carry_out(ExpireSession("W1"))
    group = coordinator.group
    assert (group.group_epoch, group.assignment_epoch, coordinator.soft.computation) == (2, 0, None)


def test_reason_2_is_ignored_while_a_parked_deadline_is_recorded(coordinator: Coordinator) -> None:
    coordinator.join("W2", replace(JOIN, assignors=TWO))
    coordinator.settle()
    coordinator.carry_out(ExpireSession("W2"))
    coordinator.settle()
    assert coordinator.group.next_deadline_ms == 60_000
    epochs = [coordinator.group.group_epoch]
    for reason in (2, 0, 3, 2):
        listed = (replace(TWO[0], reason=reason), TWO[1])
        coordinator.carry_out(replace(coordinator_beat(coordinator), assignors=listed))
        epochs.append(coordinator.group.group_epoch)
    assert epochs == [3, 3, 3, 4, 4], "only reason 3 counts"


def test_reason_2_bumps_where_no_deadline_will(coordinator: Coordinator) -> None:
    listed = (replace(TWO[0], reason=2), TWO[1])
    coordinator.carry_out(replace(BEAT, assignors=listed))
    cause = Cause(Why.REASON_GIVEN, "http://w1")
    assert coordinator.group.bump == GroupMetadata(2, cause, 0)


def coordinator_beat(coordinator: Coordinator) -> Heartbeat:
    return replace(BEAT, member_epoch=coordinator.current("W1").member_epoch)


def test_nothing_that_only_a_pending_computation_can_clear_bumps(coordinator: Coordinator) -> None:
    """A reason that stays, a deadline that has fired, work that is not placed: all once."""
    coordinator.join("W2", replace(JOIN, assignors=TWO))
    coordinator.settle()
    coordinator.carry_out(ExpireSession("W2"))
    coordinator.settle()
    coordinator.now_ms = 60_000
    coordinator.carry_out(ReleaseParked())
    reason = replace(coordinator_beat(coordinator), assignors=(replace(TWO[0], reason=3), TWO[1]))
    coordinator.carry_out(reason)
    end, epoch = coordinator.group.end, coordinator.group.group_epoch
    for _ in range(3):
        coordinator.now_ms += 10_000
        coordinator.carry_out(ReleaseParked())
        coordinator.carry_out(reason)
    assert (coordinator.group.end, coordinator.group.group_epoch) == (end, epoch)


# Epochs of requests, and what answers carry (PROTOCOL §3).


def move_on(coordinator: Coordinator, epoch: int, text: str) -> None:
    coordinator.write(
        GroupMetadata(epoch, Cause(Why.OPERATOR), 0),
        TargetAssignment(epoch, {"W1": resources(text)}),
    )


def test_two_lost_answers_across_two_targets_fence_and_a_join_heals(
    coordinator: Coordinator,
) -> None:
    for epoch in (2, 3):
        move_on(coordinator, epoch, "A B")
        coordinator.beat("W1", "A B")  # as if a second request had been lost with its answer
    behind = replace(BEAT, owned=tuple(resources("A B")))
    refused = coordinator.heartbeat(behind)
    assert (refused.error, refused.message) == (
        Error.FENCED_MEMBER_EPOCH,
        "epoch 1 is not the member's 3: its seat is kept; stop everything, and rejoin with epoch 0",
    )
    healed = coordinator.join("W1", replace(JOIN, assignors=TWO))
    assert (healed.error, healed.member_epoch, healed.assignment) == (
        Error.NONE,
        3,
        resources("A B"),
    )


def test_an_epoch_above_the_members_is_fenced(coordinator: Coordinator) -> None:
    end = coordinator.group.end
    reply = coordinator.heartbeat(replace(BEAT, member_epoch=2, owned=()))
    assert (reply.error, coordinator.group.end) == (Error.FENCED_MEMBER_EPOCH, end)


def test_an_answer_says_all_that_the_protocol_has(coordinator: Coordinator) -> None:
    move_on(coordinator, 2, "A")
    request = replace(BEAT, sequence=7, owned=())
    assert coordinator.heartbeat(request) == HeartbeatReply(
        Error.NONE,
        "W1",
        2,
        "1",
        7,
        heartbeat_interval_ms=3_000,
        throttle_time_ms=0,
        session_timeout_ms=10_000,
        log_offset=coordinator.group.end,
        assignment=resources("A"),
    )


def test_a_request_that_is_not_full_is_answered_with_the_assignment_only_when_it_changed(
    coordinator: Coordinator,
) -> None:
    move_on(coordinator, 2, "A")
    said = [coordinator.beat("W1", owned).assignment for owned in (None, None, "A", "A")]
    assert said == [resources("A"), None, None, None]


def test_an_empty_grant_is_empty_and_never_missing(coordinator: Coordinator) -> None:
    move_on(coordinator, 2, "")
    said = [coordinator.beat("W1", owned).assignment for owned in ("A B", "")]
    assert said == [frozenset(), None]
    full = replace(JOIN, member_id="W1", member_epoch=2, assignors=TWO, url="http://w1")
    assert coordinator.heartbeat(full).assignment == frozenset()
    assert coordinator.join("W9", replace(JOIN, assignors=TWO)).assignment == frozenset()


def test_who_rejoins_has_nothing_of_its_share_in_the_target_that_stands(
    coordinator: Coordinator,
) -> None:
    coordinator.join("W2", replace(JOIN, assignors=TWO))
    coordinator.settle()
    had = coordinator.group.target_of["W2"]
    coordinator.carry_out(ExpireSession("W2"))
    assert coordinator.group.target_of.keys() == {"W1"}
    assert not had & coordinator.group.target_owner.keys()
    assert coordinator.join("W2", replace(JOIN, assignors=TWO)).assignment == frozenset()
    assert coordinator.beat("W2", "").assignment is None
    assert coordinator.current("W2").assigned == {}, "at the same epoch no token could fence"


def test_a_refused_change_of_the_target_costs_nobody_what_runs(coordinator: Coordinator) -> None:
    coordinator.carry_out(replace(BEAT, assignors=(replace(TWO[0], reason=3), TWO[1])))
    snapshot = coordinator.prepare("W1")
    assert coordinator.install("W1", snapshot, Assignment({})).error is Error.INVALID_ASSIGNMENT
    coordinator.beat("W1")
    assert coordinator.current("W1").assigned.keys() == resources("A B")
