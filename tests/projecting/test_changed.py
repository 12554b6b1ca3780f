"""What the log tells of a change whose epoch names only whose it was."""

from dataclasses import replace

import pytest

from fairlead.actors.messages.commands import FinishStop
from fairlead.actors.messages.computing import Assignment
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, PutTaskConfigs
from fairlead.actors.messages.orders import (
    AlterOffsets,
    ConfigureGroup,
    Cordon,
    PutConnector,
    PutConnectors,
    SetPlacement,
    SetTargetState,
    Uncordon,
)
from fairlead.events.group import token_of
from fairlead.events.model import Cause, ClientAssignor, RunState, Why
from fairlead.events.placement import COLD, Abilities, encode_abilities
from fairlead.events.records import ConnectorConfig, GroupMetadata
from fairlead.projections.explain.causes.changes import EpochChanges
from fairlead.projections.explain.lists import moves_of
from fairlead_tests.decider import JOIN, resource
from fairlead_tests.projecting.readings import read_epochs
from fairlead_tests.projecting.timed_log import TimedDecider

COLD_JOIN = replace(JOIN, url="http://w1", assignors=(ClientAssignor("balanced", metadata=COLD),))


@pytest.fixture
def group() -> TimedDecider:
    """W1 is there with connector A, and W2 has joined after it: epochs 1 and 2."""
    group = TimedDecider()
    group.configure("A")
    group.join("W1", replace(COLD_JOIN, assignors=(ClientAssignor("balanced"),)))
    group.join("W2")
    group.compute()
    group.settle()
    return group


def told(group: TimedDecider, why: Why) -> str:
    """What changed with the latest epoch, which has this cause."""
    epoch = group.group.group_epoch
    explained = group.explained(epoch)
    assert explained.report.bump.cause.why is why
    return explained.changed


def says(group: TimedDecider, abilities: Abilities) -> None:
    """Let W1 say of itself that it is able to this."""
    assignor = ClientAssignor("balanced", metadata=encode_abilities(abilities))
    member = group.member("W1")
    beat = replace(COLD_JOIN, member_id="W1", member_epoch=member.current.member_epoch)
    group.heartbeat(replace(beat, assignors=(assignor,)))


def test_a_worker_that_joins_before_it_is_warm_takes_no_work_yet() -> None:
    group = TimedDecider()
    group.join("W1", COLD_JOIN)
    assert told(group, Why.MEMBER_JOINED) == "it takes no work yet"


def test_a_static_worker_that_is_back_and_not_warm_yet_is_told_like_one_that_joins() -> None:
    group = TimedDecider()
    group.configure("A")
    static = replace(COLD_JOIN, instance_id="i1")
    group.join("W1", replace(static, assignors=(ClientAssignor("balanced"),)))
    left_out = Assignment({"W1": frozenset()}, unplaceable={resource("A"): "nobody can"})
    group.install("W1", group.prepare("W1"), left_out)
    group.heartbeat(Heartbeat("connect", "W1", -2, "1", instance_id="i1"))
    group.join("W1", static)
    assert told(group, Why.MEMBER_JOINED) == "it takes no work yet"


def test_a_worker_that_got_warm_and_said_its_tags_is_told_with_both() -> None:
    group = TimedDecider()
    group.join("W1", COLD_JOIN)
    group.compute()
    group.settle()
    says(group, Abilities(2, frozenset({"ssd", "gpu"})))
    changed = told(group, Why.METADATA_CHANGED)
    assert changed == "it takes work now, with capacity 2, tags none > gpu ssd"


def test_a_connector_that_is_resumed_tells_of_the_offsets_that_were_set_meanwhile() -> None:
    group = TimedDecider()
    group.configure("A A-0 B B-0")
    group.join("W1")
    for name in ("A", "B"):
        group.carry_out(SetTargetState("connect", name, RunState.STOPPED))
    group.compute()
    group.settle()
    for name in ("A", "B"):
        group.carry_out(FinishStop(name))
    offsets = (({"path": "a.csv"}, {"row": 1}), ({"path": "b.csv"}, {"row": 2}))
    command = AlterOffsets("connect", "A", "altered", offsets, principal="ann")
    assert group.command(command).error is Error.NONE
    group.carry_out(SetTargetState("connect", "B", RunState.RUNNING))
    assert told(group, Why.CONNECTOR_RESUMED) == ""
    group.carry_out(SetTargetState("connect", "A", RunState.RUNNING))
    changed = "offsets of 2 partitions were altered meanwhile, asked by ann"
    assert told(group, Why.CONNECTOR_RESUMED) == changed
    group.carry_out(SetTargetState("connect", "A", RunState.STOPPED))
    group.carry_out(SetTargetState("connect", "A", RunState.RUNNING))
    assert told(group, Why.CONNECTOR_RESUMED) == ""


def test_a_capacity_is_told_with_what_it_was(group: TimedDecider) -> None:
    says(group, Abilities(3))
    assert told(group, Why.METADATA_CHANGED) == "capacity 1 > 3"
    group.compute()
    group.settle()
    says(group, Abilities(0))
    assert told(group, Why.METADATA_CHANGED) == "it takes no work any more"


