"""Prepare and Install, rule by rule (PROTOCOL §5)."""

from dataclasses import replace

import pytest

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import ExpireSession, ReleaseParked
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
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import PutConnector, SetPlacement
from fairlead_tests.decider import COMPUTE, COOPERATIVE, JOIN, Decider, resource, resources

DELAY_MS = 60_000


@pytest.fixture
def decider() -> Decider:
    """W1, that computes, and W2, at rest with one connector each; W3 has just joined."""
    decider = Decider(GroupSettings(max_delay_ms=DELAY_MS))
    decider.configure("A B")
    decider.join("W1")
    decider.join("W2")
    decider.settle()
    decider.join("W3")
    return decider


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
def test_prepare_and_install_are_checked_alike_and_in_order(decider: Decider, kind: str) -> None:
    decider.prepare("W1")
    before = (decider.group.end, decider.soft)
    for at, (changes, error) in enumerate(ORDER):
        later = {key: value for each, _ in reversed(ORDER[at:]) for key, value in each.items()}
        for said in (changes, {**later, **changes}):
            reply = decider.carry_out(command(kind, **said)).reply
            assert isinstance(reply, PrepareReply | InstallReply)
            assert reply.error is error, said
            assert reply.message
    assert (decider.group.end, decider.soft) == before


@pytest.mark.parametrize("kind", ["prepare", "install"])
def test_a_group_that_is_not_there_is_not_found(kind: str) -> None:
    reply = Decider().carry_out(command(kind)).reply
    assert isinstance(reply, PrepareReply | InstallReply)
    assert (reply.error, reply.message) == (
        Error.GROUP_ID_NOT_FOUND,
        "there is no group 'connect': drop this computation",
    )


def test_who_is_not_the_chosen_one_is_told_so(decider: Decider) -> None:
    assert decider.carry_out(command("prepare", member_id="W2")).reply == PrepareReply(
        Error.UNKNOWN_MEMBER_ID,
        "another member computes, or nobody needs to: drop this computation",
    )


def test_prepare_returns_all_that_an_assignment_is_computed_from() -> None:
    decider = Decider(GroupSettings(max_delay_ms=DELAY_MS))
    decider.configure("A B")
    listed = (replace(COOPERATIVE[0], metadata=b"mine", reason=3),)
    decider.join("W1", replace(JOIN, assignors=listed, rack="north"))
    decider.join("W2", replace(JOIN, instance_id="two"))
    decider.settle()
    mine, lost = (decider.group.target_of[each] for each in ("W1", "W2"))
    decider.now_ms = 500
    decider.carry_out(ExpireSession("W2"))
    snapshot = decider.prepare("W1")
    made = replace(assign(snapshot), metadata=b"last time")
    assert decider.install("W1", snapshot, made) == InstallReply(Error.NONE)
    decider.carry_out(SetPlacement("connect", min(mine), weight=7, pins=("W1",)))
    decider.now_ms = 900
    epoch = decider.group.group_epoch
    due_ms = 500 + DELAY_MS
    assert decider.prepare("W1") == Snapshot(
        group_epoch=epoch,
        assignment_epoch=epoch - 1,
        assignor="balanced",
        assignor_metadata=b"last time",
        configured=resources("A B"),
        members={
            "W1": MemberView(
                "W1",
                decider.current("W1").member_epoch,
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
    decider: Decider,
) -> None:
    first = decider.prepare("W1")
    for name in ("C", "D", "E"):
        decider.carry_out(PutConnector("connect", name, {"x": "1"}))
        assert decider.soft.computation is not None
        assert decider.soft.computation.snapshot == first, "one in flight, and not begun anew"
    assert decider.install("W1", first) == InstallReply(Error.NONE)
    second = decider.prepare("W1")
    assert decider.install("W1", second) == InstallReply(Error.NONE)
    assert (first.group_epoch, second.group_epoch) == (3, 6)
    assert (decider.group.assignment_epoch, decider.soft.computation) == (6, None)


def test_an_assignor_may_park_until_an_earlier_moment_but_not_without_one(
    decider: Decider,
) -> None:
    lost = decider.group.target_of["W2"]
    decider.carry_out(ExpireSession("W2"))
    snapshot = decider.prepare("W1")
    made = assign(snapshot)
    assert made.parked == dict.fromkeys(lost, DELAY_MS)
    none = replace(made, parked=dict.fromkeys(lost, 0))
    assert decider.install("W1", snapshot, none).message.startswith(
        f"{min(lost)} is parked without a deadline; "
    )
    decider.join("W4")
    snapshot = decider.prepare("W1")
    earlier = replace(assign(snapshot), parked=dict.fromkeys(lost, DELAY_MS - 1))
    assert decider.install("W1", snapshot, earlier) == InstallReply(Error.NONE)
    assert decider.group.next_deadline_ms == DELAY_MS - 1


def test_what_has_fired_may_not_be_parked_again(decider: Decider) -> None:
    (lost,) = decider.group.target_of["W2"]
    decider.carry_out(ExpireSession("W2"))
    decider.compute()
    decider.now_ms = DELAY_MS
    decider.carry_out(ReleaseParked())
    snapshot = decider.prepare("W1")
    assert snapshot.fired == {lost}
    again = Assignment({"W1": snapshot.configured - {lost}}, {lost: DELAY_MS})
    reply = decider.install("W1", snapshot, again)
    assert reply == InstallReply(
        Error.INVALID_ASSIGNMENT,
        f"{lost} is parked again, but its deadline has passed; the target stays as it was:"
        " correct the assignor before the next attempt",
    )


def test_a_member_that_joined_meanwhile_has_an_empty_target(decider: Decider) -> None:
    snapshot = decider.prepare("W1")
    decider.join("W4")
    assert decider.install("W1", snapshot) == InstallReply(Error.NONE)
    assert decider.group.share_of("W4") == frozenset()
    reply = decider.beat("W4", "")
    assert (reply.error, reply.member_epoch, reply.assignment) == (Error.NONE, 3, None)


def test_a_failed_attempt_leaves_the_members_that_are_left_their_work(
    decider: Decider,
) -> None:
    before = dict(decider.group.target_of)
    snapshot = decider.prepare("W1")
    failed = Install("connect", "W1", 2, snapshot.group_epoch, None, "no luck")
    assert decider.carry_out(failed).reply == InstallReply(Error.NONE)
    target = decider.group.target
    assert (target.assignment_epoch, target.error, target.retry_at_ms) == (3, "no luck", 5_000)
    assert decider.group.target_of == before


def test_compute_assignment_carries_all_else_that_an_answer_has(decider: Decider) -> None:
    decider.compute()
    decider.settle()
    decider.join("W4")
    asked = decider.heartbeat(Heartbeat("connect", "W1", 3, "1", sequence=5))
    plain = decider.heartbeat(Heartbeat("connect", "W2", 3, "1", sequence=5))
    assert asked == replace(plain, error=COMPUTE, member_id="W1")


def test_a_resource_that_is_configured_no_more_is_dropped_from_what_is_installed(
    decider: Decider,
) -> None:
    snapshot = decider.prepare("W1")
    decider.configure("A")
    made = Assignment({"W1": frozenset({resource("A")}), "W2": frozenset({resource("B")})})
    assert decider.install("W1", snapshot, made) == InstallReply(Error.NONE)
    assert decider.group.target_of == {"W1": resources("A"), "W2": frozenset()}
