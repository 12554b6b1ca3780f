"""Why work moves that its connector's config, or an order, asks to be elsewhere."""

from dataclasses import replace

import pytest

from fairlead.actors.messages.computing import Assignment
from fairlead.actors.messages.members import Heartbeat
from fairlead.actors.messages.orders import PutConnector, SetPlacement
from fairlead.events.model import ClientAssignor
from fairlead.events.placement import COLD, Abilities, encode_abilities
from fairlead.projections.explain.reasons import Reason, ReasonKind
from fairlead_tests.decider import JOIN, resource, resources
from fairlead_tests.projecting.timed_log import TimedDecider

NOT_WARM = (ClientAssignor("balanced", metadata=COLD),)
GPU = (ClientAssignor("balanced", metadata=encode_abilities(Abilities(1, frozenset({"gpu"})))),)


def asked(**placement: str) -> PutConnector:
    return PutConnector("connect", "A", {f"placement.{key}": placement[key] for key in placement})


def why(*commands: PutConnector | SetPlacement, instance_id: str | None = None) -> Reason:
    """Give A from W1 to W2, which has a tag and a zone; return what the log has to say to it."""
    group = TimedDecider(ahead_ms=0)
    group.configure("A B")
    group.at(1_000).join("W1")
    group.at(1_500).compute()
    group.settle()
    group.at(2_000).join("W2", replace(JOIN, assignors=GPU, rack="b", instance_id=instance_id))
    group.at(2_500).compute()
    group.settle()
    assert group.group.target_owner[resource("A")] == "W1"
    for command in commands:
        group.at(9_000).command(command)
    made = Assignment({"W1": resources(""), "W2": resources("A B")})
    group.install("W1", group.at(9_100).prepare("W1"), made)
    (moved,) = group.explained(group.group.assignment_epoch).handovers
    return moved.reason


@pytest.mark.parametrize(
    ("config", "detail"),
    [
        (asked(workers="w2"), "pin"),
        (asked(tags="gpu"), "tag"),
        (asked(zones="a,b"), "zone"),
        (asked(tags="gpu", zones="b", workers="w1,w2"), "tag"),
    ],
)
def test_what_its_giver_may_not_run_any_more_moves_for_that(
    config: PutConnector, detail: str
) -> None:
    assert why(config) == Reason(ReasonKind.CONSTRAINT, detail)


def test_work_of_a_worker_that_takes_none_yet_moves_once_another_does() -> None:
    group = TimedDecider(ahead_ms=0)
    group.configure("A B")
    for at_ms, name in ((1_000, "W1"), (2_000, "W2")):
        group.at(at_ms).join(name, replace(JOIN, assignors=NOT_WARM))
        group.at(at_ms + 500).compute()
        group.settle()
    beat = Heartbeat("connect", "W2", 2, "1", assignors=GPU)
    group.at(9_000).heartbeat(beat)
    group.at(9_100).compute()
    told = group.explained(3)
    assert told.changed == "it takes work now, with capacity 1, tags none > gpu"
    assert [(each.resource, each.reason) for each in told.handovers] == [
        (resource("A"), Reason(ReasonKind.CONSTRAINT, "cold"))
    ]


def test_what_its_giver_might_have_kept_moves_for_the_balance() -> None:
    assert why(asked(workers="w1,w2", weight="7")) == Reason(ReasonKind.BALANCE)


def test_a_name_that_is_another_workers_own_is_not_its_givers() -> None:
    """W1's url ends with w1, but it is W2 that is called so."""
    assert why(asked(workers="w1"), instance_id="w1") == Reason(ReasonKind.CONSTRAINT, "pin")


def test_an_operators_pins_count_and_not_the_configs() -> None:
    allowed = SetPlacement("connect", resource("A"), pins=("w1", "w2"))
    assert why(asked(workers="w2"), allowed) == Reason(ReasonKind.BALANCE)