def test_an_order_is_told_with_what_held_before_and_its_end_too(group: TimedDecider) -> None:
    a = resource("A")
    group.carry_out(SetPlacement("connect", a, 5, ("http://w1", "http://w2")))
    assert told(group, Why.PLACEMENT_CHANGED) == "weight 1 > 5, workers any > w1 w2"
    group.carry_out(SetPlacement("connect", a, 5, ("http://w2",)))
    assert told(group, Why.PLACEMENT_CHANGED) == "workers w1 w2 > w2"
    group.carry_out(SetPlacement("connect", a, 1, ()))
    assert told(group, Why.PLACEMENT_CHANGED) == "weight 5 > 1, workers w2 > any"


def test_of_a_config_only_what_it_says_of_placement_is_told(group: TimedDecider) -> None:
    group.carry_out(PutConnector("connect", "B", {"name": "B", "password": "hunter2"}))
    assert told(group, Why.CONNECTOR_ADDED) == ""
    config = {"name": "B", "password": "hunter3", "placement.tags": "gpu"}
    group.carry_out(PutConnector("connect", "B", config))
    assert told(group, Why.PLACEMENT_CHANGED) == "placement.tags none > gpu"


def test_connectors_that_are_put_together_are_told_each_and_lead_the_moves_of_their_own(
    group: TimedDecider,
) -> None:
    group.carry_out(PutConnector("connect", "C", {"name": "C", "password": "hunter2"}))
    group.compute()
    group.settle()
    placed = {"name": "A", "placement.workers": "w2"}
    configs = {"A": placed, "B": {"name": "B"}, "C": {"name": "C"}, "D": {"name": "D"}}
    group.carry_out(PutConnectors("connect", configs))
    changed = "new B D; A: placement.workers none > w2"
    assert told(group, Why.CONNECTOR_ADDED) == changed
    group.compute()
    group.settle()
    readings = list(read_epochs(group.entries))
    moves = {name: [*moves_of(readings, name)][-1] for name in ("A", "B", "D")}
    subjects = {name: moves[name].subjects for name in moves}
    assert subjects == {"A": ["A and 2 more"], "B": ["B and 2 more"], "D": ["D and 2 more"]}
    group.carry_out(PutConnector("connect", "E", {"name": "E"}))
    assert told(group, Why.CONNECTOR_ADDED) == ""


def test_connectors_that_raised_no_epoch_before_are_not_taken_for_those_that_are_put_together() -> (
    None
):
    changed = EpochChanges()
    for name in "ABCDE":  # those of a classic group, or of before the log was trimmed, and then two
        changed.apply(ConnectorConfig(name, {"name": name}, 1, 0))
    bump = GroupMetadata(1, Cause(Why.CONNECTOR_ADDED, "D and 1 more"), 0)
    assert (changed.describe(bump), sorted(changed.put_together)) == ("new D E", ["D", "E"])


def test_of_many_connectors_that_are_placed_otherwise_together_the_first_are_told(
    group: TimedDecider,
) -> None:
    names = [f"c{number:02}" for number in range(14)]
    for config in ({}, {"placement.weight": "2"}):
        group.carry_out(PutConnectors("connect", dict.fromkeys(names, config)))
    each = "placement.weight none > 2"
    shown = "; ".join(f"{name}: {each}" for name in names[:12])
    assert told(group, Why.PLACEMENT_CHANGED) == f"{shown}; and 2 more placed otherwise"


def test_a_split_is_told_with_how_many_tasks_there_were(group: TimedDecider) -> None:
    group.carry_out(PutConnector("connect", "B", {"name": "B"}))
    group.compute()
    group.settle()
    for count, said in ((2, "tasks 0 > 2"), (1, "tasks 2 > 1")):
        holder = group.group.owner[resource("B")]
        token = token_of(group.group, holder, resource("B"))
        assert token is not None
        configs = tuple({"n": str(number)} for number in range(count))
        group.carry_out(PutTaskConfigs("connect", holder, "B", token, configs))
        assert told(group, Why.TASKS_CHANGED) == said


def test_a_cause_that_says_it_all_has_no_change_beside_it(group: TimedDecider) -> None:
    group.carry_out(Cordon("connect", "W1", drain=True))
    assert told(group, Why.WORKER_DRAINED) == ""


def test_settings_that_were_changed_since_the_epoch_before_are_told_with_the_next(
    group: TimedDecider,
) -> None:
    for value, size in (("20000", None), ("30000", "7")):
        configs = {"session.timeout.ms": value, "group.max.size": size}
        group.carry_out(ConfigureGroup("connect", configs))
    group.carry_out(Cordon("connect", "W1", drain=True))
    changed = (
        "settings since the epoch before: group.max.size the node's > 7,"
        " session.timeout.ms the node's > 30000"
    )
    assert told(group, Why.WORKER_DRAINED) == changed
    group.carry_out(ConfigureGroup("connect", {"group.max.size": None}))
    group.carry_out(Uncordon("connect", "W1"))
    changed = "settings since the epoch before: group.max.size 7 > the node's"
    assert told(group, Why.WORKER_UNCORDONED) == changed
