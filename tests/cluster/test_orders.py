"""What operators order, static workers, and an assignor of the group's own, on real processes."""

import os
import signal

import pytest

from fairlead.actors.messages.orders import ConfigureGroup, Cordon, DeleteConnector, Uncordon
from fairlead.events.model import MemberState
from fairlead.runtime.cluster.messages import AddWorker, WorkerAdded
from fairlead_tests.cluster.deeds import overlaps
from fairlead_tests.cluster.node import GROUP, Node, eventually
from fairlead_tests.cluster.remains import Starts

pytestmark = pytest.mark.cluster


def url(node: Node, name: str) -> str:
    """Return the url of a worker."""
    (found,) = (
        member.metadata.url
        for member in node.group().members.values()
        if member.metadata.client_id == name
    )
    return found


def test_a_drained_worker_gives_all_away_and_gets_its_share_back_when_it_is_let(
    start_node: Starts,
) -> None:
    node = start_node()
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    node.command(Cordon(GROUP, "w1", drain=True))
    node.settles("w1", "w2")
    assert node.shares() == [0, 6]
    assert node.held()["w1"] == set()
    members = set(node.group().members)
    node.hit("worker w1")  # an order is for the worker, whatever process it is
    eventually(lambda: not members <= set(node.group().members), "the killed member is gone")
    node.settles("w1", "w2")
    assert node.held()["w1"] == set()
    node.command(Uncordon(GROUP, "w1"))
    node.settles("w1", "w2")
    assert node.shares() == [3, 3]
    assert overlaps(node.spans()) == []


def test_static_workers_keep_their_work_while_their_node_restarts(start_node: Starts) -> None:
    node = start_node(instance="north", delay_ms=60_000)
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    held, epoch = node.held(), node.group().group_epoch
    members = set(node.group().members)
    assert node.end(signal.SIGTERM) == 0
    assert node.held() == {name: set() for name in held}, "a seat holds a place, not work"
    assert {each.state for each in node.group().members.values()} == {MemberState.AWAY}
    node.forget_log()
    again = start_node(instance="north", delay_ms=60_000)
    again.settles("w1", "w2")
    assert again.held() == held
    assert set(again.group().members).isdisjoint(members)
    assert again.group().group_epoch == epoch, "nothing had to be computed anew"
    assert overlaps(again.spans()) == []


@pytest.mark.soak
def test_a_node_that_comes_up_with_fewer_static_workers_or_none_waits_for_no_former_one(
    start_node: Starts,
) -> None:
    four = ["w1", "w2", "w3", "w4"]
    node = start_node(instance="north", delay_ms=300_000, workers=four)
    node.put("numbers", 8)
    node.runs_tasks("numbers", 8, *four)
    assert node.end(signal.SIGTERM) == 0
    node.forget_log()
    fewer = start_node(instance="north", delay_ms=300_000)
    fewer.settles("w1", "w2")
    assert fewer.shares() == [4, 4]
    assert fewer.end(signal.SIGTERM) == 0
    fewer.forget_log()
    none = start_node(delay_ms=300_000)
    none.settles("w1", "w2")
    assert none.shares() == [4, 4]
    none.command(DeleteConnector(GROUP, "numbers"))
    eventually(lambda: not none.group().connectors, "nothing of it is held any more")
    assert overlaps(none.spans()) == []


def test_a_static_worker_that_is_killed_comes_back_to_its_seat(start_node: Starts) -> None:
    node = start_node(instance="north", delay_ms=60_000)
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    held = node.held()
    killed = node.hit("worker w1")

    def has_begun_anew() -> bool:
        begun = [deed for deed in node.deeds() if deed.pid == node.pid("worker w1") != killed]
        return {deed.resource for deed in begun} == held["w1"]

    eventually(has_begun_anew, "the next process of w1 runs what the last one did")
    node.settles("w1", "w2")
    assert node.held() == held
    assert overlaps(node.spans()) == []


@pytest.mark.soak
def test_the_group_itself_computes_where_its_workers_name_an_assignor_of_its_own(
    start_node: Starts,
) -> None:
    node = start_node(assignor="uniform")
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    node.add("w3")
    node.settles("w1", "w2", "w3")
    sizes = sorted(len(held) for held in node.held().values())
    assert sizes == [2, 2, 3], "uniform counts connectors and tasks alike"
    target = node.group().target
    assert (target.assignor, target.computed_by) == ("uniform", "coordinator")
    tagged = AddWorker(os.getpid(), "w4", tags=frozenset({"gpu"}))
    error = "the group computes for the workers of this node: they have no tags or capacity"
    assert node.ask(node.supervisor, tagged) == WorkerAdded("w4", error)
    assert node.ask(node.supervisor, AddWorker(os.getpid(), "w4", zone="b")) == WorkerAdded("w4")
    node.settles("w1", "w2", "w3", "w4")
    racks = {each.metadata.client_id: each.metadata.rack for each in node.group().members.values()}
    assert racks == {"w1": None, "w2": None, "w3": None, "w4": "b"}
    assert overlaps(node.spans()) == []


def test_a_session_that_is_changed_while_the_group_runs_holds_for_its_workers(
    start_node: Starts,
) -> None:
    node = start_node()
    node.put("numbers", 4)
    node.runs_tasks("numbers", 4, "w1", "w2")
    node.command(ConfigureGroup(GROUP, {"session.timeout.ms": "6000"}))
    node.settles("w1", "w2")
    node.hit("group connect")
    node.settles("w1", "w2")
    assert node.group().configs == {"session.timeout.ms": "6000"}
    members = set(node.group().members)
    node.hit("worker w1")
    eventually(lambda: not members <= set(node.group().members), "the killed member is gone")
    node.settles("w1", "w2")
    assert overlaps(node.spans()) == []
