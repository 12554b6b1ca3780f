"""Prepare and Install, rule by rule (PROTOCOL §5)."""

from dataclasses import replace

import pytest
from coordinator import COMPUTE, COOPERATIVE, JOIN, Coordinator, resource, resources

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.computing import (
    Assignment,
    Install,
    InstallReply,
    LossView,
    MemberView,
    Prepare,
    PrepareReply,
    Snapshot,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.messages.orders import Place
from fairlead.actors.messages.timers import ExpireSession, ReleaseParked
from fairlead.actors.messages.work import PutConnector

DELAY_MS = 60_000


@pytest.fixture
def coordinator() -> Coordinator:
    """W1, that computes, and W2, at rest with one connector each; W3 has just joined."""
    coordinator = Coordinator(GroupSettings(max_delay_ms=DELAY_MS))
    coordinator.configure("A B")
    coordinator.join("W1")
    coordinator.join("W2")
    coordinator.settle()
    coordinator.join("W3")
    return coordinator


def command(kind: str, **changes: object) -> Prepare | Install:
    asked: Prepare | Install = Prepare("connect", "W1", 2)
    if kind == "install":
        asked = Install("connect", "W1", 2, 3, Assignment({}))
    return replace(asked, **changes)  # type: ignore[arg-type]


ORDER: tuple[tuple[dict[str, object], Error], ...] = (
    ({"group_id": ""}, Error.INVALID_REQUEST),
    ({"member_id": ""}, Error.INVALID_REQUEST),
    ({"member_epoch": -1}, Error.INVALID_REQUEST),
    ({"member_id": "W9"}, Error.UNKNOWN_MEMBER_ID),
    ({"member_epoch": 9}, Error.FENCED_MEMBER_EPOCH),
    ({"member_id": "W2"}, Error.UNKNOWN_MEMBER_ID),
)


@pytest.mark.parametrize("kind", ["prepare", "install"])
def test_prepare_and_install_are_checked_alike_and_in_order(
    coordinator: Coordinator, kind: str
) -> None:
    coordinator.prepare("W1")
    before = (coordinator.group.end, coordinator.soft)
    for at, (changes, error) in enumerate(ORDER):
        later = {key: value for each, _ in reversed(ORDER[at:]) for key, value in each.items()}
        for said in (changes, {**later, **changes}):
            reply = coordinator.carry_out(command(kind, **said)).reply
            assert isinstance(reply, PrepareReply | InstallReply)
            assert reply.error is error, said
            assert reply.message
    assert (coordinator.group.end, coordinator.soft) == before


@pytest.mark.parametrize("kind", ["prepare", "install"])
def test_a_group_that_is_not_there_is_not_found(kind: str) -> None:
    reply = Coordinator().carry_out(command(kind)).reply
    assert isinstance(reply, PrepareReply | InstallReply)
    assert (reply.error, reply.message) == (
        Error.GROUP_ID_NOT_FOUND,
        "there is no group 'connect': drop this computation",
    )


def test_who_is_not_the_chosen_one_is_told_so(coordinator: Coordinator) -> None:
    assert coordinator.carry_out(command("prepare", member_id="W2")).reply == PrepareReply(
        Error.UNKNOWN_MEMBER_ID,
        "another member computes, or nobody needs to: drop this computation",
    )


def test_prepare_returns_all_that_an_assignment_is_computed_from() -> None:
    coordinator = Coordinator(GroupSettings(max_delay_ms=DELAY_MS))
    coordinator.configure("A B")
    listed = (replace(COOPERATIVE[0], metadata=b"mine", reason=3),)
    coordinator.join("W1", replace(JOIN, assignors=listed, rack="north"))
    coordinator.join("W2", replace(JOIN, instance_id="two"))
    coordinator.settle()
    mine, lost = (coordinator.group.target_of[each] for each in ("W1", "W2"))
    coordinator.now_ms = 500
    coordinator.carry_out(ExpireSession("W2"))
    snapshot = coordinator.prepare("W1")
    made = replace(assign(snapshot), metadata=b"last time")
    assert coordinator.install("W1", snapshot, made) == InstallReply(Error.NONE)
    coordinator.carry_out(Place("connect", min(mine), weight=7, pins=("W1",)))
    coordinator.now_ms = 900
    epoch = coordinator.group.group_epoch
    due_ms = 500 + DELAY_MS
    assert coordinator.prepare("W1") == Snapshot(
        group_epoch=epoch,
        assignment_epoch=epoch - 1,
        assignor="balanced",
        assignor_metadata=b"last time",
        configured=resources("A B"),
        members={
            "W1": MemberView(
                "W1",
                coordinator.current("W1").member_epoch,
                None,
                "http://w1",
                "north",
                version=0,
                reason=3,
                metadata=b"mine",
                owned=mine,
                target=mine,
                joined_epoch=1,
                worker="http://w1",
            )
        },
        losses=(LossView("W2", "two", "http://w2", lost, due_ms),),
        parked=dict.fromkeys(lost, due_ms),
        fired=frozenset(),
        now_ms=900,
        weights={min(mine): 7},
        pins={min(mine): ("http://w1",)},
        connectors=resources("A B"),
    )


def test_the_first_bump_is_computed_at_once_and_all_meanwhile_by_the_next_one(
    coordinator: Coordinator,
) -> None:
    first = coordinator.prepare("W1")
    for name in ("C", "D", "E"):
        coordinator.carry_out(PutConnector("connect", name, {"x": "1"}))
        assert coordinator.soft.computation is not None
        assert coordinator.soft.computation.snapshot == first, "one in flight, and not begun anew"
    assert coordinator.install("W1", first) == InstallReply(Error.NONE)
    second = coordinator.prepare("W1")
    assert coordinator.install("W1", second) == InstallReply(Error.NONE)
    assert (first.group_epoch, second.group_epoch) == (3, 6)
    assert (coordinator.group.assignment_epoch, coordinator.soft.computation) == (6, None)


def test_an_assignor_may_park_until_an_earlier_moment_but_not_without_one(
    coordinator: Coordinator,
) -> None:
    lost = coordinator.group.target_of["W2"]
    coordinator.carry_out(ExpireSession("W2"))
    snapshot = coordinator.prepare("W1")
    made = assign(snapshot)
    assert made.parked == dict.fromkeys(lost, DELAY_MS)
    none = replace(made, parked=dict.fromkeys(lost, 0))
    assert coordinator.install("W1", snapshot, none).message.startswith(
        f"{min(lost)} is parked without a deadline; "
    )
    coordinator.join("W4")
    snapshot = coordinator.prepare("W1")
    earlier = replace(assign(snapshot), parked=dict.fromkeys(lost, DELAY_MS - 1))
    assert coordinator.install("W1", snapshot, earlier) == InstallReply(Error.NONE)
    assert coordinator.group.next_deadline_ms == DELAY_MS - 1


def test_what_has_fired_may_not_be_parked_again(coordinator: Coordinator) -> None:
    (lost,) = coordinator.group.target_of["W2"]
    coordinator.carry_out(ExpireSession("W2"))
    coordinator.compute()
    coordinator.now_ms = DELAY_MS
    coordinator.carry_out(ReleaseParked())
    snapshot = coordinator.prepare("W1")
    assert snapshot.fired == {lost}
    again = Assignment({"W1": snapshot.configured - {lost}}, {lost: DELAY_MS})
    reply = coordinator.install("W1", snapshot, again)
    assert reply == InstallReply(
        Error.INVALID_ASSIGNMENT,
        f"{lost} is parked again, but its deadline has passed; the target stays as it was:"
        " correct the assignor before the next attempt",
    )


def test_a_member_that_joined_meanwhile_has_an_empty_target(coordinator: Coordinator) -> None:
    snapshot = coordinator.prepare("W1")
    coordinator.join("W4")
    assert coordinator.install("W1", snapshot) == InstallReply(Error.NONE)
    assert coordinator.group.share_of("W4") == frozenset()
    reply = coordinator.beat("W4", "")
    assert (reply.error, reply.member_epoch, reply.assignment) == (Error.NONE, 3, None)


def test_a_failed_attempt_leaves_the_members_that_are_left_their_work(
    coordinator: Coordinator,
) -> None:
    before = dict(coordinator.group.target_of)
    snapshot = coordinator.prepare("W1")
    failed = Install("connect", "W1", 2, snapshot.group_epoch, None, "no luck")
    assert coordinator.carry_out(failed).reply == InstallReply(Error.NONE)
    target = coordinator.group.target
    assert (target.assignment_epoch, target.error, target.retry_at_ms) == (3, "no luck", 5_000)
    assert coordinator.group.target_of == before


def test_compute_assignment_carries_all_else_that_an_answer_has(coordinator: Coordinator) -> None:
    coordinator.compute()
    coordinator.settle()
    coordinator.join("W4")
    asked = coordinator.heartbeat(Heartbeat("connect", "W1", 3, "1", sequence=5))
    plain = coordinator.heartbeat(Heartbeat("connect", "W2", 3, "1", sequence=5))
    assert asked == replace(plain, error=COMPUTE, member_id="W1")


def test_a_resource_that_is_configured_no_more_is_dropped_from_what_is_installed(
    coordinator: Coordinator,
) -> None:
    snapshot = coordinator.prepare("W1")
    coordinator.configure("A")
    made = Assignment({"W1": frozenset({resource("A")}), "W2": frozenset({resource("B")})})
    assert coordinator.install("W1", snapshot, made) == InstallReply(Error.NONE)
    assert coordinator.group.target_of == {"W1": resources("A"), "W2": frozenset()}
