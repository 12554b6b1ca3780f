"""A crowd of workers loses two in five of its number at once."""

import os
import signal

import pytest

from fairlead_tests.cluster.deeds import cut, overlaps, wall_ms
from fairlead_tests.cluster.node import eventually
from fairlead_tests.cluster.remains import Starts

pytestmark = pytest.mark.cluster

ALL = [f"w{number}" for number in range(1, 61)]
STOPPED, REST = ALL[:25], ALL[25:]
CALM = {"heartbeat_ms": 1_000, "session_ms": 8_000, "rebalance_ms": 20_000, "margin_ms": 500}


@pytest.mark.soak
def test_when_25_of_60_workers_hang_at_once_the_rest_take_over_and_give_nothing_up(
    start_node: Starts,
) -> None:
    node = start_node(workers=ALL, **CALM)
    eventually(lambda: len(node.group().members) == 60, "all have joined")
    node.put("numbers", 120)
    node.runs_tasks("numbers", 120, *ALL)
    assert node.shares() == [2] * 60
    kept = {name: node.held()[name] for name in REST}
    count = len(node.deeds())
    pids = [node.hit(f"worker {name}", signal.SIGSTOP) for name in STOPPED]
    stopped_ms = wall_ms()
    node.settles(*REST, seconds=180)
    deeds = node.deeds()[count:]
    assert [deed for deed in deeds if not deed.is_begin] == [], "the rest gave nothing up"
    held = node.held()
    assert {name: kept[name] <= held[name] for name in REST} == dict.fromkeys(REST, True)
    assert set(node.shares()) <= {3, 4}
    spans = node.spans()
    for pid in pids:
        spans = cut(spans, pid, stopped_ms)
    assert overlaps(spans) == []
    for pid in pids:  # what hangs cannot leave in good order
        os.kill(pid, signal.SIGCONT)


@pytest.mark.soak
def test_when_25_of_60_workers_leave_at_once_nothing_runs_twice_and_the_rest_go_on(
    start_node: Starts,
) -> None:
    node = start_node(workers=ALL, **CALM)
    eventually(lambda: len(node.group().members) == 60, "all have joined")
    node.put("numbers", 120)
    node.runs_tasks("numbers", 120, *ALL)
    rest = {node.pid(f"worker {name}") for name in REST}
    count = len(node.deeds())
    for name in STOPPED:
        node.remove(name)
    node.settles(*REST, seconds=180)
    deeds = node.deeds()[count:]
    assert [deed for deed in deeds if not deed.is_begin and deed.pid in rest] == []
    assert set(node.shares()) <= {3, 4}
    assert overlaps(node.spans()) == []
    assert node.group().losses == {}


def test_all_of_twenty_workers_that_are_killed_at_once_are_replaced(start_node: Starts) -> None:
    node = start_node(workers=ALL[:20], **CALM)
    eventually(lambda: len(node.group().members) == 20, "all have joined")
    pids = {node.pid(f"worker {name}") for name in ALL[:20]}
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    eventually(
        lambda: all(view.pid not in {None, *pids} for view in node.view().workers),
        "every death was heard of",
    )
