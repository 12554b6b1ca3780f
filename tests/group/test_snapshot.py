"""What an assignor is shown of the group, operators' orders included (PROTOCOL §5)."""

from dataclasses import replace

from fairlead.actors.group.computing.snapshot import snapshot_of
from fairlead.actors.messages.computing import MemberView, Snapshot
from fairlead.actors.messages.orders import Cordon, SetPlacement, Uncordon
from fairlead_tests.decider import COOPERATIVE, JOIN, Decider, resource, resources

CALLED = ("http://w1", "two", "W3")


def group() -> Decider:
    """W1 with a url, W2 with an instance id as well, W3 with neither, over A and its tasks."""
    decider = Decider()
    decider.configure("A A-0 A-1")
    decider.join("W1")
    decider.join("W2", replace(JOIN, instance_id="two"))
    decider.heartbeat(replace(JOIN, member_id="W3"))
    return decider


def shown(decider: Decider, assignor: str = "balanced") -> Snapshot:
    return snapshot_of(decider.group, assignor, decider.now_ms)


def orders(snapshot: Snapshot) -> list[tuple[str, bool, bool]]:
    members = snapshot.members
    return [
        (members[each].worker, members[each].cordoned, members[each].draining)
        for each in sorted(members)
    ]


def test_a_worker_is_known_by_instance_id_else_url_else_member_id() -> None:
    assert orders(shown(group())) == [(name, False, False) for name in CALLED]


def test_an_assignor_sees_who_is_cordoned_and_who_is_drained() -> None:
    decider = group()
    decider.carry_out(Cordon("connect", "http://w1"))
    decider.carry_out(Cordon("connect", "two", drain=True))
    assert orders(shown(decider)) == [
        ("http://w1", True, False),
        ("two", True, True),
        ("W3", False, False),
    ]
    decider.carry_out(Uncordon("connect", "http://w1"))
    assert orders(shown(decider))[0] == ("http://w1", False, False)


def test_a_connectors_order_stands_for_its_tasks_that_have_none_of_their_own() -> None:
    decider = group()
    decider.carry_out(SetPlacement("connect", resource("A"), weight=3, pins=("two",)))
    decider.carry_out(SetPlacement("connect", resource("A-1"), weight=7))
    snapshot = shown(decider)
    assert snapshot.weights == {resource("A"): 3, resource("A-0"): 3, resource("A-1"): 7}
    assert snapshot.pins == dict.fromkeys(resources("A A-0"), ("two",))


def test_a_member_is_shown_as_it_speaks_of_that_assignor() -> None:
    decider = Decider()
    listed = (replace(COOPERATIVE[0], name="other", metadata=b"first"), COOPERATIVE[0])
    decider.join("W1", replace(JOIN, assignors=listed))
    decider.join("W2", replace(JOIN, assignors=None, server_assignor="uniform"))
    view = MemberView(
        "W1", 1, None, "http://w1", None, 0, 0, b"", frozenset(), frozenset(), 1, worker="http://w1"
    )
    decider.beat("W1", "")
    assert shown(decider).members["W1"] == replace(view, member_epoch=2)
    assert shown(decider, "uniform").members["W1"].metadata == b"first"
    assert shown(decider, "uniform").members["W2"].metadata == b""


def test_an_assignor_sees_its_own_metadata_and_no_others() -> None:
    decider = group()
    snapshot = decider.prepare("W1")
    made = {"W1": snapshot.configured}
    computed = replace(decider.group.target, members=made, assignor="balanced")
    decider.group.target = replace(computed, assignor_metadata=b"memory")
    assert shown(decider).assignor_metadata == b"memory"
    assert shown(decider, "uniform").assignor_metadata == b""
