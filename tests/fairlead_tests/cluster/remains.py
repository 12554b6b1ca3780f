"""Nodes under test, with a check for leaks: processes, listening ports, files.

A node is started as a child of the test, which orphans of the node come to as well. When the
test is over, whatever is still there of a node fails it.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairlead_tests import TESTS
from fairlead_tests.actor_system import listeners, runs
from fairlead_tests.cluster.forks import Fork, fork, fork_server
from fairlead_tests.cluster.node import Node
from fairlead_tests.system_process import OUTSIDE

QUICK: dict[str, Any] = {
    "workers": ["w1", "w2"],
    "heartbeat_ms": 300,
    "session_ms": 4_000,
    "rebalance_ms": 10_000,
    "margin_ms": 200,
    "delay_ms": 0,
    "retry_ms": 5_000,
    "backoff_ms": 100,
    "backoff_max_ms": 1_000,
    "answer_ms": 30_000,
    "assignor": None,
    "assignors": ["balanced"],
    "assignor_conf": {},
    "assignor_memory": 1 << 30,
    "instance": "",
    "classic_mode": "",
}


def environment_in(folder: Path) -> dict[str, str]:
    """Return the environment of a process with its home and temporary files in a folder.

    Packages in the folder's `site` are on its path.
    """
    return {
        **os.environ,
        "TMPDIR": str(folder),
        "HOME": str(folder),
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(folder / "site")]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def launch(folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
    """Start a process in a folder."""
    with (folder / "stderr").open("ab") as stderr:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment_in(folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )


def launch_fork(folder: Path, module: str, *arguments: str) -> Fork:
    """Start a module in a folder as `launch` does, but without its imports."""
    with (folder / "stderr").open("ab") as stderr:
        return fork(module, arguments, folder, environment_in(folder), stderr.fileno())


def start(folder: Path, disk: Sequence[str] = (), **order: Any) -> Node:
    """Start a node that keeps everything in a folder.

    `disk` is a command that makes the folder's `data` a disk of its own, and then does what
    follows on its line.
    """
    folder.mkdir(exist_ok=True)
    module = "fairlead_tests.cluster.node_process"
    launcher = (
        launch(folder, [*disk, sys.executable, "-m", module])
        if disk
        else launch_fork(folder, module)
    )
    node = Node(folder, launcher)
    if disk:
        node.root = Path(f"/proc/{launcher.pid}/root")
    assert launcher.stdin is not None
    assert launcher.stdout is not None
    launcher.stdin.write(json.dumps({**QUICK, "data_dir": str(folder / "data"), **order}).encode())
    launcher.stdin.close()
    said = launcher.stdout.readline()
    launcher.stdout.close()
    if said != b"ready\n":
        launcher.wait(60)
        raise NotStartedError(said.decode())
    return node


def remains(nodes: list[Node], mine: set[tuple[str, int]], before: set[psutil.Process]) -> set[str]:
    """Return what ended nodes have leaked."""
    seen = {each for node in nodes for each in node.seen}
    deadline = time.monotonic() + 20
    left = list[psutil.Process]()
    while time.monotonic() < deadline:
        below = set(psutil.Process().children(recursive=True)) - before
        left = [each for each in below | seen if runs(each)]
        if not left:
            break
        time.sleep(0.02)
    found = {f"process {each}" for each in left}
    for process in left:
        process.kill()
    found |= {f"port {each}" for each in listeners([psutil.Process()]) - mine}
    for node in nodes:
        outside = node.folder / OUTSIDE
        found.update(outside.read_text().splitlines() if outside.exists() else [])
        own = (str(node.folder), "/dev/", "/proc/")
        found |= {f"file {each}" for each in node.open_files if not each.startswith(own)}
    return found


@contextlib.contextmanager
def without_remains() -> Generator[list[Node]]:
    """Yield a list for nodes; at the end stop them all, and fail if they leaked anything."""
    fork_server()  # orphans come to this process
    before = set(psutil.Process().children(recursive=True))
    mine = listeners([psutil.Process()])
    nodes = list[Node]()
    try:
        yield nodes
        for node in nodes:
            if node.launcher.poll() is None:
                assert node.end() == 0, node.log()
    finally:
        for node in nodes:
            node.hang_up()
            node.forget_log()
            if node.launcher.poll() is None:
                node.processes()
                node.launcher.kill()
            node.launcher.wait()
        left = remains(nodes, mine, before)
        for orphan in set(psutil.Process().children()) - before:
            orphan.wait()
    if left:
        pytest.fail(f"left behind: {', '.join(sorted(left))}")


class NotStartedError(Exception):
    """A node did not start; the message has its output."""


Starts = Callable[..., Node]


@pytest.fixture
def start_node(tmp_path: Path) -> Iterator[Starts]:
    """Starts nodes, by default all on one folder and with two workers."""
    with without_remains() as nodes:

        def begin(**order: Any) -> Node:
            nodes.append(start(tmp_path / "node", **order))
            return nodes[-1]

        yield begin
