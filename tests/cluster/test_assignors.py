"""Assignors of one's own on a real node: installed, at work, and at their worst."""

import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairlead.events.model import Resource
from fairlead.runtime.node.assignors.actor import FULL
from fairlead.runtime.node.worker.core.assignor_client import WITHHELD
from fairlead.runtime.processes.guard import LARGEST
from fairlead_tests.actor_system import runs
from fairlead_tests.cluster.deeds import overlaps
from fairlead_tests.cluster.node import Node, eventually
from fairlead_tests.cluster.remains import NotStartedError, Starts
from fairlead_tests.local_assignors import packages
from fairlead_tests.local_assignors.packages import install, install_example

pytestmark = pytest.mark.cluster

EXAMPLE = Path(__file__).parents[2] / "deploy" / "together"
ASSIGNOR = "assignor assignor"

SOON: dict[str, Any] = {"retry_ms": 500, "rebalance_ms": 60_000}
"""A failed attempt does not rest for long here, and a computation may outlive three processes."""

FAULTY = """
import ctypes, os, signal, subprocess, time
from pathlib import Path

class Faulty:
    name, minimum_version, maximum_version = "faulty", 0, 0
    def __init__(self, conf):
        self.deed, self.trigger = getattr(self, conf["deed"]), Path(conf["trigger"])
        self.hoarded = []
    def metadata(self, worker):
        if self.deed in (self.mute, self.doze) and self.trigger.exists():
            self.deed(None)
        return plain_metadata(worker)
    def assign(self, group):
        return self.deed(group) if self.trigger.exists() else counting.assign_deferred(group)
    def on_assignment(self, assignment):
        with self.trigger.with_name("given").open("a") as file:
            print(assignment.member_id, *sorted(map(str, assignment.resources)), file=file)
        if self.deed == self.die_of_share and self.trigger.exists():
            os._exit(3)
    def die_of_share(self, group):
        return counting.assign_deferred(group)
    def mute(self, group):
        raise LookupError("no idea")
    def doze(self, group):
        time.sleep(7)
    def hang(self, group):
        with self.trigger.with_name("hangs").open("a") as file:
            print(os.getpid(), file=file)
        while True:
            time.sleep(1)
    def hang_once(self, group):
        self.trigger.unlink()
        self.hang(group)
    def hang_with_child(self, group):
        print("a child is born")
        child = subprocess.Popen(["sleep", "600"])
        self.trigger.with_name("child").write_text(f"{child.pid}\\n")
        self.hang(group)
    def leave_child(self, group):
        self.trigger.unlink()
        child = subprocess.Popen(["sleep", "600"])
        self.trigger.with_name("child").write_text(f"{child.pid}\\n")
        os._exit(3)
    def leave_daemon(self, group):
        self.trigger.unlink()
        child = subprocess.Popen(["sleep", "600"], start_new_session=True, env={})
        self.trigger.with_name("child").write_text(f"{child.pid}\\n")
        return counting.assign_deferred(group)
    def eat(self, group):
        eaten = []
        while True:
            eaten.append(bytearray(1 << 20))
    def hoard(self, group):
        while True:
            self.hoarded.append(bytearray(1 << 19))
    def fork(self, group):
        os.fork()
        return counting.assign_deferred(group)
    def desert(self, group):
        os.setpgid(0, os.getpgid(os.getppid()))
        signal.signal(signal.SIGABRT, signal.SIG_IGN)
        self.hang_once(group)
    def chatter(self, group):
        os.system("yes | head -c 40000000")
        return counting.assign_deferred(group)
    def end(self, group):
        os._exit(3)
    def crash(self, group):
        ctypes.string_at(0)
    def invent(self, group):
        made = counting.assign_deferred(group)
        members = {**made.members, min(made.members): {Resource("stranger", 7)}}
        return Assignment(members)
    def misspell(self, group):
        return Assignment({member: ["numbers-0"] for member in group.members})
"""


