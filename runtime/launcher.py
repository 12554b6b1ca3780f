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

import psutil

from ..actors.actor import Address, CannotStartError, Door, System, UnreachableError, start_system
from .node import AllLeft, Begin, Begun, NodeSpec, ShutDown
from .run_folder import NodeFile, RunFolder
from .spark import tether
from .supervisor import Supervisor

LOGGER = logging.getLogger(__name__)
HOST = "127.0.0.1"
SUPERVISOR = "supervisor"
WATCH_SECONDS = 1.0
BEGIN_SECONDS = 60.0
LEAVE_SECONDS = 30.0
REST_STOP_SECONDS = 5.0


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
        self._node = node
        self._folder = folder
        self._door = Door(HOST, port or free_port(), folder.key())
        self._rest_command = tuple(rest)
        self._rest: subprocess.Popen[bytes] | None = None
        self._system: System | None = None
        self._stop_signal = 0

    @property
    def door(self) -> Door:
        """Where the node's actors are reached."""
        return self._door

    def start(self, rest_url: str) -> None:
        """Start everything; raises `NodeFailedError` if the group can not be opened."""
        self._start_actors()
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
        self._start_rest()

    def watch(self) -> int:
        """Keep the node running until a signal says stop; return the signal's number."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note_signal)
        while not self._stop_signal:
            self._look_after()
            time.sleep(WATCH_SECONDS)
        return self._stop_signal

    def stop(self) -> None:
        """Let the workers leave in good order, then end everything."""
        with suppress(UnreachableError):
            self._ask_supervisor(ShutDown(), LEAVE_SECONDS, AllLeft)
        self._stop_rest()
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
            self._start_actors()
        else:
            self._supervisor_is_there()
        if self._rest is not None and self._rest.poll() is not None:
            LOGGER.error("the REST process ended (%s): starting it again", self._rest.returncode)
            self._start_rest()

    def _supervisor_is_there(self) -> None:
        with suppress(UnreachableError):
            self._ask_supervisor(Begin(self._node), BEGIN_SECONDS, Begun)

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

    def _start_rest(self) -> None:
        if self._rest_command:
            tied = [sys.executable, "-I", "-S", str(tether.__file__), str(os.getpid())]
            command = [*tied, sys.executable, *self._rest_command]
            self._rest = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - no shell

    def _stop_rest(self) -> None:
        if self._rest is None:
            return
        self._rest.terminate()
        try:
            self._rest.wait(REST_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._rest.kill()
            self._rest.wait()
