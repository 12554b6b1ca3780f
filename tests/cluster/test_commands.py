"""What `up`, `down` and `worker` promise, with all of the node's processes, REST included."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from fairlead.actors.messages.orders import (
    ConfigureGroup,
    Cordon,
    DeleteConnector,
    PutConnector,
    SetTargetState,
    Uncordon,
)
from fairlead.actors.transport.ports import SystemAddress
from fairlead.actors.transport.system import System, connect
from fairlead.events.model import RunState
from fairlead.runtime.cluster.messages import AddWorker
from fairlead.runtime.cluster.node_files import read_node
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead.runtime.config.load import load_config
from fairlead.runtime.interfaces.node_logs.files import LogFolderReader
from fairlead.runtime.node.launcher import commands
from fairlead.runtime.node.launcher.commands import FAILED, OK, UNREACHABLE, down
from fairlead_tests.actor_system import title_of
from fairlead_tests.cluster.node import GROUP, Node, eventually
from fairlead_tests.cluster.remains import launch_fork, without_remains

pytestmark = pytest.mark.cluster
LEAVE_DELAY = "scheduled.rebalance.leave.delay.ms"


class Shell:
    """Somebody who types commands, all of them about one data folder."""

    def __init__(self, folder: Path, nodes: list[Node]) -> None:
        folder.mkdir()
        self.folder = folder
        self.settings: tuple[str, ...] = (
            f"data.dir={folder / 'data'}",
            "engine=noop",
            "workers=2",
            "listeners=http://127.0.0.1:0",
            "session.timeout.ms=5000",
            "heartbeat.interval.ms=500",
            "worker.restart.backoff.ms=100",
            f"{LEAVE_DELAY}=0",
        )
        self.nodes = nodes

    def type(self, command: str) -> Node:
        """Begin a command."""
        module = "fairlead_tests.cluster.up_process"
        process = launch_fork(self.folder, module, *command.split(), *self.settings)
        process.stdin.close()
        process.stdout.close()
        self.nodes.append(Node(self.folder, process))
        return self.nodes[-1]

    def said(self) -> str:
        """All that the commands have said."""
        return (self.folder / "stderr").read_text()

    def up(self) -> Node:
        """Bring the node up."""
        times = self.said().count(" is up with ") if (self.folder / "stderr").exists() else 0
        node = self.type("up")
        eventually(lambda: self.said().count(" is up with ") > times, "the node is up")
        node.settles()
        return node


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with without_remains() as nodes:
        yield Shell(tmp_path / "home", nodes)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """One whose node is up, and stays up for all that ask for it."""
    with without_remains() as nodes:
        shell = Shell(tmp_path_factory.mktemp("kept") / "home", nodes)
        shell.up()
        yield shell


def test_a_second_node_on_one_data_folder_is_refused_and_harms_nothing(kept: Shell) -> None:
    first = kept.nodes[0]
    pids = {each.pid for each in first.processes()}
    second = kept.type("up")
    assert second.launcher.wait(60) == FAILED
    assert "not started: a node already runs on" in kept.said()
    first.put("numbers", 2)
    first.runs_tasks("numbers", 2, "w1", "w2")
    assert {each.pid for each in first.processes()} == pids


def test_a_page_hears_of_a_connector_as_it_is_made_and_of_its_tasks(kept: Shell) -> None:
    node = kept.nodes[0]
    known = read_node(node.data_dir / "run")
    assert known is not None
    with httpx.Client(base_url=known.rest, timeout=60) as client:
        eventually(lambda: client.get("/state").is_success, "the page is read")
        sequence = client.get("/state").json()["sequence"]
        with client.stream("GET", f"/events?after={sequence}") as stream:
            node.put("paged", 2)
            data = (each[6:] for each in stream.iter_lines() if each.startswith("data: "))
            changes = (json.loads(each) for each in data)
            next(each for each in changes if _cells(each) == "kk")
        state, status = client.get("/state").json(), client.get("/status").json()
    assert state["connectors"]["paged"]["cells"] == "kk"
    assert state["verdict"]["status"] == status["verdict"]["status"]
    assert {each["name"] for each in state["workers"]} == {"w1", "w2"}
    node.delete("paged")


def _cells(message: dict[str, Any]) -> str:
    """Return the cells of the connector in a message; empty: it is not in it."""
    row = message.get("connectors", {}).get("paged")
    return row["cells"] if isinstance(row, dict) else ""


def test_the_logs_tell_the_story_of_a_connector_each_thing_once(kept: Shell) -> None:
    node, ann = kept.nodes[0], "rest ann"
    url = next(each for each in workers_of(node) if each.endswith("/w1"))
    node.command(PutConnector(GROUP, "story", {"tasks.max": "2"}, principal=ann))
    node.runs_tasks("story", 2, "w1", "w2")
    node.command(Cordon(GROUP, url, drain=True, principal=ann))
    eventually(lambda: not node.held()["w1"], "w1 has nothing")
    node.command(Uncordon(GROUP, url, principal=ann))
    node.runs_tasks("story", 2, "w1", "w2")
    lost = node.hit("worker w2")
    eventually(lambda: lost not in {node.pid("worker w2")}, "w2 has a process again")
    node.settles("w1", "w2")
    node.command(SetTargetState(GROUP, "story", RunState.PAUSED, ann))
    node.command(DeleteConnector(GROUP, "story", principal=ann))
    logs = node.data_dir / "logs"
    eventually(lambda: "story is deleted" in (logs / "rest.log").read_text(), "the end is told")
    told = [each.text for each in LogFolderReader(logs).read()]
    story = (
        "connector story was created by rest ann [connector=story]",
        "connector story is split into 2 tasks [connector=story]",
        ": worker-drained w1 by rest ann [epoch=",
        " moves from w1 to w2: constraint, drain [connector=story",
        ": worker-uncordoned w1 by rest ann",
        " moves from w2 to w1: balance [connector=story",
        "fairlead.runtime.node.supervisor.children: worker w2 (pid ",
        "worker w2 is no member any more [epoch=",
        ": process-ended w2 [epoch=",
        "worker w2 joined as member",
        "connector story is to be PAUSED by rest ann [connector=story]",
        "connector story is being deleted by rest ann [connector=story]",
        "connector story is deleted [connector=story]",
    )
    assert [each for each in story if not any(each in line for line in told)] == []
    once = [each for each in story if each.startswith("connector story")]
    assert [sum(each in line for line in told) for each in once] == [1] * len(once)


def workers_of(node: Node) -> list[str]:
    """Return the urls of the workers of a node's group."""
    return [each.metadata.worker_url for each in node.group().members.values()]