def trigger(folder: Path) -> Path:
    """The file that has the assignor go wrong while it is there."""
    place = folder / "node"
    place.mkdir(exist_ok=True)
    return place / "trigger"


def faulty(start_node: Starts, folder: Path, deed: str, **order: Any) -> Node:
    """A node whose only assignor does a deed while it is triggered."""
    install(folder / "node" / "site", FAULTY, "faulty = shop_rules:Faulty")
    conf = {"deed": deed, "trigger": str(trigger(folder))}
    node = start_node(**{**SOON, "assignors": ["faulty"], "assignor_conf": conf, **order})
    if not trigger(folder).exists():
        node.settles(
            *order.get("workers", ("w1", "w2"))
        )  # with all workers, so that nothing has to move when there is work
    return node


def fails(start_node: Starts, folder: Path, deed: str, **order: Any) -> tuple[Node, str]:
    """A node whose workers run on while no target can be computed, and the error of it."""
    node = faulty(start_node, folder, deed, **order)
    node.put("numbers", 4)
    node.runs_tasks("numbers", 4, "w1", "w2")
    before, members = node.held(), set(node.group().members)
    trigger(folder).touch()
    node.put("letters", 2)
    eventually(lambda: node.group().target.error != "", "an attempt has failed")
    assert (node.held(), set(node.group().members)) == (before, members)
    return node, node.group().target.error


def printed(node: Node) -> str:
    """What assignors have printed, and where they were when they were ended."""
    return (node.data_dir / "logs" / "assignor.log").read_text()


def child(folder: Path) -> psutil.Process:
    """What an assignor has started, once it has."""
    return psutil.Process(child_pid(folder))


def child_pid(folder: Path) -> int:
    """The process id of what an assignor has started: it may have ended already."""
    file = trigger(folder).with_name("child")
    eventually(lambda: file.exists() and file.read_text().endswith("\n"), "a child is there")
    return int(file.read_text())


