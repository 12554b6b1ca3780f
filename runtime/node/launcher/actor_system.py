"""The actor system of a node and its supervisor, as the launcher keeps them running.

The admin of the system and the supervisor are asked at the same time, each by a probe of its own. A
system that ends or whose admin does not answer in time is killed and started again as a whole; if
the supervisor does not answer, its process alone is killed with the actors below it, and the system
makes another one. A new supervisor knows nothing: it is sent the node's spec (`Begin`), which a
former one may have got already. It answers `Begun` once the group is open and the assignors are
loaded, and until then its last view says so (`has_begun`).

While the node starts for the first time, an error ends it (`NodeFailedError`). Once it was up
(`is_up`), what fails is tried again: the machine may be busy, or its disk full.
"""

import logging
import time
from dataclasses import replace
from typing import Final

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
from ...cluster.data_version import LOADED
from ...cluster.identity import cluster_id, identity_of
from ...cluster.messages import SUPERVISOR, AllLeft, Begin, Begun, DescribeNode, NodeView, ShutDown
from ...cluster.run_folder import RunFolder
from ...cluster.spec import NodeSpec
from ...processes.liveness import ProcessProbe
from ..process_files import NodeProcess, ProcessFiles
from ..supervisor.supervisor import Supervisor

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


def _of_folder(node: NodeSpec, folder: RunFolder) -> NodeSpec:
    """Return the spec with the ids that its folder has, which are made at the first start."""
    node = replace(node, node_id=folder.node_id())
    if node.store is None:
        return node
    own = identity_of(folder.path), cluster_id(folder.key())
    return replace(node, store=replace(node.store, folder=own[0], cluster=own[1]))


