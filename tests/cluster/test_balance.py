"""Workers come and go, and the work follows them without ever being done twice."""

import os
import signal
import subprocess
import sys

import pytest

from fairlead_tests.cluster.deeds import overlaps
from fairlead_tests.cluster.node import eventually
from fairlead_tests.cluster.remains import Starts

pytestmark = pytest.mark.cluster


def test_workers_that_come_get_their_share_and_give_it_back_when_they_go(
    start_node: Starts,
) -> None:
    node = start_node(workers=["w1"])
    node.put("numbers", 12)
    node.runs_tasks("numbers", 12, "w1")
    node.add("w2")
    node.settles("w1", "w2")
    assert node.shares() == [6, 6]
    node.add("w3")
    node.settles("w1", "w2", "w3")
    assert node.shares() == [4, 4, 4]
    node.remove("w1")
    node.settles("w2", "w3")
    assert node.shares() == [6, 6]
    # The group knows of a leave before the process that left has ended: until then it is shown.
    eventually(lambda: node.states() == {"w2": "running", "w3": "running"}, "it is gone")
    assert overlaps(node.spans()) == []


@pytest.mark.soak
def test_a_worker_leaves_when_the_command_that_it_is_tied_to_is_killed(
    start_node: Starts,
) -> None:
    node = start_node(workers=["w1"], delay_ms=60_000)
    node.put("numbers", 3)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as command:
        node.add("tied", command.pid)
        node.runs_tasks("numbers", 3, "tied", "w1")
        os.kill(command.pid, signal.SIGKILL)  # and nobody waits for it: a zombie is gone as well
        node.settles("w1")
    eventually(lambda: node.states() == {"w1": "running"}, "the worker is forgotten")
    node.add("late", command.pid)
    eventually(lambda: node.states() == {"w1": "running"}, "nor does one stay for the dead")
    node.settles("w1")
    assert (node.group().losses, overlaps(node.spans())) == ({}, [])


def test_a_removed_worker_stays_away_when_the_group_is_opened_anew(start_node: Starts) -> None:
    node = start_node(workers=["w1", "w2"])
    node.settles("w1", "w2")
    node.put("numbers", 3)
    node.runs_tasks("numbers", 3, "w1", "w2")
    node.remove("w2")
    node.settles("w1")
    node.hit("group connect")
    node.put("numbers", 5)
    node.runs_tasks("numbers", 5, "w1")
    assert node.states() == {"w1": "running"}


@pytest.mark.soak
def test_a_connector_that_is_deleted_stops_everywhere(start_node: Starts) -> None:
    node = start_node(workers=["w1", "w2"])
    node.settles("w1", "w2")
    node.put("numbers", 4)
    node.put("letters", 4)
    node.runs_tasks("letters", 4, "w1", "w2")
    node.runs_tasks("numbers", 4, "w1", "w2")
    node.delete("numbers")
    eventually(lambda: set(node.group().connectors) == {"letters"}, "it is gone")
    node.settles("w1", "w2")
    running = {span.resource for span in node.spans() if span.end_ms == float("inf")}
    assert running == {"letters", *(f"letters-{task}" for task in range(4))}