def is_gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        return not runs(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return True


def recovers(node: Node, folder: Path) -> None:
    """See that nothing was lost: once the assignor is well the next attempt succeeds."""
    trigger(folder).unlink()
    node.runs_tasks("letters", 2, "w1", "w2")
    assert all(deed.is_begin for deed in node.deeds())
    assert overlaps(node.spans()) == []


def test_the_example_keeps_connectors_together(start_node: Starts, tmp_path: Path) -> None:
    install_example(tmp_path / "node" / "site", EXAMPLE)
    node = start_node(assignors=["together"], workers=["w1", "w2", "w3"])
    for name in ("numbers", "letters", "words"):
        node.put(name, 3)
        node.runs_tasks(name, 3, "w1", "w2", "w3")
    assert node.group().target.assignor == "together"
    runs = {
        name: [worker for worker, held in node.held().items() if f"{name}-0" in held]
        for name in ("numbers", "letters", "words")
    }
    for name, (worker,) in runs.items():
        assert {name, *(f"{name}-{task}" for task in range(3))} <= node.held()[worker]


@pytest.mark.soak
def test_an_assignor_hears_what_its_worker_was_given(start_node: Starts, tmp_path: Path) -> None:
    node = faulty(start_node, tmp_path, "end", workers=["w1"])
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1")
    (member,) = node.group().members
    last = f"{member} numbers numbers-0 numbers-1"
    given = trigger(tmp_path).with_name("given")
    eventually(lambda: given.read_text().splitlines()[-1] == last, "it was told of all")


@pytest.mark.parametrize(
    ("deed", "why"),
    [
        pytest.param("invent", "stranger-7", marks=pytest.mark.soak),
        pytest.param(
            "misspell",
            "assignor faulty: WrongResultError: members: the share of {} has numbers-0,"
            " of type str: it must be a Resource",
            marks=pytest.mark.soak,
        ),
        ("mute", "assignor faulty: LookupError: no idea (shop_rules.py, line 28)"),
        pytest.param(
            "end",
            "the process of assignor faulty ended 3 times over it",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_a_wrong_result_is_refused_with_what_is_wrong_and_the_old_target_runs_on(
    start_node: Starts, tmp_path: Path, deed: str, why: str
) -> None:
    node, error = fails(start_node, tmp_path, deed)
    assert any(why.format(member) in error for member in node.group().members), error
    recovers(node, tmp_path)


@pytest.mark.soak
def test_a_hungry_assignor_gets_no_more_than_it_may_and_its_process_lives(
    start_node: Starts, tmp_path: Path
) -> None:
    node, error = fails(start_node, tmp_path, "eat", assignor_memory=128 << 20)
    assert error.startswith("assignor faulty: MemoryError")
    assert node.view().assignors[0].restarts == 0
    recovers(node, tmp_path)


QUICK: dict[str, Any] = {"session_ms": 2_500, "rebalance_ms": 5_000}
"""Sessions that end well before a computation that hangs is given up."""


def test_a_hang_is_ended_before_the_next_member_is_asked_and_no_heartbeat_waits(
    start_node: Starts, tmp_path: Path
) -> None:
    node = faulty(start_node, tmp_path, "hang_once", **QUICK)
    node.put("numbers", 4)
    node.runs_tasks("numbers", 4, "w1", "w2")
    members, pid = set(node.group().members), node.pid(ASSIGNOR)
    trigger(tmp_path).touch()
    node.put("letters", 2)
    node.runs_tasks("letters", 2, "w1", "w2")
    assert (set(node.group().members), node.group().target.failures) == (members, 0)
    hung = trigger(tmp_path).with_name("hangs").read_text().split()
    assert (len(hung), str(pid) in hung) == (1, False), "code of others has a process of its own"
    (assignor,) = node.view().assignors
    assert (assignor.restarts, assignor.state) == (1, "running")
    assert assignor.detail.startswith(f"process {pid} was killed while calling faulty.assign: w")
    assert " in hang\n" in printed(node)
    assert all(deed.is_begin for deed in node.deeds())


@pytest.mark.soak
def test_with_an_assignor_that_always_hangs_the_attempt_fails_and_the_old_target_runs_on(
    start_node: Starts, tmp_path: Path
) -> None:
    node, error = fails(start_node, tmp_path, "hang", **QUICK)
    assert error == "no member computed an assignment in time"
    hung = trigger(tmp_path).with_name("hangs").read_text().split()
    assert (len(hung), len(set(hung))) == (2, 2), "each member's turn had a process of its own"
    recovers(node, tmp_path)


@pytest.mark.soak
def test_a_frozen_assignor_process_is_replaced_also_when_nothing_is_to_be_computed(
    start_node: Starts, tmp_path: Path
) -> None:
    node = faulty(start_node, tmp_path, "end", **QUICK)
    node.settles("w1", "w2")
    pid = node.hit(ASSIGNOR, signal.SIGSTOP)
    eventually(lambda: node.pids(ASSIGNOR) not in ([], [pid]), "another one is there")
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")


@pytest.mark.soak
def test_what_an_assignor_has_started_ends_with_its_process(
    start_node: Starts, tmp_path: Path
) -> None:
    node = faulty(start_node, tmp_path, "leave_child")
    pid = node.pid(ASSIGNOR)
    trigger(tmp_path).touch()
    node.put("numbers", 2)
    left = child_pid(tmp_path)
    eventually(lambda: is_gone(left), "it is gone")
    node.runs_tasks("numbers", 2, "w1", "w2")
    (assignor,) = node.view().assignors
    assert assignor.detail == f"process {pid} ended by itself; logs/assignor.log may tell more"


@pytest.mark.parametrize("killed", ["guard", pytest.param("sandbox", marks=pytest.mark.soak)])
def test_when_the_guard_of_assignors_is_killed_another_begins_and_what_had_escaped_is_gone(
    start_node: Starts, tmp_path: Path, killed: str
) -> None:
    node = faulty(start_node, tmp_path, "leave_daemon")
    trigger(tmp_path).touch()
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")
    left = child(tmp_path)
    assert runs(left)
    sandbox = psutil.Process(node.pid("sandbox"))
    for each in (sandbox, sandbox.parent()):
        assert each is not None
        assert "FAIRLEAD" not in " ".join(each.environ())
    hit = sandbox.parent() if killed == "guard" else sandbox
    assert hit is not None
    hit.kill()
    eventually(lambda: not runs(left), "it is gone")
    eventually(lambda: node.pids("sandbox") not in ([], [sandbox.pid]), "another one is there")
    node.put("letters", 2)
    node.runs_tasks("letters", 2, "w1", "w2")


@pytest.mark.soak
def test_what_an_assignor_has_started_ends_with_its_node_however_that_ends(
    start_node: Starts, tmp_path: Path
) -> None:
    node = faulty(start_node, tmp_path, "hang_with_child", rebalance_ms=60_000)
    trigger(tmp_path).touch()
    node.put("numbers", 2)
    left = child(tmp_path)
    node.processes()
    node.launcher.kill()
    eventually(lambda: not runs(left), "it is gone")


@pytest.mark.soak
def test_an_assignor_that_forks_is_still_one(start_node: Starts, tmp_path: Path) -> None:
    node = faulty(start_node, tmp_path, "fork")
    pid = node.pid(ASSIGNOR)
    trigger(tmp_path).touch()
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")
    eventually(lambda: node.pids(ASSIGNOR) == [pid], "its child went no further")
    assert node.view().assignors[0].restarts == 0


@pytest.mark.soak
def test_an_assignor_that_went_over_to_another_group_is_killed_all_the_same(
    start_node: Starts, tmp_path: Path
) -> None:
    node = faulty(start_node, tmp_path, "desert", **QUICK)
    trigger(tmp_path).touch()
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")
    assert node.view().assignors[0].restarts == 1


@pytest.mark.soak
def test_a_share_that_ended_three_processes_is_not_told_again(
    start_node: Starts, tmp_path: Path
) -> None:
    node = faulty(start_node, tmp_path, "die_of_share", workers=["w1"])
    trigger(tmp_path).touch()
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1")
    eventually(lambda: node.view().workers[0].detail == WITHHELD, "the worker says so")
    (member,) = node.group().members
    told = trigger(tmp_path).with_name("given").read_text().splitlines()
    # once it may have been on its way to a process that ended over the share before
    assert told.count(f"{member} numbers numbers-0 numbers-1") in {2, 3}
    assert node.view().assignors[0].state == "running"


@pytest.mark.soak
def test_a_process_whose_assignors_keep_all_memory_is_replaced(
    start_node: Starts, tmp_path: Path
) -> None:
    node, error = fails(start_node, tmp_path, "hoard", assignor_memory=128 << 20)
    assert error.startswith("assignor faulty: MemoryError")
    eventually(lambda: node.view().assignors[0].detail == FULL, "it says why")
    recovers(node, tmp_path)


@pytest.mark.soak
def test_what_assignors_print_never_fills_the_disk(start_node: Starts, tmp_path: Path) -> None:
    node = faulty(start_node, tmp_path, "chatter")
    trigger(tmp_path).touch()
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")
    logs = [node.data_dir / "logs" / each for each in ("assignor.log", "assignor.log.1")]
    eventually(logs[1].exists, "the end of it was put aside")
    eventually(lambda: all(each.stat().st_size <= LARGEST for each in logs), "no log is large")


@pytest.mark.soak
def test_the_assignors_of_a_worker_that_is_let_go_are_let_go_too(
    start_node: Starts, tmp_path: Path
) -> None:
    source = packages.ASSIGNOR + "    def __del__(self):\n        print('one is let go')\n"
    install(tmp_path / "node" / "site", source, "mine = shop_rules:Mine")
    node = start_node(assignors=["mine"])
    node.settles("w1", "w2")
    pid = node.pid(ASSIGNOR)
    assert printed(node) == f"-- process {pid}\n"
    node.remove("w2")
    node.settles("w1")
    eventually(lambda: printed(node) == f"-- process {pid}\none is let go\n", "one of two is gone")


def test_an_assignor_that_crashes_leaves_the_stack_of_where_it_was(
    start_node: Starts, tmp_path: Path
) -> None:
    node, error = fails(start_node, tmp_path, "crash")
    assert error == "the process of assignor faulty ended 3 times over it"
    assert printed(node).count(" in crash\n") == 3
    recovers(node, tmp_path)


@pytest.mark.soak
def test_a_node_ends_while_an_assignor_hangs_and_so_does_what_that_has_started(
    start_node: Starts, tmp_path: Path
) -> None:
    node = faulty(start_node, tmp_path, "hang_with_child", rebalance_ms=60_000)
    pid = node.pid(ASSIGNOR)
    trigger(tmp_path).touch()
    node.put("numbers", 2)
    left = child(tmp_path)
    assert node.end() == 0
    assert not runs(left)
    assert printed(node) == f"-- process {pid}\na child is born\n"


@pytest.mark.soak
def test_a_worker_for_which_no_assignor_speaks_says_so_and_joins_when_one_does(
    start_node: Starts, tmp_path: Path
) -> None:
    trigger(tmp_path).touch()
    node = faulty(start_node, tmp_path, "mute", workers=["w1"])
    why = "assignor faulty said nothing: LookupError: no idea (shop_rules.py, line 28)"
    eventually(lambda: node.view().workers[0].detail == why, "it says why")
    assert node.group().members == {}
    trigger(tmp_path).unlink()
    node.settles("w1")
    eventually(lambda: node.view().workers[0].detail == "", "all is well")


@pytest.mark.soak
def test_where_one_assignor_does_not_speak_the_others_do(
    start_node: Starts, tmp_path: Path
) -> None:
    trigger(tmp_path).touch()
    node = faulty(start_node, tmp_path, "mute", assignors=["faulty", "deferred"])
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")
    assert node.group().target.assignor == "deferred"
    trigger(tmp_path).unlink()
    eventually(lambda: node.group().target.assignor == "faulty", "the preferred one is back")
    assert Resource("numbers", 1) in node.group().owner


@pytest.mark.soak
def test_one_that_says_nothing_for_once_stands_by_its_word_and_nothing_moves(
    start_node: Starts, tmp_path: Path
) -> None:
    node = faulty(start_node, tmp_path, "mute", assignors=["faulty", "deferred"])
    node.put("numbers", 4)
    node.runs_tasks("numbers", 4, "w1", "w2")
    before = (node.group().group_epoch, node.held(), [each.pid for each in node.view().workers])
    trigger(tmp_path).touch()
    eventually(lambda: all(each.detail for each in node.view().workers), "all say what is wrong")
    trigger(tmp_path).unlink()
    eventually(lambda: not any(each.detail for each in node.view().workers), "all is well")
    after = (node.group().group_epoch, node.held(), [each.pid for each in node.view().workers])
    assert (after, node.group().target.assignor) == (before, "faulty")


@pytest.mark.soak
def test_a_slow_assignor_keeps_no_worker_from_joining_and_the_worker_says_that_it_waits(
    start_node: Starts, tmp_path: Path
) -> None:
    trigger(tmp_path).touch()
    node = faulty(start_node, tmp_path, "doze", workers=["w1"])
    waits = "waits for its assignors' word since "
    eventually(lambda: node.view().workers[0].detail.startswith(waits), "it says so")
    node.settles("w1")
    eventually(lambda: node.view().workers[0].detail == "", "all is well")


@pytest.mark.soak
def test_static_workers_come_back_with_another_assignor_at_once_and_nothing_moves(
    start_node: Starts,
) -> None:
    static: dict[str, Any] = {"instance": "seat", "delay_ms": 300_000}
    node = start_node(assignors=["deferred"], **static)
    node.settles("w1", "w2")
    node.put("numbers", 4)
    node.runs_tasks("numbers", 4, "w1", "w2")
    held = node.held()
    assert node.end() == 0
    node.hang_up()
    node.forget_log()
    node = start_node(assignors=["incremental"], **static)
    node.settles("w1", "w2")
    node.runs_tasks("numbers", 4, "w1", "w2")
    assert (node.held(), node.group().target.assignor) == (held, "incremental")
    assert node.group().losses == {}


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("", "there is no assignor 'mine': name one of balanced, "),
        pytest.param(
            "import nowhere_else",
            "assignor 'mine' cannot be imported: ModuleNotFoundError: No",
            marks=pytest.mark.soak,
        ),
        ("import os; os._exit(1)", "its process ended while it loaded the assignors"),
        ("import time; time.sleep(60)", "process "),
    ],
)
def test_a_node_does_not_start_without_an_assignor_that_was_asked_for(
    start_node: Starts, tmp_path: Path, source: str, why: str
) -> None:
    if source:
        install(tmp_path / "node" / "site", source, "mine = shop_rules:Mine")
    with pytest.raises(NotStartedError) as told:
        start_node(assignors=["mine"], **QUICK)
    assert str(told.value).startswith(f"failed: {why}")


SERVED = """
import os
from pathlib import Path

class Served:
    def __init__(self, conf):
        self.trigger = Path(conf["trigger"])
    def assign(self, group):
        if self.trigger.exists():
            os._exit(3)
        return Assignment({min(group.members): group.configured})
"""


def test_the_group_runs_a_server_assignor_of_ones_own_and_its_own_where_that_dies(
    start_node: Starts, tmp_path: Path
) -> None:
    site, point = tmp_path / "node" / "site", "served = shop_rules:Served"
    install(site, SERVED, point, group="fairlead.server_assignors")
    conf = {"trigger": str(trigger(tmp_path))}
    node = start_node(assignor="served", assignor_conf=conf, workers=["w1", "w2"])
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")
    assert sorted(map(len, node.held().values())) in ([0, 3], [3])
    assert node.group().target.assignor == "served"
    trigger(tmp_path).touch()
    node.put("letters", 2)
    node.runs_tasks("letters", 2, "w1", "w2")
    assert node.group().target.assignor == "uniform"
    trigger(tmp_path).unlink()
    node.put("words", 1)
    node.runs_tasks("words", 1, "w1", "w2")
    assert node.group().target.assignor == "served"


LEADING = """
from pathlib import Path

class Mine:
    name, minimum_version, maximum_version = "mine", 0, 0
    def __init__(self, conf):
        self.trigger = Path(conf["trigger"])
    def metadata(self, worker):
        return plain_metadata(worker)
    def assign(self, group):
        if self.trigger.exists():
            raise ValueError("no luck")
        first = min(group.members, key=lambda each: group.members[each].url)
        return Assignment({first: group.configured})
    def on_assignment(self, assignment):
        pass
"""


def test_a_classic_leader_assigns_as_ones_own_assignor_says_and_evenly_where_that_fails(
    start_node: Starts, tmp_path: Path
) -> None:
    install(tmp_path / "node" / "site", LEADING, "mine = shop_rules:Mine")
    conf = {"trigger": str(trigger(tmp_path))}
    node = start_node(
        assignors=["mine"], assignor_conf=conf, workers=["w1", "w2"], classic_mode="sessioned"
    )
    node.put("numbers", 3)
    node.runs_tasks("numbers", 3, "w1", "w2")
    whole = {"numbers", *(f"numbers-{task}" for task in range(3))}
    eventually(lambda: sorted(map(len, node.held().values())) in ([0, 4], [4]), "one has all")
    assert whole in node.held().values()
    trigger(tmp_path).touch()
    node.put("letters", 3)
    node.runs_tasks("letters", 3, "w1", "w2")
    eventually(lambda: sorted(map(len, node.held().values())) == [4, 4], "both have as much")
