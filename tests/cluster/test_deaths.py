"""Any process of a node may be killed at any moment, and the node goes on."""

import os
import signal
from pathlib import Path

import pytest

from fairlead.events.model import GroupState
from fairlead_tests.actor_system import runs
from fairlead_tests.cluster.deeds import cut, overlaps, wall_ms
from fairlead_tests.cluster.node import Node, eventually
from fairlead_tests.cluster.remains import Starts

pytestmark = pytest.mark.cluster


def kill(node: Node, title: str) -> tuple[int, int]:
    """Kill a process; returns its pid and the moment."""
    at_ms = wall_ms()
    return node.hit(title, signal.SIGKILL), at_ms


def running(node: Node) -> set[tuple[int, str]]:
    """What runs by the workers' own records, and in which process."""
    return {(span.pid, span.resource) for span in node.spans() if span.end_ms == float("inf")}


def ends(node: Node) -> int:
    """How often anything came to its end."""
    return sum(not deed.is_begin for deed in node.deeds())


def test_parked_work_waits_for_the_killed_worker_and_goes_back_to_its_url(
    start_node: Starts,
) -> None:
    node = start_node(delay_ms=60_000, backoff_ms=5_000, backoff_max_ms=5_000)
    node.settles("w1", "w2")
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    before, w1 = node.held(), node.pid("worker w1")
    others = {each for each in running(node) if each[0] == w1}
    members = set(node.group().members)
    pid, _ = kill(node, "worker w2")
    eventually(lambda: not members <= set(node.group().members), "the old member is gone")
    node.settles("w1", "w2")  # w2 starts again after its back-off
    assert node.held() == before
    assert node.pid("worker w2") != pid
    assert {each for each in running(node) if each[0] == w1} == others
    assert (ends(node), overlaps(node.spans())) == (0, [])


@pytest.mark.soak
def test_parked_work_goes_to_nobody_else_while_it_waits(start_node: Starts) -> None:
    node = start_node(delay_ms=4_000, backoff_ms=60_000, backoff_max_ms=60_000)
    node.settles("w1", "w2")
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    before = node.held()
    kill(node, "worker w2")
    eventually(lambda: bool(node.group().schedule.parked), "the work of w2 is parked")
    node.add("w3")
    eventually(lambda: "w3" in node.held(), "w3 has joined")
    lost = {str(each) for each in node.group().schedule.parked}
    assert lost == before["w2"]
    assert not lost & {each for held in node.held().values() for each in held}
    node.settles("w1", "w3")
    assert node.shares() == [3, 3]


def test_the_assignor_is_replaced_and_targets_go_on_being_computed(start_node: Starts) -> None:
    node = start_node()
    node.settles("w1", "w2")
    node.put("numbers", 4)
    node.runs_tasks("numbers", 4, "w1", "w2")
    pid, _ = kill(node, "assignor assignor")
    node.put("letters", 4)
    node.runs_tasks("letters", 4, "w1", "w2")
    assert node.pid("assignor assignor") != pid
    assert ends(node) == 0


@pytest.mark.soak
def test_a_computation_outlives_the_assignor_that_had_it_in_hand(start_node: Starts) -> None:
    node = start_node()
    node.settles("w1", "w2")
    node.put("numbers", 4)
    node.runs_tasks("numbers", 4, "w1", "w2")
    node.hit("assignor assignor", signal.SIGSTOP)  # whatever it is given stays with it
    node.put("letters", 4)
    eventually(lambda: node.group().state is GroupState.ASSIGNING, "a target is due")
    eventually(lambda: _is_asked(node), "the assignor was asked")
    kill(node, "assignor assignor")
    node.runs_tasks("letters", 4, "w1", "w2")
    assert ends(node) == 0


def _is_asked(node: Node) -> bool:
    """Whether anything waits in the sockets of the assignor that does not read them."""
    folder = Path(f"/proc/{node.pid('assignor assignor')}/fd")
    inodes = {each.stat().st_ino for each in folder.iterdir()}
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(int(line[9]) in inodes and int(line[4].split(":")[1], 16) > 0 for line in lines)


def test_the_group_goes_on_from_its_log_and_nobody_stops_working(start_node: Starts) -> None:
    node = start_node()
    node.settles("w1", "w2")
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    before = node.group()
    epochs = (before.group_epoch, before.assignment_epoch)
    members = dict(before.members)
    for times in range(1, 4):
        pid, _ = kill(node, "group connect")
        node.put(f"more{times}", 2)  # commands work again
        node.runs_tasks(f"more{times}", 2, "w1", "w2")
        assert node.pid("group connect") != pid
    group = node.group()
    assert group.group_epoch > epochs[0]
    assert group.assignment_epoch > epochs[1]
    assert group.members.keys() == members.keys()
    assert all(
        member.current.member_epoch >= members[member_id].current.member_epoch
        for member_id, member in group.members.items()
    )
    assert (ends(node), overlaps(node.spans())) == (0, [])
    node.forget_log()
    assert node.group() == group, "the log tells the same from its beginning"


