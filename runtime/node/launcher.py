"""The first process of a node: it starts the others, watches over them, and ends them.

It opens nothing before the actor system is there, since the actors are its forks. All that
it starts dies with it, even if it is killed.
"""

import logging
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

from ...actors.actor import Address, CannotStartError, Door, System, UnreachableError, start_system
from ...actors.ports import PortTakenError, check_free
from .assignor_file import write_assignors
from .rest_process import RestProcess
from .run_folder import RunFolder
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
        self._door = folder.door_at(HOST, port or free_port())
        self._rest = RestProcess(rest, node.backoff_ms, node.backoff_max_ms) if rest else None
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
        self._folder.announce(self._door, rest_url, self._node.group_id)
        write_assignors(self._node.data_dir, self._node.assignors)
        if self._rest is not None:
            self._start_rest(self._rest, rest_url)

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

    def _start_rest(self, rest: RestProcess, url: str) -> None:
        rest.start()
        if rest.listens(lambda: bool(self._stop_signal)):
            return
        told = f"its REST interface did not start (exit code {rest.code})"
        listener = urlsplit(url)
        try:
            check_free(listener.hostname or HOST, listener.port or 0)
        except PortTakenError as error:
            told = f"{told}: {error}"
        raise NodeFailedError(told)

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
