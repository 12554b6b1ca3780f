"""A worker that is removed leaves its group and its node for good, on real processes."""

import signal

import psutil
import pytest

from fairlead.actors.messages.orders import RemoveMember
from fairlead.events.model import Why
from fairlead.runtime.cluster.messages import StopWorker, WorkerAdded
from fairlead_tests.cluster.deeds import cut, overlaps, wall_ms
from fairlead_tests.cluster.node import GROUP, eventually
from fairlead_tests.cluster.remains import Starts

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("instance", [None, "north"])
def test_a_worker_that_is_removed_goes_with_its_process_and_is_not_started_again(
    start_node: Starts, instance: str | None, *, force: bool
) -> None:
    node = start_node(delay_ms=60_000, instance=instance)
    node.settles("w1", "w2")
    node.put("numbers", 4)
    node.runs_tasks("numbers", 4, "w1", "w2")
    pid, at_ms = node.pid("worker w2"), wall_ms()
    if force:
        node.hit("worker w2", signal.SIGSTOP)  # it would never give up what it has
    node.command(RemoveMember(GROUP, "w2", force=force, principal="ann"))
    assert node.ask(node.supervisor, StopWorker("w2", force)) == WorkerAdded("w2")
    node.settles("w1")
    eventually(lambda: not psutil.pid_exists(pid), "its process ends")
    eventually(lambda: "w2" not in node.states(), "it is let go")
    bump = node.group().bump
    assert bump is not None
    assert (bump.cause.why, bump.actor) == (Why.MEMBER_REMOVED, "ann")
    assert (node.group().losses, node.group().worker_orders) == ({}, {})
    assert node.held() == {"w1": {"numbers", *(f"numbers-{n}" for n in range(4))}}
    spans = cut(node.spans(), pid, at_ms) if force else node.spans()
    assert overlaps(spans) == []
