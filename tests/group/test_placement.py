"""Where a connector's config says that its work may run, as the coordinator takes it."""

from dataclasses import replace

import pytest

from fairlead.actors.group.computing.snapshot import snapshot_of
from fairlead.actors.messages.commands import ExpireSession
from fairlead.actors.messages.computing import ANY_WORK, Assignment, Install, InstallReply, Needs
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.messages.orders import Cordon, DeleteConnector, PutConnector, SetPlacement
from fairlead.events.model import Cause, ClientAssignor, Why
from fairlead.events.placement import Abilities, encode_abilities
from fairlead.events.records import ConnectorConfig, GroupMetadata, Record
from fairlead.projections.launches import launches
from fairlead_tests.decider import COMPUTE, JOIN, Decider, resource, resources

GPU = encode_abilities(Abilities(1, frozenset({"gpu"})))


@pytest.fixture
def decider() -> Decider:
    """W1 runs A and its two tasks, and B."""
    decider = Decider()
    decider.configure("A A-0 A-1 B")
    decider.join("W1")
    decider.settle()
    return decider


def put(name: str = "A", **placement: str) -> PutConnector:
    said = {f"placement.{key.replace('_', '.')}": value for key, value in placement.items()}
    return PutConnector("connect", name, {"name": name, **said}, principal="rest")


def test_a_change_of_placement_alone_is_one_epoch_and_no_new_launch(
    decider: Decider,
) -> None:
    before = launches(decider.group, "W1", resources("A A-0 A-1"))
    assert before.keys() == resources("A A-0 A-1")
    changed = put(weight="5", zones="a")
    assert decider.carry_out(changed).records == (
        ConnectorConfig("A", changed.config, 1, 0, actor="rest"),
        GroupMetadata(2, Cause(Why.PLACEMENT_CHANGED, "A"), 0, "rest"),
    )
    assert launches(decider.group, "W1", resources("A A-0 A-1")) == before


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
    decider: Decider, first: PutConnector, second: PutConnector
) -> None:
    decider.carry_out(first)
    epoch = decider.group.group_epoch
    decider.carry_out(replace(second, config={**second.config, "other": "1"}))
    assert decider.group.group_epoch == epoch


def test_a_change_of_placement_of_a_group_without_members_is_no_epoch() -> None:
    decider = Decider()
    decider.carry_out(put())
    assert len(decider.carry_out(put(tags="gpu")).records) == 1


def shown(decider: Decider) -> tuple[object, object, object]:
    snapshot = snapshot_of(decider.group, "balanced", 0)
    return snapshot.weights, snapshot.pins, snapshot.needs


def test_an_assignor_is_shown_what_configs_ask_of_what_is_to_run(decider: Decider) -> None:
    decider.join("W2")
    decider.carry_out(put(weight="5", task_weights="1:2,7:9", workers="w2, nobody"))
    decider.carry_out(put("B", tags="gpu", zones="a,b"))
    decider.carry_out(put("C", weight="7", tags="ssd"))
    decider.carry_out(DeleteConnector("connect", "C"))
    assert shown(decider) == (
        {resource("A"): 5, resource("A-0"): 5, resource("A-1"): 2},
        dict.fromkeys(resources("A A-0 A-1"), ("http://w2", "nobody")),
        {"B": Needs(frozenset({"gpu"}), frozenset({"a", "b"}))},
    )


def test_an_operators_order_wins_over_the_config(decider: Decider) -> None:
    decider.join("W2")
    decider.carry_out(put(weight="5", workers="w1"))
    decider.carry_out(SetPlacement("connect", resource("A-0"), weight=3))
    decider.carry_out(SetPlacement("connect", resource("A-1"), pins=("http://w2",)))
    assert shown(decider) == (
        {resource("A"): 5, resource("A-0"): 3, resource("A-1"): 5},
        {
            resource("A"): ("http://w1",),
            resource("A-0"): ("http://w1",),
            resource("A-1"): ("http://w2",),
        },
        {},
    )


def twins(decider: Decider) -> None:
    """Let W2 and W3 join, which share the name `twin`."""
    for member_id in ("W2", "W3"):
        decider.join(member_id, replace(JOIN, url=f"http://{member_id}/twin"))


