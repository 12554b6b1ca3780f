"""What plans say, whole: of small groups whose every move can be followed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from fairlead.actors.assignors.built_in import balanced, incremental
from fairlead.actors.assignors.built_in.catalogue import BuiltIn, Computes
from fairlead.actors.messages.commands import ExpireSession
from fairlead.actors.messages.computing import Assignment, Snapshot
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import ConfigureGroup, DeleteGroup, SetPlacement
from fairlead.events.model import ClientAssignor, GroupState, Why
from fairlead.events.placement import COLD, Abilities
from fairlead.runtime.planning.changes import (
    Change,
    ConnectorDeleted,
    ConnectorScaled,
    ConnectorsPut,
    PlannedConfig,
    WorkerDrained,
    WorkerRemoved,
    WorkersJoined,
)
from fairlead.runtime.planning.compare import make_plan
from fairlead.runtime.planning.dry_run import PlanError
from fairlead.runtime.planning.report import (
    ExpectedDowntime,
    ExpectedDowntimes,
    Plan,
    PlannedCause,
    PlannedLoad,
    PlannedMove,
    PlannedRefusal,
    PlannedRound,
    PlannedSeat,
    PlannedSplit,
    PlannedStart,
    PlannedStop,
    PlannedWorker,
)
from fairlead_tests.decider import JOIN, Decider, resource

OWN: Mapping[str, Computes] = {"balanced": balanced.assign}
UNMEASURED = ExpectedDowntimes()
BALANCE, DRAIN = ("balance", ""), ("constraint", "drain")
W1, W2 = PlannedSeat("http://w1", "W1"), PlannedSeat("http://w2", "W2")
NEW_1, NEW_2 = PlannedSeat("new-1", "new-1"), PlannedSeat("new-2", "new-2")
FOUR = "A A-0 A-1 A-2 A-3"
"""W1 has A, A-0 and A-1, W2 has A-2 and A-3."""


def at_rest(configured: str, *members: str) -> Decider:
    """A group whose members share what is configured, settled."""
    decider = Decider()
    decider.configure(configured)
    for member_id in members:
        decider.join(member_id)
        decider.settle()
    return decider


def planned(
    decider: Decider,
    *changes: Change,
    assignors: Mapping[str, Computes] = OWN,
    downtimes: ExpectedDowntimes = UNMEASURED,
) -> Plan:
    known = {name: BuiltIn(name, 0, 0, computes) for name, computes in assignors.items()}
    return make_plan(decider.group, changes, known, downtimes, decider.now_ms)


def put(name: str, config: dict[str, str], tasks: int) -> ConnectorsPut:
    return ConnectorsPut((PlannedConfig(name, config, tasks),))


def a_round(why: Why, subject: str, **counts: int) -> PlannedRound:
    none = dict.fromkeys(("moved", "placed", "retired", "displaced"), 0)
    return PlannedRound([PlannedCause(why.value, subject)], **none | counts)


def causes(plan: Plan) -> list[str]:
    """The first cause of each round."""
    firsts = (each.causes[0] for each in plan.rounds)
    return [f"{each.cause} {each.subject}" for each in firsts]


def a_worker(
    seat: PlannedSeat, before: PlannedLoad | None, after: PlannedLoad | None, stays: int
) -> PlannedWorker:
    return PlannedWorker(seat.worker, seat.member_id, before, after, stays)


def a_move(
    name: str, giver: PlannedSeat, taker: PlannedSeat, reason: tuple[str, str]
) -> PlannedMove:
    return PlannedMove(name, giver, taker, *reason)


NOTHING_CHANGES = Plan(
    group_id="connect",
    state=GroupState.STABLE,
    group_epoch=2,
    settled=True,
    assignor="balanced",
    rounds=[],
    moves=[],
    starts=[],
    stops=[],
    parked=[],
    unplaceable=[],
    workers=[
        a_worker(W1, PlannedLoad(1, 2, 3), PlannedLoad(1, 2, 3), 3),
        a_worker(W2, PlannedLoad(0, 2, 2), PlannedLoad(0, 2, 2), 2),
    ],
    splits=[],
    cold=[],
    stays=5,
    handovers=0,
)
"""The plan for a group that shares `FOUR`, where nothing is to be done."""


def changed(**fields: Any) -> Plan:
    """That plan with other fields, and what is counted of them."""
    plan = structs.replace(NOTHING_CHANGES, **fields)
    stays = sum(each.stays for each in plan.workers)
    return structs.replace(plan, stays=stays, handovers=sum(each.moved for each in plan.rounds))


def test_a_worker_that_comes_takes_its_share_and_no_more() -> None:
    assert planned(at_rest(FOUR, "W1", "W2"), WorkersJoined(1)) == changed(
        rounds=[a_round(Why.MEMBER_JOINED, "new-1", moved=1)],
        moves=[a_move("A-3", W2, NEW_1, BALANCE)],
        workers=[
            a_worker(W1, PlannedLoad(1, 2, 3), PlannedLoad(1, 2, 3), 3),
            a_worker(W2, PlannedLoad(0, 2, 2), PlannedLoad(0, 1, 1), 1),
            a_worker(NEW_1, None, PlannedLoad(0, 1, 1), 0),
        ],
    )


def test_a_worker_that_is_drained_stays_with_nothing() -> None:
    assert planned(at_rest(FOUR, "W1", "W2"), WorkerDrained("w1")) == changed(
        rounds=[a_round(Why.WORKER_DRAINED, "http://w1", moved=3)],
        moves=[a_move(each, W1, W2, DRAIN) for each in ("A", "A-0", "A-1")],
        workers=[
            a_worker(W1, PlannedLoad(1, 2, 3), PlannedLoad(0, 0, 0), 0),
            a_worker(W2, PlannedLoad(0, 2, 2), PlannedLoad(1, 4, 5), 2),
        ],
    )


def test_a_worker_that_leaves_leaves_nothing_to_wait_for_it() -> None:
    assert planned(at_rest(FOUR, "W1", "W2"), WorkerRemoved("w2")) == changed(
        rounds=[
            a_round(Why.WORKER_DRAINED, "http://w2", moved=2),
            a_round(Why.MEMBER_REMOVED, "http://w2"),
        ],
        moves=[a_move(each, W2, W1, DRAIN) for each in ("A-2", "A-3")],
        workers=[
            a_worker(W1, PlannedLoad(1, 2, 3), PlannedLoad(1, 4, 5), 3),
            a_worker(W2, PlannedLoad(0, 2, 2), None, 0),
        ],
    )


def test_where_the_last_worker_leaves_all_stops() -> None:
    decider = at_rest("A A-0", "W1")
    assert planned(decider, WorkerRemoved("W1")) == changed(
        group_epoch=1,
        rounds=[a_round(Why.WORKER_DRAINED, "http://w1", displaced=2)],
        stops=[PlannedStop("A", W1), PlannedStop("A-0", W1)],
        unplaceable=[PlannedRefusal(each, "no worker is left to run it") for each in ("A", "A-0")],
        workers=[a_worker(W1, PlannedLoad(1, 1, 2), None, 0)],
    )


def test_a_connector_that_is_scaled_starts_or_stops_only_the_difference() -> None:
    decider = at_rest(FOUR, "W1", "W2")
    assert planned(decider, ConnectorScaled("A", 5)) == changed(
        rounds=[a_round(Why.TASKS_CHANGED, "A", placed=1)],
        starts=[PlannedStart("A-4", W1)],
        workers=[
            a_worker(W1, PlannedLoad(1, 2, 3), PlannedLoad(1, 3, 4), 3),
            a_worker(W2, PlannedLoad(0, 2, 2), PlannedLoad(0, 2, 2), 2),
        ],
        splits=[PlannedSplit("A", 4, 5, is_most=True, restarts=5)],
    )
    assert planned(decider, ConnectorScaled("A", 3)) == changed(
        rounds=[a_round(Why.TASKS_CHANGED, "A", retired=1)],
        stops=[PlannedStop("A-3", W2)],
        workers=[
            a_worker(W1, PlannedLoad(1, 2, 3), PlannedLoad(1, 2, 3), 3),
            a_worker(W2, PlannedLoad(0, 2, 2), PlannedLoad(0, 1, 1), 1),
        ],
        splits=[PlannedSplit("A", 4, 3, is_most=True, restarts=4)],
    )


def test_a_new_connector_comes_in_two_epochs_as_it_really_does() -> None:
    assert planned(at_rest(FOUR, "W1", "W2"), put("B", {"name": "B"}, 2)) == changed(
        rounds=[
            a_round(Why.CONNECTOR_ADDED, "B", placed=1),
            a_round(Why.TASKS_CHANGED, "B", placed=2),
        ],
        starts=[PlannedStart("B", W2), PlannedStart("B-0", W1), PlannedStart("B-1", W2)],
        workers=[
            a_worker(W1, PlannedLoad(1, 2, 3), PlannedLoad(1, 3, 4), 3),
            a_worker(W2, PlannedLoad(0, 2, 2), PlannedLoad(1, 3, 4), 2),
        ],
        splits=[PlannedSplit("B", 0, 2, is_most=True)],
    )


def test_connectors_that_are_put_together_are_assigned_in_one_epoch_and_split_one_by_one() -> None:
    both = (PlannedConfig("B", {"name": "B"}, 1), PlannedConfig("C", {"name": "C"}, 1))
    plan = planned(at_rest(FOUR, "W1", "W2"), ConnectorsPut(both))
    assert plan.rounds == [
        a_round(Why.CONNECTOR_ADDED, "B and 1 more", placed=2),
        a_round(Why.TASKS_CHANGED, "B", placed=1),
        a_round(Why.TASKS_CHANGED, "C", placed=1),
    ]
    assert [each.id for each in plan.starts] == ["B", "B-0", "C", "C-0"]


@pytest.mark.parametrize(("key", "restarts"), [("more", 5), ("placement.weight", 0)])
def test_a_connector_whose_config_changes_starts_anew_where_it_is_if_it_will_notice(
    key: str, restarts: int
) -> None:
    decider = at_rest(FOUR, "W1", "W2")
    config = decider.group.connectors["A"].config
    change = put("A", {**config, key: "1"}, 4)
    splits = [PlannedSplit("A", 4, 4, is_most=False, restarts=restarts)]
    plan = planned(decider, change)
    assert structs.replace(plan, rounds=[]) == changed(splits=splits)


@pytest.mark.parametrize("more", [{}, {"placement.weight": "1"}], ids=["same", "placement"])
def test_a_connector_that_will_not_notice_its_config_keeps_its_tasks(more: dict[str, str]) -> None:
    decider = at_rest(FOUR, "W1", "W2")
    known = PlannedConfig("A", {**decider.group.connectors["A"].config, **more}, 9)
    plan = planned(decider, ConnectorsPut((known, PlannedConfig("B", {"name": "B"}, 1))))
    assert [each.id for each in plan.starts] == ["B", "B-0"]
    assert plan.splits == [
        PlannedSplit("A", 4, 4, is_most=False),
        PlannedSplit("B", 0, 1, is_most=True),
    ]


def test_a_deleted_connector_stops_everywhere() -> None:
    assert planned(at_rest(FOUR, "W1", "W2"), ConnectorDeleted("A")) == changed(
        rounds=[a_round(Why.CONNECTOR_DELETED, "A", retired=5)],
        stops=[
            *(PlannedStop(each, W1) for each in ("A", "A-0", "A-1")),
            *(PlannedStop(each, W2) for each in ("A-2", "A-3")),
        ],
        workers=[
            a_worker(W1, PlannedLoad(1, 2, 3), PlannedLoad(0, 0, 0), 0),
            a_worker(W2, PlannedLoad(0, 2, 2), PlannedLoad(0, 0, 0), 0),
        ],
    )


def test_what_changes_hands_twice_on_the_way_is_one_move() -> None:
    plan = planned(at_rest("A A-0 A-1 A-2", "W1"), WorkersJoined(1), WorkerRemoved("W1"))
    assert plan.moves == [
        a_move(each, W1, NEW_1, DRAIN if each != "A-2" else BALANCE)
        for each in ("A", "A-0", "A-1", "A-2")
    ]
    twice = planned(at_rest("A A-0 A-1 A-2 A-3", "W1"), WorkersJoined(1), WorkerRemoved("new-1"))
    assert (twice.moves, twice.stays, twice.handovers) == ([], 5, 4)
    assert causes(twice) == [
        "member-joined new-1",
        "worker-drained new-1",
        "member-removed new-1",
    ]


def test_a_move_has_the_reason_for_which_its_giver_is_left_whatever_comes_after() -> None:
    four = at_rest(FOUR, "W1", "W2")
    plan = planned(four, WorkersJoined(1), WorkerDrained("w1"), WorkerRemoved("w2"))
    assert plan.moves == [
        a_move("A", W1, NEW_1, DRAIN),
        a_move("A-0", W1, NEW_1, DRAIN),
        a_move("A-1", W1, NEW_1, DRAIN),
        a_move("A-2", W2, NEW_1, DRAIN),
        a_move("A-3", W2, NEW_1, BALANCE),
    ]
    assert plan.handovers > len(plan.moves)


def test_workers_that_are_added_come_one_after_the_other() -> None:
    plan = planned(at_rest("A A-0 A-1 A-2 A-3 A-4 A-5", "W1"), WorkersJoined(2))
    assert [each.causes for each in plan.rounds] == [
        [PlannedCause("member-joined", name)] for name in ("new-1", "new-2")
    ]
    assert [(each.member_id, each.after) for each in plan.workers] == [
        ("W1", PlannedLoad(1, 2, 3)),
        ("new-1", PlannedLoad(0, 2, 2)),
        ("new-2", PlannedLoad(0, 2, 2)),
    ]


def test_a_first_worker_gets_everything() -> None:
    decider = at_rest("A A-0")
    plan = planned(decider, WorkersJoined(1))
    assert (plan.state, plan.assignor) == (GroupState.EMPTY, "balanced")
    assert plan.starts == [PlannedStart("A", NEW_1), PlannedStart("A-0", NEW_1)]


def test_a_first_worker_runs_what_it_gets_before_the_next_change() -> None:
    plan = planned(at_rest("A A-0 A-1"), WorkersJoined(1), ConnectorScaled("A", 1))
    assert [each.causes for each in plan.rounds] == [
        [PlannedCause("member-joined", "new-1")],
        [PlannedCause("tasks-changed", "A")],
    ]
    assert plan.starts == [PlannedStart("A", NEW_1), PlannedStart("A-0", NEW_1)]


def test_an_added_worker_is_what_is_said_of_it_and_names_the_assignors_of_the_last() -> None:
    decider = at_rest("A A-0 A-1 A-2")
    says = b'{"capacity":2,"tags":["gpu"]}'
    join = replace(JOIN, assignors=(ClientAssignor("balanced", metadata=says),), rack="a")
    decider.join("W1", join)
    decider.settle()
    seen: list[tuple[str | None, bytes]] = []

    def spy(snapshot: Snapshot) -> Assignment:
        seen.append((snapshot.members["new-1"].rack, snapshot.members["new-1"].metadata))
        return balanced.assign(snapshot)

    for change in (
        WorkersJoined(1),
        WorkersJoined(1, zone="b"),
        WorkersJoined(1, abilities=Abilities(4, frozenset({"gpu"}))),
    ):
        planned(decider, change, assignors={"balanced": spy})
    assert seen == [
        (None, b'{"capacity":1}'),
        ("b", b'{"capacity":1}'),
        (None, b'{"capacity":4,"tags":["gpu"]}'),
    ]


def test_an_added_worker_is_warm() -> None:
    decider = at_rest("A A-0 A-1")
    cold = ClientAssignor("balanced", metadata=b'{"capacity":0}')
    decider.join("W1", replace(JOIN, assignors=(cold,)))
    decider.settle()
    (added,) = planned(decider, WorkersJoined(1)).workers[1:]
    assert added.after == PlannedLoad(1, 2, 3)


def test_the_name_of_a_lost_worker_is_not_given_to_an_added_one() -> None:
    decider = Decider()
    decider.configure(FOUR)
    for name in ("w1", "w2"):
        decider.join(name.upper(), replace(JOIN, url=f"http://host/{name}"))
        decider.settle()
    decider.carry_out(ExpireSession("W2"))
    decider.settle()
    plan = planned(decider, WorkersJoined(1))
    assert [each.id for each in plan.parked] == ["A-2", "A-3"]


def test_a_group_that_rebalances_is_planned_from_where_it_comes_to_rest() -> None:
    decider = at_rest(FOUR, "W1")
    decider.join("W2")
    plan = planned(decider, WorkerDrained("W2"))
    assert (plan.state, plan.settled) == (GroupState.ASSIGNING, False)
    assert [each.causes for each in plan.rounds] == [[PlannedCause("worker-drained", "http://w2")]]
    assert [each.giver for each in plan.moves] == [W2, W2]


def test_a_group_that_was_deleted_is_at_rest() -> None:
    decider = at_rest("A")
    decider.carry_out(DeleteGroup("connect"))
    plan = planned(decider, WorkersJoined(1))
    assert (plan.state, plan.settled) == (GroupState.DEAD, True)


def test_what_nobody_can_take_is_unplaceable_with_its_reason() -> None:
    decider = at_rest("A A-0", "W1", "W2")
    decider.carry_out(SetPlacement("connect", resource("A"), pins=("W1",)))
    decider.settle()
    plan = planned(decider, WorkerDrained("W1"))
    assert plan.rounds == [a_round(Why.WORKER_DRAINED, "http://w1", displaced=2)]
    assert [each.id for each in plan.unplaceable] == ["A", "A-0"]
    assert all("pinned to http://w1" in each.reason for each in plan.unplaceable)
    assert plan.stops == [PlannedStop("A", W1), PlannedStop("A-0", W1)]


def test_a_worker_that_is_not_warm_is_named_for_the_plan_gives_it_nothing() -> None:
    decider = at_rest(FOUR, "W1")
    decider.join("W2", replace(JOIN, assignors=(ClientAssignor("balanced", metadata=COLD),)))
    plan = planned(decider, ConnectorScaled("A", 5))
    assert plan.cold == [W2]
    assert plan.starts == [PlannedStart("A-4", W1)]


def test_a_connector_that_nobody_runs_is_not_split() -> None:
    decider = at_rest("A A-0", "W1")
    decider.carry_out(SetPlacement("connect", resource("A"), pins=("W1",)))
    plan = planned(decider, WorkerDrained("W1"), ConnectorScaled("A", 4))
    assert plan.splits == [PlannedSplit("A", 1, 1, is_most=False)]


def test_weights_count_in_the_load() -> None:
    decider = at_rest("A A-0", "W1")
    decider.carry_out(SetPlacement("connect", resource("A-0"), weight=5))
    decider.settle()
    plan = planned(decider, WorkerDrained("W1"))
    assert plan.workers == [a_worker(W1, PlannedLoad(1, 1, 6), PlannedLoad(0, 0, 0), 0)]


def test_moves_in_rounds_are_followed_until_all_are_made() -> None:
    decider = Decider()
    decider.configure("A " + " ".join(f"A-{number}" for number in range(8)))
    join = replace(JOIN, assignors=(ClientAssignor("incremental"),))
    decider.join("W1", join)
    decider.settle()

    def two_at_a_time(snapshot: Snapshot) -> Assignment:
        return incremental.assign(snapshot, moves=2, interval_ms=1_000)

    plan = planned(decider, WorkersJoined(1), assignors={"incremental": two_at_a_time})
    assert causes(plan) == ["member-joined new-1", "moves-due incremental"]
    assert [each.moved for each in plan.rounds] == [2, 2]
    assert [each.after for each in plan.workers] == [PlannedLoad(1, 4, 5), PlannedLoad(0, 4, 4)]


def test_a_move_is_expected_to_take_as_long_as_those_of_its_connector_or_of_all() -> None:
    own = ExpectedDowntime(100, 900, 7, "connector")
    overall = ExpectedDowntime(300, 2_000, 12, "group")
    decider = at_rest(FOUR, "W1", "W2")
    for connector, expected in (("A", own), ("B", overall)):
        downtimes = ExpectedDowntimes({connector: own}, overall)
        (move,) = planned(decider, WorkersJoined(1), downtimes=downtimes).moves
        assert move.expected_downtime == expected


def test_the_group_that_is_planned_for_stays_as_it_is() -> None:
    decider, same = at_rest(FOUR, "W1", "W2"), at_rest(FOUR, "W1", "W2")
    planned(
        decider,
        WorkersJoined(1),
        put("B", {}, 2),
        ConnectorScaled("A", 2),
        WorkerDrained("W1"),
        WorkerRemoved("W2"),
        ConnectorDeleted("A"),
    )
    assert decider.group == same.group


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (
            WorkerDrained("w9"),
            Error.UNKNOWN_MEMBER_ID,
            "there is no worker 'w9': there are http://w1, http://w2",
        ),
        (
            WorkerRemoved("w9"),
            Error.UNKNOWN_MEMBER_ID,
            "there is no worker 'w9': there are http://w1, http://w2",
        ),
        (
            ConnectorScaled("B", 2),
            Error.UNKNOWN_CONNECTOR,
            "there is no connector B: there are A",
        ),
        (
            ConnectorDeleted("B"),
            Error.UNKNOWN_CONNECTOR,
            "there is no connector B: there are A",
        ),
        (
            put(" ", {}, 1),
            Error.INVALID_CONFIG,
            "",
        ),
    ],
)
def test_a_change_that_the_group_would_refuse_is_refused(
    change: Change, error: Error, said: str
) -> None:
    with pytest.raises(PlanError) as caught:
        planned(at_rest(FOUR, "W1", "W2"), change)
    assert caught.value.error is error
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ((WorkerRemoved("w1"), WorkerRemoved("w1")), "no worker 'w1': there are http://w2"),
        ((ConnectorDeleted("A"), ConnectorScaled("A", 2)), "no connector A: the group has none"),
    ],
)
def test_what_an_earlier_change_took_away_is_missing_because_of_the_plan(
    changes: Sequence[Change], said: str
) -> None:
    with pytest.raises(PlanError) as caught:
        planned(at_rest(FOUR, "W1", "W2"), *changes)
    assert str(caught.value) == f"there is {said}, once the other changes of this plan are made"


def test_an_assignor_that_the_node_has_not_is_named() -> None:
    with pytest.raises(PlanError) as caught:
        planned(at_rest(FOUR, "W1"), WorkersJoined(1), assignors={"eager": balanced.assign})
    assert caught.value.error is Error.UNSUPPORTED_ASSIGNOR
    assert str(caught.value) == (
        "the group's assignor is balanced, which this node is not set to run: what it would do"
        " cannot be told; plans can be made with eager"
    )


def raises(_: Snapshot) -> Assignment:
    raise RuntimeError("no luck")


def forgets(_: Snapshot) -> Assignment:
    return Assignment({})


@pytest.mark.parametrize(
    ("assign", "said"),
    [
        (raises, "assignor balanced fails on this group: RuntimeError: no luck"),
        (forgets, "is neither assigned nor parked nor unplaceable"),
    ],
)
def test_an_assignor_that_fails_makes_no_plan(assign: Computes, said: str) -> None:
    with pytest.raises(PlanError, match=said) as caught:
        planned(at_rest(FOUR, "W1"), WorkersJoined(1), assignors={"balanced": assign})
    assert caught.value.error is Error.INVALID_ASSIGNMENT


def test_a_server_assignor_computes_for_the_group_itself() -> None:
    decider = Decider()
    decider.configure("A A-0 A-1 A-2")
    decider.join("W1", replace(JOIN, assignors=None, server_assignor="uniform"))
    decider.settle()
    plan = planned(decider, WorkersJoined(1), assignors={})
    assert (plan.assignor, len(plan.moves)) == ("uniform", 2)
    with pytest.raises(PlanError, match="they have no tags or capacity") as caught:
        planned(decider, WorkersJoined(1, "b", Abilities(2, frozenset({"gpu"}))), assignors={})
    assert caught.value.error is Error.INVALID_REQUEST


def test_rounds_that_move_nothing_wait_for_who_is_away_and_end_the_plan() -> None:
    decider = at_rest(FOUR, "W1", "W2")

    def waits(snapshot: Snapshot) -> Assignment:
        return replace(balanced.assign(snapshot), again_at_ms=snapshot.now_ms + 1_000)

    plan = planned(decider, WorkerDrained("W1"), assignors={"balanced": waits})
    assert causes(plan) == [
        "worker-drained http://w1",
        "moves-due balanced",
    ]


def test_the_groups_own_settings_hold_for_a_plan() -> None:
    decider = at_rest(FOUR, "W1", "W2")
    changed = {"group.max.size": "2", "assignment.interval.ms": "60000"}
    decider.carry_out(ConfigureGroup("connect", changed))
    with pytest.raises(PlanError, match="2"):
        planned(decider, WorkersJoined(1))
    assert len(planned(decider, WorkerDrained("W1")).moves) == 3


def test_an_added_worker_takes_no_id_that_is_there() -> None:
    decider = at_rest("A A-0 A-1", "new-1")
    plan = planned(decider, WorkersJoined(1))
    assert [each.member_id for each in plan.workers] == ["new-1", "new-2"]
