"""Where a connector's config says that its work may run, as the coordinator takes it."""

from dataclasses import replace

import pytest
from coordinator import COMPUTE, JOIN, Coordinator, resource, resources

from fairlead.actors.group.computing.snapshot import snapshot_of
from fairlead.actors.messages.computing import Assignment, Install, InstallReply, Needs
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat
from fairlead.actors.messages.orders import Cordon, Place
from fairlead.actors.messages.timers import ExpireSession
from fairlead.actors.messages.work import DeleteConnector, PutConnector
from fairlead.events.model import Cause, ClientAssignor, Why
from fairlead.events.placement.abilities import Abilities, written
from fairlead.events.records import ConnectorConfig, GroupMetadata, Record
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
    return PutConnector("connect", name, {"name": name, **said}, principal="rest")


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


def twins(coordinator: Coordinator) -> None:
    """Let W2 and W3 join, which share the name `twin`."""
    for member_id in ("W2", "W3"):
        coordinator.join(member_id, replace(JOIN, url=f"http://{member_id}/twin"))


def test_a_name_that_two_workers_have_means_both(coordinator: Coordinator) -> None:
    twins(coordinator)
    coordinator.carry_out(put("B", workers="twin"))
    assert shown(coordinator)[1] == {resource("B"): ("http://W2/twin", "http://W3/twin")}
    coordinator.settle()
    assert coordinator.group.owner[resource("B")] in {"W2", "W3"}


def test_another_worker_of_the_same_name_takes_nothing_from_the_one_that_has_the_work() -> None:
    coordinator = Coordinator()
    coordinator.configure("A A-0")
    coordinator.join("W1", replace(JOIN, url="http://one/w1"))
    coordinator.carry_out(put(workers="w1"))
    coordinator.settle()
    coordinator.join("W2", replace(JOIN, url="http://two/w1"))
    coordinator.settle()
    assert coordinator.group.target.unplaceable == {}
    assert coordinator.group.owner.keys() == resources("A A-0")


def test_a_workers_own_name_means_it_alone_though_others_share_it(
    coordinator: Coordinator,
) -> None:
    twins(coordinator)
    coordinator.join("W4", replace(JOIN, url="http://W4", instance_id="twin"))
    coordinator.carry_out(put("B", workers="twin"))
    assert shown(coordinator)[1] == {resource("B"): ("twin",)}


def test_an_order_for_a_worker_that_is_gone_lends_its_name_to_no_config(
    coordinator: Coordinator,
) -> None:
    twins(coordinator)
    coordinator.carry_out(Cordon("connect", "http://W2/twin"))
    coordinator.carry_out(Heartbeat("connect", "W2", -1, "1"))
    coordinator.carry_out(put("B", workers="twin"))
    assert shown(coordinator)[1] == {resource("B"): ("http://W3/twin",)}


def test_a_lost_worker_is_still_meant_by_its_names(coordinator: Coordinator) -> None:
    twins(coordinator)
    coordinator.settle()
    coordinator.carry_out(ExpireSession("W2"))
    coordinator.carry_out(put("B", workers="http://W2/twin"))
    assert shown(coordinator)[1] == {resource("B"): ("http://W2/twin",)}


# A worker that moves, or is called otherwise.


def heard(coordinator: Coordinator, **said: object) -> tuple[Record, ...]:
    """What is written when W1 says something of itself."""
    epoch = coordinator.current("W1").member_epoch
    beat = Heartbeat("connect", "W1", epoch, "1")
    return coordinator.carry_out(replace(beat, **said)).records  # type: ignore[arg-type]


def is_told(records: tuple[Record, ...]) -> bool:
    return any(
        isinstance(each, GroupMetadata) and each.cause.why is Why.METADATA_CHANGED
        for each in records
    )


def test_a_zone_alone_is_no_epoch(coordinator: Coordinator) -> None:
    coordinator.carry_out(put(tags="gpu", workers="w1"))
    coordinator.settle()
    metadata = coordinator.member("W1").metadata
    assert heard(coordinator, rack="b") == (replace(metadata, rack="b"),)


def test_a_change_of_zone_is_an_epoch_where_work_demands_a_zone(coordinator: Coordinator) -> None:
    coordinator.carry_out(put(zones="a"))
    coordinator.settle()
    assert coordinator.group.target.unplaceable.keys() == resources("A A-0 A-1")
    epoch = coordinator.group.group_epoch
    told = heard(coordinator, rack="a")
    assert GroupMetadata(epoch + 1, Cause(Why.METADATA_CHANGED, "http://w1"), 0) in told
    coordinator.settle()
    assert coordinator.current("W1").assigned.keys() == resources("A A-0 A-1 B")
    assert is_told(heard(coordinator, rack="b"))
    coordinator.settle()
    assert coordinator.current("W1").assigned.keys() == resources("B")
    assert heard(coordinator, rack="b") == ()


def test_a_connector_that_goes_demands_no_zone_any_more(coordinator: Coordinator) -> None:
    coordinator.carry_out(put("B", zones="a"))
    coordinator.settle()
    coordinator.carry_out(DeleteConnector("connect", "B"))
    coordinator.settle()
    assert not is_told(heard(coordinator, rack="a"))


def test_a_static_member_that_returns_in_another_zone_loses_what_demands_the_first() -> None:
    coordinator = Coordinator()
    coordinator.configure("A A-0")
    static = replace(JOIN, instance_id="i", rack="a")
    coordinator.join("W1", static)
    coordinator.carry_out(put(zones="a"))
    coordinator.settle()
    for member_id, rack, why in (("S2", "a", False), ("S3", "b", True)):
        seat = coordinator.group.instances["i"]
        coordinator.carry_out(Heartbeat("connect", seat, -2, "1", instance_id="i"))
        back = replace(static, member_id=member_id, url="http://w1", rack=rack)
        assert is_told(coordinator.carry_out(back).records) is why
    coordinator.settle()
    assert coordinator.group.target.unplaceable.keys() == resources("A A-0")


def test_another_name_is_an_epoch_where_work_is_pinned(coordinator: Coordinator) -> None:
    assert not is_told(heard(coordinator, url="http://w2"))
    coordinator.carry_out(put(workers="http://w3"))
    coordinator.settle()
    assert coordinator.group.target.unplaceable.keys() == resources("A A-0 A-1")
    assert is_told(heard(coordinator, url="http://w3"))
    coordinator.settle()
    assert coordinator.group.target.unplaceable == {}


@pytest.fixture
def mixed() -> Coordinator:
    """W1 and W2 run A and B; A needs what W2 alone has, and a target is due."""
    coordinator = Coordinator()
    coordinator.configure("A A-0 B")
    coordinator.join("W1")
    listed = (ClientAssignor("balanced", metadata=GPU),)
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
