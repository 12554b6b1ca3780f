"""Where a connector's config says that its work may run, as the coordinator takes it."""

from dataclasses import replace

import pytest
from coordinator import COMPUTE, JOIN, Coordinator, resource, resources

from fairlead.actors.errors import Error
from fairlead.actors.group.computing.snapshot import snapshot_of
from fairlead.actors.messages.computing import Assignment, Install, InstallReply, Needs
from fairlead.actors.messages.orders import Cordon, Place
from fairlead.actors.messages.work import DeleteConnector, PutConnector
from fairlead.events.abilities import Abilities, written
from fairlead.events.model import Assignor, Cause, Why
from fairlead.events.records import ConnectorConfig, GroupMetadata
from fairlead.projections.launches import launches

GPU = written(Abilities(1, frozenset({"gpu"})))


@pytest.fixture
def coordinator() -> Coordinator:
    """W1 runs A and its two tasks, and B."""
    coordinator = Coordinator()
    coordinator.configure("A A-0 A-1 B")
    coordinator.join("W1")
    coordinator.settle()
    return coordinator


def put(name: str = "A", **placement: str) -> PutConnector:
    said = {f"placement.{key.replace('_', '.')}": value for key, value in placement.items()}
    return PutConnector("connect", name, {"name": name, **said}, actor="rest")


def test_a_change_of_placement_alone_is_one_epoch_and_no_new_launch(
    coordinator: Coordinator,
) -> None:
    before = launches(coordinator.group, "W1", resources("A A-0 A-1"))
    assert before.keys() == resources("A A-0 A-1")
    changed = put(weight="5", zones="a")
    assert coordinator.carry_out(changed).records == (
        ConnectorConfig("A", changed.config, 1, 0),
        GroupMetadata(2, Cause(Why.PLACEMENT_CHANGED, "A"), 0, "rest"),
    )
    assert launches(coordinator.group, "W1", resources("A A-0 A-1")) == before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (put(), put(weight="1", tags="", workers=" ")),
        (put(tags="a,b"), put(tags="b, a")),
        (put(weight="2"), put(weight="2", unheard_of="x")),
    ],
    ids=["nothing", "order", "unknown"],
)
def test_what_asks_the_same_in_other_words_is_no_new_epoch(
    coordinator: Coordinator, first: PutConnector, second: PutConnector
) -> None:
    coordinator.carry_out(first)
    epoch = coordinator.group.group_epoch
    coordinator.carry_out(replace(second, config={**second.config, "other": "1"}))
    assert coordinator.group.group_epoch == epoch


def test_a_change_of_placement_of_a_group_without_members_is_no_epoch() -> None:
    coordinator = Coordinator()
    coordinator.carry_out(put())
    assert len(coordinator.carry_out(put(tags="gpu")).records) == 1


def shown(coordinator: Coordinator) -> tuple[object, object, object]:
    snapshot = snapshot_of(coordinator.group, "balanced", 0)
    return snapshot.weights, snapshot.pins, snapshot.needs


def test_an_assignor_is_shown_what_configs_ask_of_what_is_to_run(coordinator: Coordinator) -> None:
    coordinator.join("W2")
    coordinator.carry_out(put(weight="5", task_weights="1:2,7:9", workers="w2, nobody"))
    coordinator.carry_out(put("B", tags="gpu", zones="a,b"))
    coordinator.carry_out(put("C", weight="7", tags="ssd"))
    coordinator.carry_out(DeleteConnector("connect", "C"))
    assert shown(coordinator) == (
        {resource("A"): 5, resource("A-0"): 5, resource("A-1"): 2},
        dict.fromkeys(resources("A A-0 A-1"), ("http://w2", "nobody")),
        {"B": Needs(frozenset({"gpu"}), frozenset({"a", "b"}))},
    )


def test_an_operators_order_wins_over_the_config(coordinator: Coordinator) -> None:
    coordinator.join("W2")
    coordinator.carry_out(put(weight="5", workers="w1"))
    coordinator.carry_out(Place("connect", resource("A-0"), weight=3))
    coordinator.carry_out(Place("connect", resource("A-1"), pins=("http://w2",)))
    assert shown(coordinator) == (
        {resource("A"): 5, resource("A-0"): 3, resource("A-1"): 5},
        {
            resource("A"): ("http://w1",),
            resource("A-0"): ("http://w1",),
            resource("A-1"): ("http://w2",),
        },
        {},
    )


def test_a_name_that_two_workers_have_matches_neither(coordinator: Coordinator) -> None:
    for member_id in ("W2", "W3"):
        url = f"http://{member_id}/twin"
        coordinator.join(member_id, replace(JOIN, url=url))
    coordinator.carry_out(put("B", workers="twin"))
    assert shown(coordinator)[1] == {resource("B"): ("twin",)}


@pytest.fixture
def mixed() -> Coordinator:
    """W1 and W2 run A and B; A needs what W2 alone has, and a target is due."""
    coordinator = Coordinator()
    coordinator.configure("A A-0 B")
    coordinator.join("W1")
    listed = (Assignor("balanced", metadata=GPU),)
    coordinator.join("W2", replace(JOIN, assignors=listed))
    coordinator.carry_out(put(tags="gpu"))
    assert coordinator.beat("W1", "").error is COMPUTE
    return coordinator


def install(coordinator: Coordinator, w1: str, w2: str) -> InstallReply:
    snapshot = coordinator.prepare("W1")
    made = Assignment({"W1": resources(w1), "W2": resources(w2)})
    reply = coordinator.carry_out(Install("connect", "W1", 0, snapshot.group_epoch, made)).reply
    assert isinstance(reply, InstallReply)
    return reply


def test_a_target_that_gives_work_to_who_does_not_meet_it_is_refused(mixed: Coordinator) -> None:
    assert install(mixed, "A-0 B", "A") == InstallReply(
        Error.INVALID_ASSIGNMENT,
        "A-0 is given to W1, which does not meet: needs tag gpu;"
        " the target stays as it was: correct the assignor before the next attempt",
    )
    assert mixed.group.target.error.startswith("A-0 is given to W1")


def test_a_target_is_held_to_the_demands_of_its_snapshot(mixed: Coordinator) -> None:
    snapshot = mixed.prepare("W1")
    mixed.carry_out(put("B", tags="ssd"))
    made = Assignment({"W1": resources("B"), "W2": resources("A A-0")})
    command = Install("connect", "W1", 0, snapshot.group_epoch, made)
    assert mixed.carry_out(command).reply == InstallReply(Error.NONE)
    assert mixed.group.group_epoch > mixed.group.assignment_epoch, "another target is due"


def test_a_cordon_is_no_demand(mixed: Coordinator) -> None:
    mixed.carry_out(Cordon("connect", "w1"))
    assert install(mixed, "B", "A A-0") == InstallReply(Error.NONE)