def test_a_name_that_two_workers_have_means_both(decider: Decider) -> None:
    twins(decider)
    decider.carry_out(put("B", workers="twin"))
    assert shown(decider)[1] == {resource("B"): ("http://W2/twin", "http://W3/twin")}
    decider.settle()
    assert decider.group.owner[resource("B")] in {"W2", "W3"}


def test_another_worker_of_the_same_name_takes_nothing_from_the_one_that_has_the_work() -> None:
    decider = Decider()
    decider.configure("A A-0")
    decider.join("W1", replace(JOIN, url="http://one/w1"))
    decider.carry_out(put(workers="w1"))
    decider.settle()
    decider.join("W2", replace(JOIN, url="http://two/w1"))
    decider.settle()
    assert decider.group.target.unplaceable == {}
    assert decider.group.owner.keys() == resources("A A-0")


def test_a_workers_own_name_means_it_alone_though_others_share_it(
    decider: Decider,
) -> None:
    twins(decider)
    decider.join("W4", replace(JOIN, url="http://W4", instance_id="twin"))
    decider.carry_out(put("B", workers="twin"))
    assert shown(decider)[1] == {resource("B"): ("twin",)}


def test_an_order_for_a_worker_that_is_gone_lends_its_name_to_no_config(
    decider: Decider,
) -> None:
    twins(decider)
    decider.carry_out(Cordon("connect", "http://W2/twin"))
    decider.carry_out(Heartbeat("connect", "W2", -1, "1"))
    decider.carry_out(put("B", workers="twin"))
    assert shown(decider)[1] == {resource("B"): ("http://W3/twin",)}


def test_a_lost_worker_is_still_meant_by_its_names(decider: Decider) -> None:
    twins(decider)
    decider.settle()
    decider.carry_out(ExpireSession("W2"))
    decider.carry_out(put("B", workers="http://W2/twin"))
    assert shown(decider)[1] == {resource("B"): ("http://W2/twin",)}


# A worker that moves, or is called otherwise.


def heard(decider: Decider, **said: object) -> tuple[Record, ...]:
    """What is written when W1 says something of itself."""
    epoch = decider.current("W1").member_epoch
    beat = Heartbeat("connect", "W1", epoch, "1")
    return decider.carry_out(replace(beat, **said)).records  # type: ignore[arg-type]


def is_told(records: tuple[Record, ...]) -> bool:
    return any(
        isinstance(each, GroupMetadata) and each.cause.why is Why.METADATA_CHANGED
        for each in records
    )


def test_a_zone_alone_is_no_epoch(decider: Decider) -> None:
    decider.carry_out(put(tags="gpu", workers="w1"))
    decider.settle()
    metadata = decider.member("W1").metadata
    assert heard(decider, rack="b") == (replace(metadata, rack="b"),)


def test_a_change_of_zone_is_an_epoch_where_work_demands_a_zone(decider: Decider) -> None:
    decider.carry_out(put(zones="a"))
    decider.settle()
    assert decider.group.target.unplaceable.keys() == resources("A A-0 A-1")
    epoch = decider.group.group_epoch
    told = heard(decider, rack="a")
    assert GroupMetadata(epoch + 1, Cause(Why.METADATA_CHANGED, "http://w1"), 0) in told
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources("A A-0 A-1 B")
    assert is_told(heard(decider, rack="b"))
    decider.settle()
    assert decider.current("W1").assigned.keys() == resources("B")
    assert heard(decider, rack="b") == ()


def test_a_connector_that_goes_demands_no_zone_any_more(decider: Decider) -> None:
    decider.carry_out(put("B", zones="a"))
    decider.settle()
    decider.carry_out(DeleteConnector("connect", "B"))
    decider.settle()
    assert not is_told(heard(decider, rack="a"))


def test_a_static_member_that_returns_in_another_zone_loses_what_demands_the_first() -> None:
    decider = Decider()
    decider.configure("A A-0")
    static = replace(JOIN, instance_id="i", rack="a")
    decider.join("W1", static)
    decider.carry_out(put(zones="a"))
    decider.settle()
    for member_id, rack, why in (("S2", "a", False), ("S3", "b", True)):
        seat = decider.group.instances["i"]
        decider.carry_out(Heartbeat("connect", seat, -2, "1", instance_id="i"))
        back = replace(static, member_id=member_id, url="http://w1", rack=rack)
        assert is_told(decider.carry_out(back).records) is why
    decider.settle()
    assert decider.group.target.unplaceable.keys() == resources("A A-0")


