"""Static members, departures and bumps of the data's tables."""
# pyright: basic

from dataclasses import replace
from typing import Any

from fairlead.actors.messages.commands import ExpireRebalance, ExpireSession
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, PutTaskConfigs
from fairlead.actors.messages.orders import DeleteConnector, DeleteGroup, PutConnector
from fairlead.events.entries.codec import decode
from fairlead.events.model import Cause, ClientAssignor, GroupState, MemberState, Token, Why
from fairlead.events.records import (
    ConnectorsTasksMetadata,
    CurrentAssignment,
    GroupConfiguration,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from fairlead_tests.conformance.played import agree, outcome, plays
from fairlead_tests.coordination.driver import CoordinatorDriver
from fairlead_tests.decider import COOPERATIVE, JOIN, Decider, resources

WORK = resources("A-3 B-2")
STATIC = replace(JOIN, member_id="new", instance_id="i", incarnation="2", url="http://old")
OWNER = Heartbeat("connect", "old", 10, "1", instance_id="i")
GIVEN = Cause(Why.OPERATOR, "given")


def static_group() -> Decider:
    """A group at epoch 10: `old`, of instance i, holds A-3 and B-2; `other` holds nothing."""
    decider = Decider()
    grants = dict.fromkeys(WORK, 10)
    decider.write(
        MemberMetadata("old", "1", 1, 60_000, COOPERATIVE, instance_id="i", url="http://old"),
        MemberMetadata("other", "1", 2, 60_000, COOPERATIVE),
        GroupMetadata(10, GIVEN, 0),
        ConnectorsTasksMetadata(WORK),
        TargetAssignment(10, {"old": WORK, "other": frozenset()}, "balanced"),
        CurrentAssignment("old", 10, 9, MemberState.STABLE, grants, {}),
        CurrentAssignment("other", 10, 9, MemberState.STABLE, {}, {}),
    )
    return decider


def away() -> Decider:
    """That group after `old` has left temporarily."""
    decider = static_group()
    assert decider.heartbeat(replace(OWNER, member_epoch=-2)).error is Error.NONE
    return decider


@plays("static_membership", "new-instance")
def new_instance(_: CoordinatorDriver, expect: Any) -> None:
    agree(outcome(static_group(), replace(STATIC, instance_id="j")), expect)


@plays("static_membership", "instance-in-use")
def instance_in_use(_: CoordinatorDriver, expect: Any) -> None:
    agree(outcome(static_group(), STATIC), expect)


@plays("static_membership", "temporary-leave")
def temporary_leave(_: CoordinatorDriver, expect: Any) -> None:
    decider = static_group()
    decider.write(
        GroupMetadata(11, GIVEN, 0), TargetAssignment(11, {"old": resources("A-3")}, "balanced")
    )
    decider.heartbeat(OWNER)
    asked_at = decider.member("old").offset
    assert decider.current("old").pending == {next(iter(resources("B-2"))): 10}
    agree(outcome(decider, replace(OWNER, member_epoch=-2)), expect)
    # PROTOCOL §8: a seat that is away holds a place, not work.
    assert decider.current("old") == CurrentAssignment("old", -2, 10, MemberState.AWAY, {}, {})
    assert decider.carry_out(ExpireRebalance("old", asked_at)).records == (), "void"


@plays("static_membership", "return-after-temporary-leave")
def returns(_: CoordinatorDriver, expect: Any) -> None:
    decider = away()
    end = decider.group.end
    agree(outcome(decider, STATIC), expect)
    records = [decode(entry) for entry in decider.witness.entries[end:]]
    grants = dict.fromkeys(WORK, 10)
    # The target is one record (PROTOCOL §10): the share follows the seat by its metadata.
    assert records == [
        Tombstone(CurrentAssignment, ("old",)),
        Tombstone(MemberMetadata, ("old",)),
        decider.member("new").metadata,
        CurrentAssignment("new", 0, 0, MemberState.STABLE, {}, {}),
        CurrentAssignment("new", 10, 0, MemberState.STABLE, grants, {}),
    ]
    assert decider.group.target_of == {"new": WORK, "other": frozenset()}
    assert decider.carry_out(ExpireSession("old")).records == ()


@plays("static_membership", "return-with-new-subscription")
def returns_changed(_: CoordinatorDriver, expect: Any) -> None:
    changed = replace(STATIC, assignors=(ClientAssignor("balanced", 0, 4),))
    agree(outcome(away(), changed), expect)


@plays("static_membership", "no-return")
def no_return(_: CoordinatorDriver, __: Any) -> None:
    decider = away()
    # PROTOCOL §8: the target is one record, so two tombstones, and it held nothing to lose.
    assert _spelled(decider.carry_out(ExpireSession("old")).records) == [
        "current assignment tombstone",
        "member metadata tombstone",
        "group epoch +1",
    ]


@plays("static_membership", "definite-leave")
def definite_leave(_: CoordinatorDriver, expect: Any) -> None:
    agree(outcome(static_group(), replace(OWNER, member_epoch=-1)), expect)


@plays("static_membership", "unknown-instance")
def unknown_instance(_: CoordinatorDriver, expect: Any) -> None:
    for epoch in (10, -1, -2):
        request = replace(OWNER, member_epoch=epoch, instance_id="unknown")
        agree(outcome(static_group(), request), expect)


@plays("static_membership", "foreign-member-id")
def foreign_member_id(_: CoordinatorDriver, expect: Any) -> None:
    for epoch in (10, -1, -2):
        for member_id in ("new", "other"):
            request = replace(OWNER, member_epoch=epoch, member_id=member_id)
            agree(outcome(static_group(), request), expect)


# What bumps, and what does not.


def bumps_of(*requests: Heartbeat | ExpireSession | ExpireRebalance) -> list[int]:
    """By how much each of these alone raises the group epoch."""
    rose = list[int]()
    for request in requests:
        decider = static_group()
        decider.carry_out(request)
        rose.append(decider.group.group_epoch - 10)
    return rose


BEAT = Heartbeat("connect", "old", 10, "1")


@plays("epoch_bumps", "new member (its subscription is new)")
def bump_join(_: CoordinatorDriver, __: Any) -> None:
    assert bumps_of(replace(STATIC, instance_id=None), replace(STATIC, instance_id="j")) == [1, 1]


@plays("epoch_bumps", "subscription / task-config relevant metadata of a member changed")
def bump_change(_: CoordinatorDriver, __: Any) -> None:
    changes: tuple[dict[str, Any], ...] = (
        {"maximum_version": 3},
        {"metadata": b"{}"},
        {"reason": 1},
        {"reason": 3},
    )
    changed = (replace(COOPERATIVE[0], **change) for change in changes)
    assert bumps_of(*(replace(BEAT, assignors=(each,)) for each in changed)) == [1, 1, 1, 1]


@plays("epoch_bumps", "member left (-1)")
def bump_leave(_: CoordinatorDriver, __: Any) -> None:
    assert bumps_of(replace(BEAT, member_epoch=-1)) == [1]


@plays("epoch_bumps", "member fenced (session or rebalance timer)")
def bump_timer(_: CoordinatorDriver, __: Any) -> None:
    assert bumps_of(ExpireSession("old")) == [1]
    decider = static_group()
    decider.write(GroupMetadata(11, GIVEN, 0), TargetAssignment(11, {}, "balanced"))
    decider.heartbeat(BEAT)
    decider.carry_out(ExpireRebalance("old", decider.member("old").offset))
    assert decider.group.group_epoch == 12


@plays(
    "epoch_bumps",
    "subscription metadata (for connect: set of configured connectors/tasks) changed",
)
def bump_configured(_: CoordinatorDriver, __: Any) -> None:
    decider = static_group()
    rose = list[int]()

    def command(order: PutConnector | PutTaskConfigs | DeleteConnector) -> None:
        before = decider.group.group_epoch
        decider.carry_out(order)
        rose.append(decider.group.group_epoch - before)

    command(PutConnector("connect", "C", {"x": "1"}))
    decider.settle()
    (connector,) = resources("C")
    holder = decider.group.owner[connector]
    token = Token(decider.current(holder).assigned[connector], 1)
    command(PutTaskConfigs("connect", holder, "C", token, ({"n": "0"}, {"n": "1"})))
    command(PutTaskConfigs("connect", holder, "C", token, ({"n": "0"},)))
    command(DeleteConnector("connect", "C"))
    assert rose == [1, 1, 1, 1]


@plays("epoch_bumps", "rebalance timeout changed", "client id / host / rack changed")
def record_only(_: CoordinatorDriver, __: Any) -> None:
    changes: tuple[dict[str, Any], ...] = (
        {"rebalance_timeout_ms": 7_000},
        {"client_id": "c"},
        {"client_host": "h"},
        {"rack": "r"},
        {"url": "http://x"},
        {"session_timeout_ms": 20_000},
    )
    for change in changes:
        decision = static_group().carry_out(replace(BEAT, **change))
        assert [type(record) for record in decision.records] == [MemberMetadata], change


@plays("epoch_bumps", "assignor preference changed (server assignor name)")
def preference(_: CoordinatorDriver, __: Any) -> None:
    decider = static_group()
    for member_id in ("old", "other"):
        decider.heartbeat(replace(BEAT, member_id=member_id, server_assignor="uniform"))
    decider.settle()
    epoch = decider.current("old").member_epoch
    said = replace(BEAT, member_epoch=epoch, server_assignor="range")
    assert [type(record) for record in decider.carry_out(said).records] == [MemberMetadata]


@plays("epoch_bumps", "plain heartbeat")
def no_effect_plain(_: CoordinatorDriver, __: Any) -> None:
    assert static_group().carry_out(BEAT).records == ()


@plays("epoch_bumps", "owned list")
def no_effect_owned(_: CoordinatorDriver, __: Any) -> None:
    assert static_group().carry_out(replace(BEAT, owned=tuple(WORK))).records == ()


@plays("epoch_bumps", "static leave -2")
def no_effect_away(_: CoordinatorDriver, __: Any) -> None:
    assert away().group.group_epoch == 10


@plays("epoch_bumps", "static replacement with same subscription")
def no_effect_return(_: CoordinatorDriver, __: Any) -> None:
    decider = away()
    decider.heartbeat(STATIC)
    assert decider.group.group_epoch == 10


@plays("epoch_bumps", "fenced request")
def no_effect_fenced(_: CoordinatorDriver, __: Any) -> None:
    decision = static_group().carry_out(replace(BEAT, member_epoch=11, rack="r"))
    assert decision.records == ()


# Leaving, and the end of a group.

SPELLED = {
    CurrentAssignment: "current assignment",
    MemberMetadata: "member metadata",
    TargetAssignment: "target assignment",
    ConnectorsTasksMetadata: "connectors-tasks metadata",
    GroupConfiguration: "group configuration",
    GroupMetadata: "group metadata",
}


def _spelled(records: tuple[Record, ...]) -> list[str]:
    """Return the names of records in the data, without unknown ones."""
    names = list[str]()
    for record in records:
        if isinstance(record, Tombstone) and record.kind in SPELLED:
            names.append(f"{SPELLED[record.kind]} tombstone")
        elif isinstance(record, Loss):
            names.append("loss (timers only, if it held anything)")
        elif isinstance(record, GroupMetadata):
            names.append("group epoch +1")
    return names


@plays("leave_and_delete", "records_in_order")
def leave_records(_: CoordinatorDriver, expect: Any) -> None:
    assert _spelled(static_group().carry_out(ExpireSession("old")).records) == expect
    said = static_group().carry_out(replace(BEAT, member_epoch=-1)).records
    assert _spelled(said) == [name for name in expect if not name.startswith("loss")]


@plays("leave_and_delete", "group_empty_after_last_leave")
def last_leave(_: CoordinatorDriver, expect: Any) -> None:
    decider = static_group()
    decider.carry_out(replace(BEAT, member_epoch=-1))
    decider.carry_out(replace(BEAT, member_epoch=-1, member_id="other"))
    assert (decider.group.state is GroupState.EMPTY) is expect


@plays("leave_and_delete", "target_recomputed")
def target_recomputed(_: CoordinatorDriver, __: Any) -> None:
    decider = static_group()
    decider.carry_out(replace(BEAT, member_epoch=-1))
    assert decider.group.state is GroupState.ASSIGNING
    assert decider.beat("other").error is Error.COMPUTE_ASSIGNMENT
    served = static_group()
    for member_id in ("old", "other"):
        served.heartbeat(replace(BEAT, member_id=member_id, server_assignor="uniform"))
    records = served.carry_out(replace(BEAT, member_epoch=-1)).records
    assert TargetAssignment in map(type, records), "in the same command"


@plays("leave_and_delete", "delete_group_records_in_order")
def delete_group(_: CoordinatorDriver, expect: Any) -> None:
    decider = static_group()
    decider.write(GroupConfiguration({"group.max.size": "9"}))
    gone = [
        *decider.carry_out(replace(BEAT, member_epoch=-1)).records,
        *decider.carry_out(replace(BEAT, member_epoch=-1, member_id="other")).records,
        *decider.carry_out(DeleteGroup("connect")).records,
    ]
    found = [name for name in _spelled(tuple(gone)) if name.endswith("tombstone")]
    # Each member's two go with its leave; what is left goes with the group.
    members = ["current assignment tombstone", "member metadata tombstone"]
    assert found == [*members, *members, *expect[2:]]
    assert [f"{name}s" for name in members] == expect[:2]


@plays("leave_and_delete", "delete_allowed")
def delete_allowed(_: CoordinatorDriver, __: Any) -> None:
    decider = static_group()
    assert decider.command(DeleteGroup("connect")).error is Error.NON_EMPTY_GROUP
    for member_id in ("old", "other"):
        decider.carry_out(replace(BEAT, member_epoch=-1, member_id=member_id))
    assert decider.command(DeleteGroup("connect")).error is Error.NONE
