"""What operators order of single connectors and tasks: their weights and pins (record 22)."""

from dataclasses import replace

import pytest

from fairlead.actors.messages.commands import CommandReply, FinishDeletion
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import DeleteConnector, SetPlacement
from fairlead.events.model import Cause, Scope, Why
from fairlead.events.records import ConnectorConfig, GroupMetadata, Operator, Tombstone
from fairlead_tests.decider import Decider, resource

NOW_MS = 1_000
W1, W2 = "http://w1", "http://w2"


@pytest.fixture
def decider() -> Decider:
    """A group of W1 with connector A and W2 with connector B, at rest at epoch 2."""
    decider = Decider()
    decider.configure("A A-0 B B-0")
    for member_id in ("W1", "W2"):
        decider.join(member_id)
        decider.settle()
    decider.now_ms = NOW_MS
    return decider


def placed(text: str, **fields: object) -> Operator:
    return replace(
        Operator(Scope.RESOURCE, *resource(text), time_ms=NOW_MS, actor="ann"),
        **fields,  # type: ignore[arg-type]
    )


def test_a_placement_sets_what_it_names_and_leaves_the_rest(decider: Decider) -> None:
    place = SetPlacement("connect", resource("A-0"), weight=7, principal="ann")
    assert decider.carry_out(place).records == (
        placed("A-0", weight=7),
        GroupMetadata(3, Cause(Why.PLACEMENT_CHANGED, "A-0"), NOW_MS, "ann"),
    )
    pinned = SetPlacement("connect", resource("A-0"), pins=("W2", "w1", W2), principal="ann")
    decider.carry_out(pinned)
    assert decider.group.resource_orders == {
        resource("A-0"): placed("A-0", weight=7, pins=(W1, W2))
    }
    assert decider.carry_out(pinned).records == ()


def test_weight_1_and_no_pins_end_a_placement(decider: Decider) -> None:
    decider.carry_out(SetPlacement("connect", resource("A"), weight=7, pins=("W2",)))
    decider.carry_out(SetPlacement("connect", resource("A"), weight=1, pins=()))
    assert decider.group.resource_orders == {}


def test_what_was_said_of_a_task_that_is_gone_is_taken_back_without_an_epoch(
    decider: Decider,
) -> None:
    decider.carry_out(SetPlacement("connect", resource("A-0"), weight=7, pins=("W2",)))
    decider.configure("A B B-0")
    gone = SetPlacement("connect", resource("A-0"), weight=1, pins=())
    assert decider.command(replace(gone, weight=2)).error is Error.UNKNOWN_CONNECTOR
    assert decider.carry_out(gone).records == (Tombstone(Operator, ("resource", "A", 0)),)
    assert decider.command(gone).error is Error.UNKNOWN_CONNECTOR


def test_at_most_100_workers_can_be_named_each_as_often_as_one_likes(
    decider: Decider,
) -> None:
    place = SetPlacement("connect", resource("A"), pins=(W2,) * 101, principal="ann")
    decider.carry_out(place)
    assert decider.group.resource_orders == {resource("A"): placed("A", pins=(W2,))}
    many = replace(place, pins=tuple(f"w{n}" for n in range(101)))
    assert decider.command(many) == CommandReply(
        Error.INVALID_REQUEST, "there are 101 workers to pin to: at most 100 can be named"
    )


def test_an_unknown_resource_is_refused(decider: Decider) -> None:
    for text in ("C", "A-1"):
        assert decider.command(SetPlacement("connect", resource(text), weight=2)) == CommandReply(
            Error.UNKNOWN_CONNECTOR,
            f"{text} is neither a connector of this group nor a task of one",
        )


@pytest.mark.parametrize("weight", [0, -1, 1_001])
def test_a_weight_outside_1_to_1000_is_refused(decider: Decider, weight: int) -> None:
    assert decider.command(SetPlacement("connect", resource("A"), weight=weight)) == CommandReply(
        Error.INVALID_REQUEST,
        f"weight = {weight}: allowed is a whole number, from 1 to 1000",
    )


def test_a_pin_to_an_unknown_worker_is_refused_and_an_old_pin_may_be_repeated(
    decider: Decider,
) -> None:
    place = SetPlacement("connect", resource("A"), pins=("W2",), principal="ann")
    decider.carry_out(place)
    decider.carry_out(Heartbeat("connect", "W2", -1, "1"))
    assert decider.carry_out(replace(place, pins=(W2,))).records == ()
    reply = decider.command(replace(place, pins=("W9",)))
    assert reply.error is Error.UNKNOWN_MEMBER_ID


def test_a_deleted_connectors_placements_go_with_it(decider: Decider) -> None:
    decider.carry_out(SetPlacement("connect", resource("B"), weight=7))
    decider.carry_out(SetPlacement("connect", resource("B-0"), weight=8))
    decider.carry_out(DeleteConnector("connect", "B"))
    decider.settle()
    records = decider.carry_out(FinishDeletion("B")).records
    assert records[-3:] == (
        Tombstone(Operator, ("resource", "B", -1)),
        Tombstone(Operator, ("resource", "B", 0)),
        Tombstone(ConnectorConfig, ("B",)),
    )
    assert decider.group.resource_orders == {}
