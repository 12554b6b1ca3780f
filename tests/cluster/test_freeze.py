"""Workers that hang for longer than their session, and come to again."""

import os
import signal

import pytest

from fairlead_tests.cluster.deeds import cut, overlaps, wall_ms
from fairlead_tests.cluster.node import eventually
from fairlead_tests.cluster.remains import Starts

pytestmark = pytest.mark.cluster


def test_a_worker_that_wakes_after_its_session_ends_itself_and_is_replaced(
    start_node: Starts,
) -> None:
    node = start_node(workers=["w1", "w2"])
    node.settles("w1", "w2")
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    stopped_ms = wall_ms()
    pid = node.hit("worker w2", signal.SIGSTOP)
    node.settles("w1")
    last = len(node.deeds())
    os.kill(pid, signal.SIGCONT)
    eventually(lambda: node.pid("worker w2") not in {None, pid}, "another process takes its place")
    node.settles("w1", "w2")

    # Others run its work by now: it may begin nothing, and not even take its time to stop.
    assert [deed for deed in node.deeds()[last:] if deed.pid == pid] == []
    assert overlaps(cut(node.spans(), pid, stopped_ms)) == []
    assert "ends itself" in node.log()


def test_a_group_that_hangs_for_long_finds_its_workers_again(start_node: Starts) -> None:
    node = start_node(workers=["w1", "w2"])
    node.settles("w1", "w2")
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    pid = node.hit("group connect", signal.SIGSTOP)
    count = len(node.deeds())
    eventually(lambda: sum(not deed.is_begin for deed in node.deeds()) == 7, "all fence themselves")
    assert all(not deed.is_begin for deed in node.deeds()[count:])
    os.kill(pid, signal.SIGCONT)
    node.settles("w1", "w2")
    assert overlaps(node.spans()) == []


@pytest.mark.soak
def test_a_pause_shorter_than_the_session_costs_nothing(start_node: Starts) -> None:
    node = start_node(workers=["w1", "w2"])
    node.settles("w1", "w2")
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    epoch, count = node.group().group_epoch, len(node.deeds())
    pid = node.hit("worker w2", signal.SIGSTOP)
    seen = node.group().end
    node.put("letters", 1)  # what concerns all, and one of them cannot hear of it
    eventually(lambda: node.group().end > seen, "it is written")
    os.kill(pid, signal.SIGCONT)
    node.runs_tasks("letters", 1, "w1", "w2")
    assert node.group().group_epoch == epoch + 2, "the connector, and its task"
    assert all(deed.is_begin for deed in node.deeds()[count:])
