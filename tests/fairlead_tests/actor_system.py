"""An isolated actor system for tests, in a process tree of its own.

A launcher process starts the system, as in production; the test process only connects. When a
test is over nothing of the tree may be left: no process, no listening port, and no file that
was written outside the system's folder. To use it, import the fixtures into a `conftest.py`:

    from fairlead_tests.actor_system import actor_system

    __all__ = ["actor_system"]
"""

import contextlib
import ctypes
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairlead.actors.door.actor import Actor
from fairlead.actors.door.ports import Door
from fairlead.actors.door.system import System, connect
from fairlead_tests import TESTS
from fairlead_tests.system_process import OUTSIDE

PR_SET_CHILD_SUBREAPER = 36
PATIENCE_SECONDS = 30.0


def free_door() -> Door:
    """A door on a port that was free a moment ago, with a key of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return Door("127.0.0.1", probe.getsockname()[1], secrets.token_bytes(32))


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds; fails the test if it does not come to hold."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"not in {PATIENCE_SECONDS:g} s: {what}"
        time.sleep(0.005)


def runs(process: psutil.Process) -> bool:
    """Whether a process does more than to wait for being reaped."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def title_of(process: psutil.Process) -> str:
    """What a process calls itself; nothing if it runs no more."""
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline()).strip()
    return ""


def listeners(processes: list[psutil.Process]) -> set[tuple[str, int]]:
    """Every address on which the processes listen."""
    found = set[tuple[str, int]]()
    for process in processes:
        with contextlib.suppress(psutil.Error):
            found |= {
                (each.laddr.ip, each.laddr.port)
                for each in process.net_connections("all")
                if each.status == psutil.CONN_LISTEN
            }
    return found


@dataclass
class Running:
    """A system that runs, and the test's connection to it."""

    door: Door
    folder: Path
    launcher: subprocess.Popen[bytes]
    system: System
    seen: set[psutil.Process] = field(default_factory=set[psutil.Process])

    def processes(self) -> list[psutil.Process]:
        """The launcher and all that descends from it."""
        top = psutil.Process(self.launcher.pid)
        found = [top, *top.children(recursive=True)]
        self.seen.update(found)
        return found

    def titled(self, title: str) -> list[psutil.Process]:
        """The processes of the tree that go by a title."""
        return [each for each in self.processes() if title_of(each) == title]

    def shut_down(self) -> None:
        """Have the launcher shut the system down, and wait for its end."""
        self.processes()
        assert self.end() == 0, log_of(self.folder)

    def end(self) -> int:
        """Wait for the launcher's end and return its exit code."""
        # Not `communicate`: whatever is left behind may hold the pipe open.
        for pipe in filter(None, (self.launcher.stdin, self.launcher.stdout)):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        return self.launcher.wait(30)


def log_of(folder: Path) -> str:
    """All that a system has logged."""
    return "\n".join(path.read_text() for path in sorted((folder / "logs").glob("*")))


def launch(folder: Path, door: Door, **settings: float) -> Running:
    """Start a launcher whose system lives in a folder, and connect to it."""
    folder.mkdir(exist_ok=True)
    order = {"host": door.host, "port": door.port, "key": door.key.hex(), "settings": settings}
    order["node"] = door.node
    launcher = subprocess.Popen(
        [sys.executable, "-m", "fairlead_tests.system_process"],
        cwd=folder,
        env={
            **os.environ,
            "TMPDIR": str(folder),
            "HOME": str(folder),
            "PYTHONPATH": str(TESTS),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert launcher.stdin is not None
    assert launcher.stdout is not None
    launcher.stdin.write(json.dumps(order).encode() + b"\n")
    launcher.stdin.flush()
    assert launcher.stdout.readline() == b"ready\n", log_of(folder)
    return Running(door, folder, launcher, connect(door))


def leaks(running: Running, mine: set[tuple[str, int]], before: set[psutil.Process]) -> list[str]:
    """What is left of a system whose launcher has ended."""
    deadline = time.monotonic() + 2
    left = list[psutil.Process]()
    while time.monotonic() < deadline:
        below = set(psutil.Process().children(recursive=True)) - before
        left = [each for each in below | running.seen if runs(each)]
        if not left:
            break
        time.sleep(0.01)
    found = [f"process {each}" for each in left]
    for process in left:
        process.kill()
    found += [f"port {each}" for each in listeners([psutil.Process()]) - mine]
    outside = running.folder / OUTSIDE
    return found + (outside.read_text().splitlines() if outside.exists() else [])


@contextlib.contextmanager
def isolated(folder: Path, door: Door | None = None, **settings: float) -> Generator[Running]:
    """Run a system for as long as the context lasts; fails if anything is left of it."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans come to this process
    before = set(psutil.Process().children(recursive=True))
    mine = listeners([psutil.Process()])
    running = launch(folder, door or free_door(), **settings)
    try:
        yield running
        if running.launcher.poll() is None:
            running.shut_down()
    finally:
        running.system.close()
        if running.launcher.poll() is None:
            running.launcher.kill()
        running.end()
        left = leaks(running, mine, before)
        for orphan in set(psutil.Process().children()) - before:
            orphan.wait()
    if left:
        pytest.fail(f"left behind: {', '.join(left)}")


@pytest.fixture
def actor_system(tmp_path: Path) -> Iterator[Running]:
    """A real system in a process tree of its own."""
    with isolated(tmp_path / "system") as running:
        yield running


class InProcess:
    """Actors in the test's own thread: quick, one message after the other, nothing pickled."""

    def __init__(self) -> None:
        from thespian.actors import ActorSystem  # noqa: PLC0415

        self._system: Any = ActorSystem("simpleSystemBase", logDefs=False, transientUnique=True)

    def create(self, kind: type[Actor]) -> Any:
        """Make an actor."""
        return self._system.createActor(kind)

    def ask(self, actor: Any, message: object, seconds: float = 5) -> object:
        """Send a message and return the first answer, or None once nothing is left to do."""
        return self._system.ask(actor, message, seconds)

    def tell(self, actor: Any, message: object) -> None:
        """Send a message."""
        self._system.tell(actor, message)

    def close(self) -> None:
        """Stop."""
        self._system.shutdown()


@pytest.fixture
def in_process() -> Iterator[InProcess]:
    """Actors without processes."""
    system = InProcess()
    yield system
    system.close()
