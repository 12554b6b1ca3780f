"""The first process of a node: it starts the others, watches over them, and ends them.

It opens nothing before the actor system is there, since the actors are its forks. All that
it starts dies with it, even if it is killed.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import psutil

from ...actors.actor import Address, CannotStartError, Door, System, UnreachableError, start_system
from ..spark import tether
from .assignor_file import write_assignors
from .run_folder import NodeFile, RunFolder
from .spec import AllLeft, Begin, Begun, DescribeNode, NodeSpec, NodeView, ShutDown
from .supervisor import Supervisor

LOGGER = logging.getLogger(__name__)
HOST = "127.0.0.1"
SUPERVISOR = "supervisor"
WATCH_SECONDS = 1.0
BEGIN_SECONDS = 60.0
LOOK_SECONDS = 5.0
"""How long the supervisor may take to answer while signals have to wait."""
LEAVE_SECONDS = 30.0
REST_STOP_SECONDS = 5.0
REST_HEALTHY_SECONDS = 60.0


class NodeFailedError(Exception):
    """The node could not start, or could not be kept running."""


def free_port() -> int:
    """Return a port of the loopback that is free at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


class Launcher:
    """One node: `start`, `watch` until told to stop, `stop`."""

    def __init__(
        self, node: NodeSpec, folder: RunFolder, port: int, rest: Sequence[str] = ()
    ) -> None:
        """Take what to run; `rest` is the command line of the REST process, if there is one."""
        self._node = replace(node, node_id=folder.node_id())
        self._folder = folder
        self._door = Door(HOST, port or free_port(), folder.key())
        self._rest = _RestProcess(rest, node.backoff_ms, node.backoff_max_ms) if rest else None
        self._system: System | None = None
        self._stop_signal = 0

    @property
    def door(self) -> Door:
        """Where the node's actors are reached."""
        return self._door

    def start(self, rest_url: str) -> None:
        """Start everything; raises `NodeFailedError` if the group can not be opened."""
        self._start_actors()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note_signal)
        me = psutil.Process()
        self._folder.announce(
            NodeFile(
                me.pid,
                me.create_time(),
                self._door.host,
                self._door.port,
                rest_url,
                self._node.group_id,
            )
        )
        write_assignors(self._node.data_dir, self._node.assignors)
        if self._rest is not None:
            self._rest.start()

    def watch(self) -> int:
        """Keep the node running until a signal says stop; return the signal's number."""
        while not self._stop_signal:
            self._look_after()
            time.sleep(WATCH_SECONDS)
        return self._stop_signal

    def stop(self) -> None:
        """Let the workers leave in good order, then end everything."""
        with suppress(UnreachableError, CannotStartError):
            self._ask_supervisor(ShutDown(), LEAVE_SECONDS, AllLeft)
        if self._rest is not None:
            self._rest.stop()
        if self._system is not None:
            self._system.shutdown()
            self._system = None

    def _note_signal(self, number: int, _: object) -> None:
        self._stop_signal = number

    def _start_actors(self) -> None:
        log_file = self._node.data_dir / "logs" / "actors.log"
        try:
            self._system = start_system(self._door, log_file=log_file, name=self._node.group_id)
            begun = self._ask_supervisor(Begin(self._node), BEGIN_SECONDS, Begun)
        except (CannotStartError, UnreachableError) as error:
            raise NodeFailedError(f"{error}; see {log_file}") from error
        if isinstance(begun, Begun) and begun.error:
            raise NodeFailedError(begun.error)

    def _look_after(self) -> None:
        """Start again what ended: the actor system, the supervisor, the REST process."""
        if self._system is None or not self._system.alive():
            LOGGER.error("the actor system is gone: starting it again")
            with suppress(Exception):  # what is gone can not be closed in good order
                if self._system is not None:
                    self._system.close()
            self._system = None
            self._start_actors()
        else:
            self._supervisor_is_there()
        if self._rest is not None:
            self._rest.look_after()

    def _supervisor_is_there(self) -> None:
        """Tell the supervisor what to run if it is a new one, in place of one that ended."""
        with suppress(UnreachableError, CannotStartError):
            view = self._ask_supervisor(DescribeNode(), LOOK_SECONDS, NodeView)
            if isinstance(view, NodeView) and not view.groups:
                self._ask_supervisor(Begin(self._node), LOOK_SECONDS, Begun)

    def _supervisor(self) -> Address:
        if self._system is None:
            raise UnreachableError("the actor system is not running")
        return self._system.create(Supervisor, SUPERVISOR)

    def _ask_supervisor(self, message: object, seconds: float, answer: type) -> object:
        if self._system is None:
            raise UnreachableError("the actor system is not running")
        found = self._system.ask(self._supervisor(), message, seconds)
        if not isinstance(found, answer):
            raise UnreachableError("the supervisor did not answer in time")
        return found


class _RestProcess:
    """The REST process, started again under back-off when it ends; it dies with this one."""

    def __init__(self, command: Sequence[str], backoff_ms: int, backoff_max_ms: int) -> None:
        tied = [sys.executable, "-I", "-S", str(tether.__file__), str(os.getpid())]
        self._command = [*tied, sys.executable, *command]
        self._backoff_ms, self._backoff_max_ms = backoff_ms, backoff_max_ms
        self._process: subprocess.Popen[bytes] | None = None
        self._failures = 0
        self._started_at = 0.0
        self._start_at: float | None = None

    def start(self) -> None:
        """Start it."""
        self._started_at, self._start_at = time.monotonic(), None
        self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL)  # noqa: S603 - no shell

    def look_after(self) -> None:
        """Start it again, if it ended and has rested."""
        now = time.monotonic()
        if self._start_at is not None:
            if now >= self._start_at:
                self.start()
        elif self._process is not None and self._process.poll() is not None:
            if now - self._started_at > REST_HEALTHY_SECONDS:
                self._failures = 0
            rest_ms = min(self._backoff_ms << min(self._failures, 16), self._backoff_max_ms)
            self._failures += 1
            self._start_at = now + rest_ms / 1000
            LOGGER.error(
                "the REST process ended (%s): it starts again in %g s",
                self._process.returncode,
                rest_ms / 1000,
            )

    def stop(self) -> None:
        """End it, in good order if it can."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(REST_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
