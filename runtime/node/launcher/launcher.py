"""The launcher, the first process of a node: it starts, supervises and stops the others.

It opens no file or socket before the actor system runs, since the actors are its forks. All
processes that it starts end with it, even if it is killed. No call blocks for long, so that signals
are handled: a process that does not answer is asked again, and replaced after a time limit.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from ....actors.transport import log_levels
from ....actors.transport.actor import Address
from ....actors.transport.ports import (
    LOOPBACK,
    PortTakenError,
    SystemAddress,
    check_free,
    free_port,
)
from ....actors.transport.question import Question
from ....actors.transport.system import CannotStartError, System, UnreachableError, start_system
from ....events.log.process import ProcessId, is_alive, kill, process_of
from ...cluster.messages import SUPERVISOR, AllLeft, Begin, Begun, DescribeNode, NodeView, ShutDown
from ...cluster.node_files import SlowProcess, write_assignors, write_slow
from ...cluster.run_folder import RunFolder
from ...cluster.spec import NodeSpec
from ...processes.liveness import ProcessProbe, SignalWait, Silence, rest_of
from ...processes.tied import TiedProcess
from ..process_files import NodeProcess, ProcessFiles
from ..supervisor.supervisor import Supervisor
from .engine_process import EngineProcess
from .kafka_process import KafkaProcess
from .rest_process import RestProcess

LOGGER = logging.getLogger(__name__)
WATCH_SECONDS: Final = 0.5
ANSWER_SECONDS: Final = 10.0
"""How long a graceful shutdown waits for an answer of the supervisor."""
SILENT_ANSWER_SECONDS: Final = 3.0
"""The same for a supervisor that did not answer before."""
RESTART_SECONDS: Final = 60.0
"""How long a restart of the actor system is retried, on a node that was up before."""
LEAVE_SECONDS: Final = 30.0


class NodeFailedError(Exception):
    """The node could not be started, or a process could not be restarted."""


class Launcher:
    """One node: `start`, `watch` until told to stop, `stop`."""

    _signals: SignalWait
    """Set by `start`."""

    def __init__(
        self, node: NodeSpec, folder: RunFolder, port: int, rest: Sequence[str] = ()
    ) -> None:
        """Prepare a node; `rest` is the command line of its REST process, if it has one."""
        self._node = replace(node, node_id=folder.node_id())
        self._folder = folder
        #: Whether the actors may have any port.
        self._is_port_free = port == 0
        #: Where the actors are reached.
        self._system_address = folder.system_address_at(LOOPBACK, port or free_port())
        #: The advertised base URL of REST.
        self._rest_url = ""
        self._files = ProcessFiles(folder.path)
        self._rest = RestProcess(rest, self._files, node) if rest else None
        self._beside = _processes_beside(self._files, node)
        self._tied = [*([self._rest] if self._rest else []), *self._beside]
        self._log_file = node.data_dir / "logs" / "actors.log"
        self._system: System | None = None  # none runs
        #: How the actor system's admin answers.
        self._admin_probe = ProcessProbe(node.answer_timeout_ms / 1000)
        #: How the supervisor answers.
        self._probe = ProcessProbe(node.answer_timeout_ms / 1000)
        #: Its address; None while it is not known.
        self._supervisor: Address | None = None
        #: Known from its first answer on.
        self._supervisor_process: ProcessId | None = None
        #: The order to run the node, while the supervisor has not answered it.
        self._beginning: Question | None = None
        #: What the supervisor said last of the node's processes.
        self._view: NodeView | None = None
        #: Whether the node was up once: from then on what fails is tried again.
        self._is_up = False
        #: When a system that ended is given up, on the monotonic clock.
        self._give_up_at = 0.0

    def start(self, rest_url: str) -> bool:
        """Start everything; raises `NodeFailedError` if the group cannot be opened.

        Returns False if a signal came meanwhile: `watch` then returns at once.
        """
        self._signals = SignalWait()
        self._rest_url = rest_url
        self._announce(self._system_address)
        log_levels.forget(self._log_file.parent)
        write_assignors(self._folder.path, self._node.assignors)
        for tied in self._beside:
            tied.start()
        self._start_where_free()
        while not self._signals.ending and not self._has_begun:
            self._look_after_actors()
        rest = None if self._signals.ending else self._rest
        if rest is not None and (why := rest.open(rest_url, lambda: bool(self._signals.ending))):
            raise NodeFailedError(why)
        self._is_up = True
        return not self._signals.ending

    def watch(self) -> int:
        """Supervise the node until a signal comes; return its number."""
        while not self._signals.ending:
            self._look_after_actors()
            for tied in self._tied:
                tied.look_after()
            log_levels.take_up(self._log_file.parent)
            self._signals.pause(self._rest_seconds)
        return self._signals.ending

    @property
    def _rest_seconds(self) -> float:
        """How long until the next look, unless a child process ends: until the next question."""
        is_settled = self._has_begun and self._beginning is None
        if is_settled and all(each.is_settled for each in self._tied):
            tied = [probe for each in self._tied for probe in each.probes]
            probes = [self._admin_probe, self._probe, *tied]
            return max(WATCH_SECONDS, rest_of(probes))
        return WATCH_SECONDS

    def stop(self) -> None:
        """Shut down the workers gracefully if the supervisor answers, then end all processes."""
        answers = False
        with suppress(UnreachableError):
            answers = self._let_leave()
        for tied in self._tied:
            tied.stop()
        self._forget_supervisor()
        self._admin_probe.forget()
        write_slow(self._folder.path, ())
        if self._system is not None:
            if answers:
                self._system.shutdown()
            else:
                self._system.kill()
            self._system = None
        self._files.end_all()

    def _let_leave(self) -> bool:
        """Shut down all workers gracefully; return False if the supervisor does not answer."""
        if self._system is None or self._supervisor is None:
            return False
        seconds = SILENT_ANSWER_SECONDS if self._probe.silence.is_slow else ANSWER_SECONDS
        if self._system.ask(self._supervisor, DescribeNode(), seconds) is None:
            return False
        if not isinstance(self._system.ask(self._supervisor, ShutDown(), LEAVE_SECONDS), AllLeft):
            LOGGER.warning("not all workers have left within %g s", LEAVE_SECONDS)
        return True

    # -- the actor system

    def _start_actors(self) -> None:
        self._forget_supervisor()
        self._admin_probe.forget()
        try:
            self._system = start_system(
                self._system_address,
                log_file=self._log_file,
                name=self._node.group_id,
                log=self._node.log,
            )
        except CannotStartError as error:
            raise NodeFailedError(f"{error}; see {self._log_file}") from error
        if (pid := self._system.admin_pid) is not None:
            self._files.write(NodeProcess("admin", self._node.group_id, process_of(pid)))

    def _look_after_actors(self) -> None:
        """Restart the actor system or the supervisor if it has ended or does not answer in time."""
        system = self._system
        if system is None:
            self._start_where_free()
        elif system.has_ended:
            self._replace_system(system, "it has ended")
        else:
            self._admin_probe.look(system.ping)
            self._look_after_supervisor(system)
            if self._admin_probe.silence.is_over:
                self._replace_system(system, str(self._admin_probe.silence))
        write_slow(self._folder.path, self._slow())

    def _replace_system(self, system: System, why: str) -> None:
        """Kill the remaining processes of the actor system, and start a new one."""
        LOGGER.error("the actor system is started again: %s", why)
        self._system = None
        system.kill()
        self._give_up_at = time.monotonic() + RESTART_SECONDS
        self._start_where_free()

    def _start_where_free(self) -> None:
        """Start the actor system, at another port if the chosen one was taken meanwhile.

        If the node was up before, a failure is retried later: the machine may be busy.
        """
        try:
            if self._is_port_free:
                self._leave_taken_port()
            self._start_actors()
        except (NodeFailedError, OSError) as error:  # such as a full disk
            if not self._is_up or time.monotonic() > self._give_up_at:
                raise
            LOGGER.warning("another try follows: %s", error)

    def _leave_taken_port(self) -> None:
        try:
            check_free(self._system_address.host, self._system_address.port)
        except PortTakenError as error:
            LOGGER.warning("the actors move to another port: %s", error)
            self._announce(self._folder.system_address_at(LOOPBACK, free_port()))

    def _announce(self, address: SystemAddress) -> None:
        self._folder.announce(address, self._rest_url, self._node.group_id)
        self._system_address = address

    # -- the supervisor

    def _look_after_supervisor(self, system: System) -> None:
        """Ask the supervisor for the state of the node; send the node's spec to a new one."""
        if (supervisor := self._find_supervisor(system)) is None:
            return
        view = self._probe.look(lambda: system.begin(supervisor, DescribeNode()))
        if isinstance(view, NodeView):
            self._view, self._supervisor_process = view, process_of(view.pid)
        if self._beginning is None and self._view is not None and not self._has_begun:
            self._beginning = system.begin(supervisor, Begin(self._node))
        self._hear_begun()
        if self._probe.silence.is_over:
            self._replace_supervisor(system)
        elif self._probe.was_lost:
            self._supervisor = None  # a new one may have its name: look it up again

    def _find_supervisor(self, system: System) -> Address | None:
        """Return the supervisor, started if there is none; None if the admin does not answer."""
        if self._supervisor is None and not self._admin_probe.silence.seconds:
            try:
                self._supervisor = system.named(SUPERVISOR) or system.create(Supervisor, SUPERVISOR)
            except (CannotStartError, UnreachableError) as error:
                LOGGER.warning("the supervisor is not there: %s", error)
        return self._supervisor

    def _hear_begun(self) -> None:
        if self._beginning is None:
            return
        begun = self._beginning.answer(0.0 if self._has_begun else WATCH_SECONDS / 2)
        if begun is None and not (self._beginning.is_lost or self._probe.was_lost):
            return
        self._beginning.close()
        self._beginning = None
        if not self._has_begun:  # the last view is older than the answer: request a new one
            self._view = None
            self._probe.ask_now()
        if isinstance(begun, Begun) and begun.error:
            if not self._is_up:
                raise NodeFailedError(begun.error)
            LOGGER.error("not all of the node is up: %s", begun.error)

    @property
    def _has_begun(self) -> bool:
        """Whether the supervisor has reported that the group is open and the assignors loaded."""
        if self._view is None or not self._view.groups:
            return False
        needed = (*self._view.groups, *self._view.shards, *self._view.assignors)
        return all(each.state == "running" for each in needed)

    def _replace_supervisor(self, system: System) -> None:
        """Kill a supervisor that does not answer, and all of its actors; a new one is started."""
        why, process = str(self._probe.silence), self._supervisor_process
        if not self._is_up:
            raise NodeFailedError(f"the supervisor does not start: {why}; see {self._log_file}")
        self._forget_supervisor()
        if process is None or not is_alive(process):
            self._replace_system(system, f"its supervisor is gone: {why}")
            return
        LOGGER.error("the supervisor (pid %s) is started again: %s", process.pid, why)
        kill(process)

    def _forget_supervisor(self) -> None:
        self._probe.forget()
        self._supervisor = self._supervisor_process = self._view = None
        if self._beginning is not None:
            self._beginning.close()
            self._beginning = None

    def _slow(self) -> list[SlowProcess]:
        """Return the processes that `status` and `/health` report as not answering."""
        system, supervisor = self._system, self._supervisor_process
        admin, probe = self._admin_probe.silence.seconds, self._probe.silence.seconds
        silent = [("actor system", "", system.admin_pid if system else None, admin)]
        silent.append((SUPERVISOR, "", supervisor.pid if supervisor else None, probe))
        silent += [(each.title, "", each.pid, each.silent_seconds) for each in self._tied]
        if self._view is not None and not self._probe.silence.is_slow:
            for kind, found in (("group", self._view.groups), ("shard", self._view.shards)):
                silent += [(kind, each.name, each.pid, each.silent_ms / 1000) for each in found]
        now, limit_seconds = time.monotonic(), self._node.answer_timeout_ms / 1000
        return [
            SlowProcess(kind, name, pid, now - seconds, limit_seconds)
            for kind, name, pid, seconds in silent
            if Silence(limit_seconds, now, seconds).is_slow
        ]


def _processes_beside(files: ProcessFiles, node: NodeSpec) -> list[TiedProcess]:
    """Return the engine and listener processes that a node needs; none is started yet."""
    engine = [EngineProcess(files, node)] if node.engine.is_shared else []
    listener = [KafkaProcess(files, node, node.kafka)] if node.kafka else []
    return [*engine, *listener]