def test_a_killed_supervisor_takes_its_actors_along_and_all_start_anew(
    start_node: Starts,
) -> None:
    survives(start_node, "supervisor supervisor")


def test_a_supervisor_that_is_killed_while_it_begins_is_replaced_by_one_that_begins(
    start_node: Starts,
) -> None:
    node = start_node()
    node.settles("w1", "w2")
    group = node.pid("group connect")
    first, _ = kill(node, "supervisor supervisor")
    eventually(lambda: node.pids("supervisor supervisor") not in ([], [first]), "it is replaced")
    second = node.pid("supervisor supervisor")
    eventually(lambda: node.pids("group connect") not in ([], [group]), "its successor begins")
    os.kill(second, signal.SIGKILL)
    both_run = {"w1": "running", "w2": "running"}
    eventually(lambda: node.states() == both_run, "the next one begins, too")


@pytest.mark.soak
def test_a_killed_admin_takes_its_actors_along_and_all_start_anew(start_node: Starts) -> None:
    survives(start_node, "admin connect")


def survives(start_node: Starts, title: str) -> None:
    """Kill what holds everything else, and see that it all comes back."""
    node = start_node(delay_ms=60_000)
    node.settles("w1", "w2")
    node.put("numbers", 6)
    node.runs_tasks("numbers", 6, "w1", "w2")
    old, epoch = node.processes()[1:], node.group().group_epoch
    members = set(node.group().members)
    _, at_ms = kill(node, title)
    eventually(lambda: members.isdisjoint(node.group().members), "the old members are gone")
    node.settles("w1", "w2")
    node.put("letters", 2)
    node.runs_tasks("letters", 2, "w1", "w2")
    assert node.group().group_epoch > epoch
    spans = node.spans()
    for process in old:
        spans = cut(spans, process.pid, at_ms)
    assert overlaps(spans) == []


def test_a_killed_launcher_takes_everything_along_and_the_data_goes_on(
    start_node: Starts,
) -> None:
    node = start_node(delay_ms=60_000)
    node.settles("w1", "w2")
    node.put("numbers", 4)
    node.runs_tasks("numbers", 4, "w1", "w2")
    everything, members = node.processes(), set(node.group().members)
    node.launcher.kill()
    eventually(lambda: not any(map(runs, everything)), "nothing is left", 20)
    node.forget_log()
    again = start_node(delay_ms=60_000)
    eventually(lambda: members.isdisjoint(again.group().members), "the old members are gone")
    again.settles("w1", "w2")
    again.put("letters", 2)
    again.runs_tasks("letters", 2, "w1", "w2")


def test_a_worker_that_begins_while_the_group_is_away_joins_once_it_is_back(
    start_node: Starts,
) -> None:
    node = start_node(workers=["w1"], backoff_ms=3_000, backoff_max_ms=3_000)
    node.put("numbers", 4)
    node.runs_tasks("numbers", 4, "w1")
    pid, _ = kill(node, "group connect")
    eventually(lambda: node.pids("group connect") not in ([], [pid]), "it is replaced at once")
    kill(node, "group connect")  # but not the second time
    eventually(lambda: node.view().groups[0].state == "backing-off", "the group rests")
    node.add("w2")
    assert node.view().groups[0].state == "backing-off"
    node.settles("w1", "w2")
    assert node.shares() == [2, 2]


def test_a_group_whose_logs_are_gone_comes_back_with_them_and_never_without(
    start_node: Starts,
) -> None:
    node = start_node(backoff_ms=200, backoff_max_ms=200)
    node.settles("w1", "w2")
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")
    groups = node.data_dir / "groups"
    pid = node.pid("group connect")
    groups.rename(groups.with_name("aside"))
    node.put("letters", 2)  # what is open goes on
    node.runs_tasks("letters", 2, "w1", "w2")
    assert node.pid("group connect") == pid
    kill(node, "group connect")
    eventually(lambda: "was there and is gone" in node.view().groups[0].detail, "it is told why")
    assert not groups.exists()
    groups.with_name("aside").rename(groups)
    node.runs_tasks("numbers", 2, "w1", "w2")
    node.put("words", 2)
    node.runs_tasks("words", 2, "w1", "w2")