def test_another_name_is_an_epoch_where_work_is_pinned(decider: Decider) -> None:
    assert not is_told(heard(decider, url="http://w2"))
    decider.carry_out(put(workers="http://w3"))
    decider.settle()
    assert decider.group.target.unplaceable.keys() == resources("A A-0 A-1")
    assert is_told(heard(decider, url="http://w3"))
    decider.settle()
    assert decider.group.target.unplaceable == {}


@pytest.fixture
def mixed() -> Decider:
    """W1 and W2 run A and B; A needs what W2 alone has, and a target is due."""
    decider = Decider()
    decider.configure("A A-0 B")
    decider.join("W1")
    listed = (ClientAssignor("balanced", metadata=GPU),)
    decider.join("W2", replace(JOIN, assignors=listed))
    decider.carry_out(put(tags="gpu"))
    assert decider.beat("W1", "").error is COMPUTE
    return decider


def install(decider: Decider, w1: str, w2: str) -> InstallReply:
    snapshot = decider.prepare("W1")
    made = Assignment({"W1": resources(w1), "W2": resources(w2)})
    reply = decider.carry_out(Install("connect", "W1", 0, snapshot.group_epoch, made)).reply
    assert isinstance(reply, InstallReply)
    return reply


def test_a_target_that_gives_work_to_who_does_not_meet_it_is_refused(mixed: Decider) -> None:
    assert install(mixed, "A-0 B", "A") == InstallReply(
        Error.INVALID_ASSIGNMENT,
        "A-0 is given to W1, which does not meet: needs tag gpu;"
        " the target stays as it was: correct the assignor before the next attempt",
    )
    assert mixed.group.target.error.startswith("A-0 is given to W1")


def test_a_target_is_held_to_the_demands_of_its_snapshot(mixed: Decider) -> None:
    snapshot = mixed.prepare("W1")
    mixed.carry_out(put("B", tags="ssd"))
    made = Assignment({"W1": resources("B"), "W2": resources("A A-0")})
    command = Install("connect", "W1", 0, snapshot.group_epoch, made)
    assert mixed.carry_out(command).reply == InstallReply(Error.NONE)
    assert mixed.group.group_epoch > mixed.group.assignment_epoch, "another target is due"


def test_a_cordon_is_no_demand(mixed: Decider) -> None:
    mixed.carry_out(Cordon("connect", "w1"))
    assert install(mixed, "B", "A A-0") == InstallReply(Error.NONE)


def only(member_id: str) -> Heartbeat:
    """Return the join of a member that takes no work but such as demands its tag."""
    said = encode_abilities(Abilities(1, frozenset({"gpu"}), tagged_only=True))
    return replace(
        JOIN, member_id=member_id, assignors=(ClientAssignor("balanced", metadata=said),)
    )


def test_work_without_tags_needs_another_worker_where_one_takes_only_work_with_tags(
    decider: Decider,
) -> None:
    decider.carry_out(put("B", tags="gpu"))
    decider.join("W0", only("W0"))
    needs = {"A": ANY_WORK, "B": Needs(frozenset({"gpu"}))}
    assert snapshot_of(decider.group, "balanced", 0).needs == needs
    decider.settle()
    assert decider.group.owner == {
        **dict.fromkeys(resources("A A-0 A-1"), "W1"),
        resource("B"): "W0",
    }


def test_who_takes_only_work_with_tags_is_not_asked_to_compute() -> None:
    decider = Decider()
    decider.carry_out(put("A", tags="gpu"))
    alone = decider.carry_out(only("W0"))
    assert isinstance(alone.reply, HeartbeatReply)
    assert (alone.reply.error, alone.reply.assignment) == (Error.NONE, resources("A"))
    assert decider.group.target.computed_by == "coordinator"
    decider.join("W1")
    assert decider.soft.computation is not None
    assert decider.soft.computation.member_id == "W1"