class SupervisedSystem:
    """The actor system of one node, with its supervisor."""

    def __init__(self, node: NodeSpec, folder: RunFolder, port: int, files: ProcessFiles) -> None:
        """Prepare the system; `port` 0 is any free port."""
        self._node = _of_folder(node, folder)
        self._folder = folder
        self._files = files
        self._is_port_free = port == 0
        """Whether the actors may have any port."""
        self._address = folder.system_address_at(LOOPBACK, port or free_port())
        """Where the actors are reached."""
        self._rest_url = self._rest_socket = ""
        """The URL of REST, and the path of its Unix socket; empty until `announce`."""
        self._log_file = node.data_dir / "logs" / "actors.log"
        self._system: System | None = None
        """None while none runs."""
        self._admin_probe = ProcessProbe(node.answer_timeout_ms / 1000)
        self._probe = ProcessProbe(node.answer_timeout_ms / 1000)
        """How the supervisor answers."""
        self._supervisor: Address | None = None
        """The supervisor's address; None while it is not known."""
        self._supervisor_process: ProcessId | None = None
        """Known from its first answer on."""
        self._beginning: Question | None = None
        """The order to run the node, while the supervisor has not answered it."""
        self._view: NodeView | None = None
        """The last answer of the supervisor about the node's processes."""
        self.is_up = False
        """Whether the node was up once: from then on what fails is tried again."""
        self.flaw = ""
        """Why the group did not follow its store as it opened; empty: it did, or has none."""
        self._give_up_at = 0.0
        """When a system that ended is given up, on the monotonic clock."""

    def announce(self, rest_url: str, rest_socket: str = "") -> None:
        """Write down where the node is reached."""
        self._rest_url, self._rest_socket = rest_url, rest_socket
        self._move_to(self._address)

    def start(self) -> None:
        """Start the system; raises `NodeFailedError`."""
        self._start_where_free()

    @property
    def is_settled(self) -> bool:
        """Whether nothing has to be looked at before the next question to it is due."""
        return self.has_begun and self._beginning is None

    @property
    def probes(self) -> tuple[ProcessProbe, ProcessProbe]:
        """The probes of the admin and of the supervisor."""
        return self._admin_probe, self._probe

    def stop(self, *, gracefully: bool) -> None:
        """End all processes of the system."""
        self._forget_supervisor()
        self._admin_probe.forget()
        if self._system is not None:
            if gracefully:
                self._system.shutdown()
            else:
                self._system.kill()
            self._system = None

    def shut_down_workers(self) -> bool:
        """Shut down all workers gracefully; return False if the supervisor does not answer."""
        if self._system is None or self._supervisor is None:
            return False
        seconds = SILENT_ANSWER_SECONDS if self._probe.silence.is_slow else ANSWER_SECONDS
        if self._system.ask(self._supervisor, DescribeNode(), seconds) is None:
            return False
        if not isinstance(self._system.ask(self._supervisor, ShutDown(), LEAVE_SECONDS), AllLeft):
            LOGGER.warning("not all workers have left within %g s", LEAVE_SECONDS)
        return True

    def _start_actors(self) -> None:
        self._forget_supervisor()
        self._admin_probe.forget()
        try:
            self._system = start_system(
                self._address,
                log_file=self._log_file,
                name=self._node.group_id,
                log=self._node.log,
            )
        except CannotStartError as error:
            raise NodeFailedError(f"{error}; see {self._log_file}") from error
        if (pid := self._system.admin_pid) is not None:
            self._files.write(NodeProcess("admin", self._node.group_id, process_of(pid)))

    def look_after(self) -> None:
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
            if not self.is_up or time.monotonic() > self._give_up_at:
                raise
            LOGGER.warning("another try follows: %s", error)

    def _leave_taken_port(self) -> None:
        try:
            check_free(self._address.host, self._address.port)
        except PortTakenError as error:
            LOGGER.warning("the actors move to another port: %s", error)
            self._move_to(self._folder.system_address_at(LOOPBACK, free_port()))

    def _move_to(self, address: SystemAddress) -> None:
        group = self._node.group_id
        self._folder.announce(address, self._rest_url, group, self._rest_socket, LOADED)
        self._address = address

    # -- the supervisor

    def _look_after_supervisor(self, system: System) -> None:
        """Ask the supervisor for the state of the node; send the node's spec to a new one."""
        if (supervisor := self._find_supervisor(system)) is None:
            return
        view = self._probe.look(lambda: system.begin(supervisor, DescribeNode()))
        if isinstance(view, NodeView):
            self._view, self._supervisor_process = view, process_of(view.pid)
        if self._beginning is None and self._view is not None and not self.has_begun:
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
        begun = self._beginning.answer(0.0 if self.has_begun else WATCH_SECONDS / 2)
        if begun is None and not (self._beginning.is_lost or self._probe.was_lost):
            return
        self._beginning.close()
        self._beginning = None
        if not self.has_begun:  # the last view is older than the answer: request a new one
            self._view = None
            self._probe.ask_now()
        if not isinstance(begun, Begun):
            return
        self.flaw = begun.flaw
        if begun.error:
            if not self.is_up:
                raise NodeFailedError(begun.error)
            LOGGER.error("not all of the node is up: %s", begun.error)

    @property
    def has_begun(self) -> bool:
        """Whether the supervisor has reported that the group is open and the assignors loaded."""
        if self._view is None or not self._view.groups:
            return False
        needed = (*self._view.groups, *self._view.shards, *self._view.assignors)
        return all(each.state == "running" for each in needed)

    def _replace_supervisor(self, system: System) -> None:
        """Kill a supervisor that does not answer, and all of its actors; a new one is started."""
        why, process = str(self._probe.silence), self._supervisor_process
        if not self.is_up:
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

    def silent(self) -> list[tuple[str, str, int | None, float]]:
        """Return kind, name and pid of its processes, and for how many seconds each was silent."""
        system, supervisor = self._system, self._supervisor_process
        admin, probe = self._admin_probe.silence.seconds, self._probe.silence.seconds
        silent = [("actor system", "", system.admin_pid if system else None, admin)]
        silent.append((SUPERVISOR, "", supervisor.pid if supervisor else None, probe))
        if self._view is not None and not self._probe.silence.is_slow:
            for kind, views in (("group", self._view.groups), ("shard", self._view.shards)):
                silent += [(kind, each.name, each.pid, each.silent_ms / 1000) for each in views]
        return silent