@pytest.mark.soak  # each run has it of processes: actors_transport/test_log_levels.py
def test_log_level_is_that_of_all_processes_of_a_node(shell: Shell) -> None:
    shell.settings = (*shell.settings, "log.level=warning")
    node = shell.up()
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")
    node.hit("worker w1")
    eventually(lambda: "worker w1 (pid" in node.log(), "a warning that the worker ended")
    assert " INFO " not in node.log(), "a runner of nothing tells of all that it runs"
    assert (node.data_dir / "logs" / "rest.log").read_text() == "", "nor where REST listens"


@pytest.mark.soak  # each run ends a node by its command, and opens data again in test_deaths.py
def test_ctrl_c_ends_a_node_and_the_next_one_goes_on_with_its_data(shell: Shell) -> None:
    node = shell.up()
    node.put("numbers", 2)
    node.runs_tasks("numbers", 2, "w1", "w2")
    assert node.end(signal.SIGINT) == OK
    assert node.group().members == {}, "all have left in good order"
    node.forget_log()
    again = shell.up()
    again.runs_tasks("numbers", 2, "w1", "w2")
    assert again.end(signal.SIGINT) == OK
    assert shell.said().count("the node is down (SIGINT)") == 2


@pytest.fixture
def signals() -> Iterator[None]:
    """Give back what a command of this process makes of signals."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {each: signal.getsignal(each) for each in numbers}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.usefixtures("signals")
@pytest.mark.soak
def test_ctrl_c_before_a_worker_was_asked_for_ends_its_command(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = shell.up()
    config = load_config(environ={}, overrides=shell.settings)

    def interrupted(address: SystemAddress) -> System:
        with suppress(BaseException):  # as a library may that is called meanwhile
            signal.raise_signal(signal.SIGINT)
        return connect(address)

    monkeypatch.setattr(commands, "connect", interrupted)
    assert commands.run_worker(config, AddWorker(os.getpid(), "guest", None, None, None)) == OK
    assert "guest" not in node.states()


def test_down_ends_the_node_of_its_data_folder(shell: Shell) -> None:
    node = shell.up()
    config = load_config(environ={}, overrides=shell.settings)
    node.processes()
    assert down(config) == OK
    assert node.launcher.wait(60) == OK
    assert down(config) == UNREACHABLE
    kept = sorted(each.name for each in (node.data_dir / "run").iterdir())
    assert kept == ["key", "lock", "metrics", "node.id", "processes", "version.json"]


@pytest.mark.soak
def test_down_ends_a_node_whose_first_process_is_stopped(shell: Shell) -> None:
    node = shell.up()
    node.processes()
    node.launcher.send_signal(signal.SIGSTOP)
    assert down(load_config(environ={}, overrides=shell.settings)) == OK
    assert node.launcher.wait(60) == OK
    assert node.group().members == {}, "all have left in good order"


@pytest.mark.soak
def test_rest_is_started_again_with_ever_longer_pauses(shell: Shell) -> None:
    node = shell.up()
    for times, pause in ((1, "0.1 s"), (2, "0.2 s")):
        eventually(lambda: len(rest_of(node)) == 1, "it runs")
        os.kill(rest_of(node)[0], signal.SIGKILL)
        told = f"it starts again in {pause}"
        eventually(lambda told=told: told in shell.said(), "it is told")  # type: ignore[misc]
        assert shell.said().count("the REST process ended") == times
    eventually(lambda: len(rest_of(node)) == 1, "it runs again")


def rest_of(node: Node) -> list[int]:
    """The REST process, once it goes by its title."""
    children = psutil.Process(node.launcher.pid).children()
    return [each.pid for each in children if title_of(each) == "fairlead: rest connect"]


def test_a_worker_that_is_restarted_in_good_order_finds_its_work(kept: Shell) -> None:
    shell, node = kept, kept.nodes[0]
    node.put("bounced", 4)
    node.command(ConfigureGroup(GROUP, {LEAVE_DELAY: "60000"}))
    guest = shell.type("worker --name guest")
    node.runs_tasks("bounced", 4, "w1", "w2", "guest")
    before = node.held()
    assert guest.end(signal.SIGINT) == OK
    eventually(lambda: bool(node.group().schedule.parked), "its work waits for it")
    assert {each: held for each, held in before.items() if each != "guest"} == node.held()
    guest = shell.type("worker --name guest")
    node.settles("w1", "w2", "guest")
    assert node.held() == before
    node.command(ConfigureGroup(GROUP, {LEAVE_DELAY: "0"}))
    assert guest.end(signal.SIGINT) == OK
    node.settles("w1", "w2")
    node.delete("bounced")


def test_a_worker_runs_as_long_as_its_command(kept: Shell) -> None:
    shell, node = kept, kept.nodes[0]
    node.put("numbers", 5)
    command = shell.type("worker")
    node.runs_tasks("numbers", 5, "w1", "w2", "w3")
    assert command.end(signal.SIGINT) == OK
    node.settles("w1", "w2")
    killed = shell.type("worker")
    node.settles("w1", "w2", "w3")
    killed.launcher.kill()
    node.settles("w1", "w2")
    orphaned = shell.type("worker")
    node.settles("w1", "w2", "w3")
    node.hit("worker w3")
    assert orphaned.launcher.wait(60) == FAILED
    assert node.states() == {"w1": "running", "w2": "running"}


def test_what_tells_of_the_node_is_for_its_owner_only(kept: Shell) -> None:
    node = kept.nodes[0]
    run = node.data_dir / "run"
    eventually((run / "rest-crash").exists, "REST has opened its file")
    told = {each.name: each.stat().st_mode & 0o777 for each in run.iterdir()}
    files = (
        *("assignors.json", "key", "lock", "node.id", "node.json", "rest-crash"),
        *("rest.sock", "version.json"),
    )
    folders = ("metrics", "processes")
    assert told == {**dict.fromkeys(files, 0o600), **dict.fromkeys(folders, 0o700)}
    assert {each.stat().st_mode & 0o777 for each in (run / "processes").iterdir()} == {0o600}
    assert run.stat().st_mode & 0o777 == 0o700
    assert RunFolder(node.data_dir).node().is_alive()


def test_commands_without_a_node_say_so(shell: Shell) -> None:
    alone = shell.type("worker")
    assert alone.launcher.wait(60) == UNREACHABLE
    assert "no node runs on" in shell.said()
