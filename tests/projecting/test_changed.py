"""What the log tells of a change whose epoch names only whose it was."""

from dataclasses import replace

import pytest

from fairlead.actors.messages.computing import Assignment
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.messages.orders import Cordon, Place
from fairlead.actors.messages.work import PutConnector, PutTaskConfigs
from fairlead.events.group import token_of
from fairlead.events.model import ClientAssignor, Why
from fairlead.events.placement import COLD, Abilities, encode_abilities
from fairlead_tests.decider import JOIN, resource
from fairlead_tests.projecting.annals import Scribe

COLD_JOIN = replace(JOIN, url="http://w1", assignors=(ClientAssignor("balanced", metadata=COLD),))


@pytest.fixture
def scribe() -> Scribe:
    """W1 is there with connector A, and W2 has joined after it: epochs 1 and 2."""
    scribe = Scribe()
    scribe.configure("A")
    scribe.join("W1", replace(COLD_JOIN, assignors=(ClientAssignor("balanced"),)))
    scribe.join("W2")
    scribe.compute()
    scribe.settle()
    return scribe


def told(scribe: Scribe, why: Why) -> str:
    """What changed with the latest epoch, which has this cause."""
    epoch = scribe.group.group_epoch
    explained = scribe.explained(epoch)
    assert explained.report.bump.cause.why is why
    return explained.changed


def says(scribe: Scribe, abilities: Abilities) -> None:
    """Let W1 say of itself that it is able to this."""
    assignor = ClientAssignor("balanced", metadata=encode_abilities(abilities))
    member = scribe.member("W1")
    beat = replace(COLD_JOIN, member_id="W1", member_epoch=member.current.member_epoch)
    scribe.heartbeat(replace(beat, assignors=(assignor,)))


def test_a_worker_that_joins_before_it_is_warm_takes_no_work_yet() -> None:
    scribe = Scribe()
    scribe.join("W1", COLD_JOIN)
    assert told(scribe, Why.MEMBER_JOINED) == "it takes no work yet"


def test_a_static_worker_that_is_back_and_not_warm_yet_is_told_like_one_that_joins() -> None:
    scribe = Scribe()
    scribe.configure("A")
    static = replace(COLD_JOIN, instance_id="i1")
    scribe.join("W1", replace(static, assignors=(ClientAssignor("balanced"),)))
    left_out = Assignment({"W1": frozenset()}, unplaceable={resource("A"): "nobody can"})
    scribe.install("W1", scribe.prepare("W1"), left_out)
    scribe.heartbeat(Heartbeat("connect", "W1", -2, "1", instance_id="i1"))
    scribe.join("W1", static)
    assert told(scribe, Why.MEMBER_JOINED) == "it takes no work yet"


def test_a_worker_that_got_warm_and_said_its_tags_is_told_with_both() -> None:
    scribe = Scribe()
    scribe.join("W1", COLD_JOIN)
    scribe.compute()
    scribe.settle()
    says(scribe, Abilities(2, frozenset({"ssd", "gpu"})))
    changed = told(scribe, Why.METADATA_CHANGED)
    assert changed == "it takes work now, with capacity 2, tags none > gpu ssd"


def test_a_capacity_is_told_with_what_it_was(scribe: Scribe) -> None:
    says(scribe, Abilities(3))
    assert told(scribe, Why.METADATA_CHANGED) == "capacity 1 > 3"
    scribe.compute()
    scribe.settle()
    says(scribe, Abilities(0))
    assert told(scribe, Why.METADATA_CHANGED) == "it takes no work any more"


def test_an_order_is_told_with_what_held_before_and_its_end_too(scribe: Scribe) -> None:
    a = resource("A")
    scribe.carry_out(Place("connect", a, 5, ("http://w1", "http://w2")))
    assert told(scribe, Why.PLACEMENT_CHANGED) == "weight 1 > 5, workers any > w1 w2"
    scribe.carry_out(Place("connect", a, 5, ("http://w2",)))
    assert told(scribe, Why.PLACEMENT_CHANGED) == "workers w1 w2 > w2"
    scribe.carry_out(Place("connect", a, 1, ()))
    assert told(scribe, Why.PLACEMENT_CHANGED) == "weight 5 > 1, workers w2 > any"


def test_of_a_config_only_what_it_says_of_placement_is_told(scribe: Scribe) -> None:
    scribe.carry_out(PutConnector("connect", "B", {"name": "B", "password": "hunter2"}))
    assert told(scribe, Why.CONNECTOR_ADDED) == ""
    config = {"name": "B", "password": "hunter3", "placement.tags": "gpu"}
    scribe.carry_out(PutConnector("connect", "B", config))
    assert told(scribe, Why.PLACEMENT_CHANGED) == "placement.tags none > gpu"


def test_a_split_is_told_with_how_many_tasks_there_were(scribe: Scribe) -> None:
    scribe.carry_out(PutConnector("connect", "B", {"name": "B"}))
    scribe.compute()
    scribe.settle()
    for count, said in ((2, "tasks 0 > 2"), (1, "tasks 2 > 1")):
        holder = scribe.group.owner[resource("B")]
        token = token_of(scribe.group, holder, resource("B"))
        assert token is not None
        configs = tuple({"n": str(number)} for number in range(count))
        scribe.carry_out(PutTaskConfigs("connect", holder, "B", token, configs))
        assert told(scribe, Why.TASKS_CHANGED) == said


def test_a_cause_that_says_it_all_has_no_change_beside_it(scribe: Scribe) -> None:
    scribe.carry_out(Cordon("connect", "W1", drain=True))
    assert told(scribe, Why.WORKER_DRAINED) == ""
