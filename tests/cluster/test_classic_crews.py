"""Workers of the classic protocol on real processes: added, killed, and rolled to the other."""

import pytest

from fairlead.events.model import GroupType
from fairlead_tests.cluster.deeds import overlaps
from fairlead_tests.cluster.node import GROUP, Node, eventually
from fairlead_tests.cluster.remains import Starts

pytestmark = pytest.mark.cluster

MODE = "sessioned"


def roll(node: Node, worker: str, mode: str) -> None:
    """Have a worker leave in good order, and come again with another protocol."""
    node.remove(worker)
    eventually(lambda: worker not in node.states(), f"{worker} has gone")
    node.add(worker, mode=mode)


def test_a_classic_crew_takes_a_worker_in_and_goes_on_without_one_that_is_killed(
    start_node: Starts,
) -> None:
    node = start_node(workers=["w1", "w2"], classic_mode=MODE, backoff_ms=1_500)
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    assert node.group().type is GroupType.CLASSIC
    node.add("w3")
    node.settles("w1", "w2", "w3")
    eventually(lambda: node.shares() == [2, 2, 2], "all have as much")
    node.hit("worker w2")
    node.settles("w1", "w2", "w3")
    eventually(lambda: node.shares() == [2, 2, 2], "all have as much again")
    assert overlaps(node.spans()) == []


@pytest.mark.soak  # each run rolls crews in simulations: simulation/test_seeds.py
def test_a_crew_rolls_from_one_protocol_to_the_other_and_back_while_it_works(
    start_node: Starts,
) -> None:
    node = start_node(workers=[])
    names = ["w1", "w2", "w3", "w4"]
    for name in names:
        node.add(name, mode=MODE)
    node.put("numbers", 8)
    node.runs_tasks("numbers", 8, *names)
    assert node.group().type is GroupType.CLASSIC
    for mode, kind in (("", GroupType.CONNECT), (MODE, GroupType.CLASSIC)):
        for name in names:
            roll(node, name, mode)
            if name == "w2":
                node.hit(f"group {GROUP}")
            node.settles(*names)
        assert node.group().type is kind
    assert overlaps(node.spans()) == []
