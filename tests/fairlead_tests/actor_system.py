"""An isolated actor system for tests, in a process tree of its own.

A launcher process starts the system, as in production; the test process only connects. When a
test is over nothing of the tree may be left: no process, no listening port, and no file that
was written outside the system's folder. To use it, import the fixtures into a `conftest.py`:

    from fairlead_tests.actor_system import actor_system

    __all__ = ["actor_system"]
"""

import contextlib
import json
import os
import secrets
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairlead.actors.transport.actor import Actor
from fairlead.actors.transport.ports import SystemAddress, free_port
from fairlead.actors.transport.system import System, connect
from fairlead_tests import TESTS
from fairlead_tests.cluster.forks import Fork, fork, fork_server
from fairlead_tests.system_process import OUTSIDE

PATIENCE_SECONDS = 90.0
LEAK_SECONDS = 20.0
"""So long what a system has started may outlive its launcher."""


def free_address() -> SystemAddress:
    """Return an address on a free port, with a new key."""
    return SystemAddress("127.0.0.1", free_port(), secrets.token_bytes(32))


def eventually(holds: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; fail the test after a time limit."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"not in {PATIENCE_SECONDS:g} s: {what}"
        time.sleep(0.005)


def runs(process: psutil.Process) -> bool:
    """Return whether a process runs and is no zombie."""
    with contextlib.suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def title_of(process: psutil.Process) -> str:
    """Return the title of a process; "" if it has ended."""
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline()).strip()
    return ""


def listeners(processes: list[psutil.Process]) -> set[tuple[str, int]]:
    """Return all addresses on which the processes listen."""
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
    """A running system, and the test's connection to it."""

    address: SystemAddress
    folder: Path
    launcher: Fork
    system: System
    seen: set[psutil.Process] = field(default_factory=set[psutil.Process])

    def processes(self) -> list[psutil.Process]:
        """Return the launcher and all its descendants."""
        top = psutil.Process(self.launcher.pid)
        found = [top, *top.children(recursive=True)]
        self.seen.update(found)
        return found

    def titled(self, title: str) -> list[psutil.Process]:
        """Return the processes of the tree with a title."""
        return [each for each in self.processes() if title_of(each) == title]

    def shut_down(self) -> None:
        """Have the launcher shut the system down, and wait for its end."""
        self.processes()
        assert self.end() == 0, log_of(self.folder)

    def end(self) -> int:
        """Wait for the launcher's end and return its exit code."""
        # Not `communicate`: a leaked process may hold the pipe open.
        for pipe in (self.launcher.stdin, self.launcher.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        return self.launcher.wait(PATIENCE_SECONDS)


def log_of(folder: Path) -> str:
    """Return the whole log of a system."""
    return "\n".join(path.read_text() for path in sorted((folder / "logs").glob("*")))


def launch(folder: Path, address: SystemAddress, **settings: float) -> Running:
    """Start a launcher whose system lives in a folder, and connect to it."""
    folder.mkdir(exist_ok=True)
    order = {
        "host": address.host,
        "port": address.port,
        "key": address.key.hex(),
        "settings": settings,
    }
    order["node"] = address.node
    environment = {
        **os.environ,
        "TMPDIR": str(folder),
        "HOME": str(folder),
        "PYTHONPATH": str(TESTS),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    launcher = fork("fairlead_tests.system_process", [], folder, environment)
    launcher.stdin.write(json.dumps(order).encode() + b"\n")
    launcher.stdin.flush()
    assert launcher.stdout.readline() == b"ready\n", log_of(folder)
    return Running(address, folder, launcher, connect(address))


def leaks(running: Running, mine: set[tuple[str, int]], before: set[psutil.Process]) -> list[str]:
    """Return what a system has leaked after the end of its launcher."""
    deadline = time.monotonic() + LEAK_SECONDS
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
def isolated(
    folder: Path, address: SystemAddress | None = None, **settings: float
) -> Generator[Running]:
    """Run a system in the context; fail if it leaks anything."""
    fork_server()  # orphans come to this process
    before = set(psutil.Process().children(recursive=True))
    mine = listeners([psutil.Process()])
    running = launch(folder, address or free_address(), **settings)
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
    """Yield a real system in a separate process tree."""
    with isolated(tmp_path / "system") as running:
        yield running


class InProcess:
    """Actors in the test's thread: fast, one message after another, without pickling."""

    def __init__(self) -> None:
        from thespian.actors import ActorSystem  # noqa: PLC0415

        self._system: Any = ActorSystem("simpleSystemBase", logDefs=False, transientUnique=True)

    def create(self, kind: type[Actor]) -> Any:
        """Create an actor."""
        return self._system.createActor(kind)

    def ask(self, actor: Any, message: object, seconds: float = 5) -> object:
        """Send a message and return the first reply; None if the system becomes idle."""
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
