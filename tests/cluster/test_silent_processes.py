"""Processes that are stopped for a while, on a real node: taken back, or killed and replaced."""

import os
import signal
import time

import psutil
import pytest

from fairlead.runtime.cluster.node_files import read_slow
from fairlead_tests.actor_system import runs
from fairlead_tests.cluster.deeds import overlaps
from fairlead_tests.cluster.node import Node, eventually
from fairlead_tests.cluster.remains import Starts

pytestmark = pytest.mark.cluster

ADMIN, SUPERVISOR, GROUP = "admin connect", "supervisor supervisor", "group connect"
LEADERS = (ADMIN, SUPERVISOR, GROUP)
SHORT_MS = 2_000
PATIENT = {"session_ms": 30_000, "rebalance_ms": 30_000}
"""Sessions so long that no worker fences itself, and is killed for it, while nobody leads it."""


def begin(start_node: Starts, **order: int) -> Node:
    """Start a node with something to do."""
    node = start_node(delay_ms=60_000, **order)
    node.settles("w1", "w2")
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")
    return node


def slow(node: Node) -> set[str]:
    """Which kinds of processes are told to be silent."""
    return {each.kind for each in read_slow(node.data_dir / "run")}


def goes_on(node: Node) -> None:
    """See that commands are taken, that work goes on, and that the node ends when told to."""
    node.put("letters", 2)
    node.runs_tasks("letters", 2, "w1", "w2")
    eventually(lambda: not slow(node), "all are heard")
    assert node.end() == 0


@pytest.mark.soak
def test_who_leads_a_node_and_was_asleep_for_a_while_is_taken_back(start_node: Starts) -> None:
    node = begin(start_node, **PATIENT)
    before = {each.pid for each in node.processes()}
    for title in LEADERS:
        pid = node.hit(title, signal.SIGSTOP)
        eventually(lambda: bool(slow(node)), f"{title} is told to be slow")
        os.kill(pid, signal.SIGCONT)
        eventually(lambda: not slow(node), f"{title} is heard again")
    assert {each.pid for each in node.processes()} == before
    assert overlaps(node.spans()) == []
    goes_on(node)


@pytest.mark.parametrize(
    "titles",
    [
        pytest.param((ADMIN,), marks=pytest.mark.soak),
        pytest.param((SUPERVISOR,), marks=pytest.mark.soak),
        (GROUP,),
        (SUPERVISOR, GROUP),
        pytest.param(LEADERS, marks=pytest.mark.soak),
    ],
    ids=" and ".join,
)
def test_who_leads_a_node_and_does_not_answer_is_killed_and_replaced(
    titles: tuple[str, ...], start_node: Starts
) -> None:
    node = begin(start_node, answer_ms=SHORT_MS)
    stopped = [psutil.Process(node.hit(title, signal.SIGSTOP)) for title in titles]
    eventually(lambda: not any(map(runs, stopped)), "what was stopped is gone")
    assert {node.pid(title) for title in titles}.isdisjoint(each.pid for each in stopped)
    node.settles("w1", "w2")
    goes_on(node)


@pytest.mark.soak
def test_after_a_sleep_of_the_whole_machine_nobody_is_taken_for_hung(start_node: Starts) -> None:
    node = begin(start_node, answer_ms=SHORT_MS, **PATIENT)
    before = node.processes()
    leaders = [node.launcher.pid, *map(node.pid, LEADERS)]
    for pid in leaders:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(2 * SHORT_MS / 1000)
    for pid in leaders:
        os.kill(pid, signal.SIGCONT)
    time.sleep(SHORT_MS / 1000)
    assert node.processes() == before
    goes_on(node)


@pytest.mark.soak
def test_a_node_whose_supervisor_hangs_ends_when_it_is_told_to(start_node: Starts) -> None:
    node = begin(start_node)
    node.hit(SUPERVISOR, signal.SIGSTOP)
    assert node.end() == 0


def test_a_node_whose_admin_is_asleep_ends_in_good_order(start_node: Starts) -> None:
    node = begin(start_node)
    node.hit(ADMIN, signal.SIGSTOP)
    assert node.end(signal.SIGINT) == 0
    assert node.group().members == {}, "all have left"
