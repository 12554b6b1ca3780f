"""The launcher, the first process of a node: it starts, supervises and stops the others.

It opens no file or socket before the actor system runs, since the actors are its forks. All
processes that it starts end with it, even if it is killed. No call blocks for long, so that signals
are handled: a process that does not answer is asked again, and replaced after a time limit.
"""

import logging
import time
from contextlib import suppress
from dataclasses import asdict

from ....actors.transport import log_levels
from ....actors.transport.system import UnreachableError
from ...cluster.data_version import InstalledVersion
from ...cluster.lease import RENEW_SECONDS, Lease
from ...cluster.node_files import SlowProcess, write_assignors, write_slow
from ...cluster.run_folder import RunFolder
from ...cluster.spec import NodeSpec
from ...processes.liveness import SignalWait, Silence, rest_of
from ...processes.service_manager import ServiceManager
from ...processes.tied import BriefedProcess, TiedProcess
from ..process_files import ProcessFiles
from .actor_system import WATCH_SECONDS, NodeFailedError, SupervisedSystem
from .detached import rotate_output
from .kafka_process import KafkaProcess
from .rest_process import RestProcess, RestStart

LOGGER = logging.getLogger(__name__)


class EngineProcess(BriefedProcess):
    """The process that owns the shared JVM; it outlives the workers and the supervisor."""

    title = "engine"

    def __init__(self, files: ProcessFiles, node: NodeSpec) -> None:
        """Prepare the command and its input; nothing is started yet."""
        brief = {
            "group": node.group_id,
            "data_dir": str(node.data_dir),
            "engine": asdict(node.engine),
            "paths": node.reach.paths,
            "answer_timeout_ms": node.answer_timeout_ms,
            "backoff_ms": [node.backoff_ms.first, node.backoff_ms.longest],
            "log": asdict(node.log),
        }
        record = files.recorder("engine", "shared")
        super().__init__("fairlead.runtime.node.engine", brief, record, node.backoff_ms)


class Launcher:
    """Starts, supervises and stops one node."""

    _signals: SignalWait
    """Set by `start`."""

    def __init__(
        self,
        node: NodeSpec,
        folder: RunFolder,
        port: int,
        rest: RestStart | None = None,
        service: ServiceManager | None = None,
    ) -> None:
        """Prepare a node; `rest` is how its REST process is started, if it has one.

        The node's state is reported to `service`, if it is run by a service manager.
        """
        self._node = node
        self._folder = folder
        self._files = ProcessFiles(folder.path)
        self._system = SupervisedSystem(node, folder, port, self._files)
        self._rest = RestProcess(rest, self._files, node) if rest else None
        self._rest_socket = rest.socket if rest else ""
        self._beside = _processes_beside(self._files, node)
        """The tied processes that start before the actors."""
        self._tied = [*([self._rest] if self._rest else []), *self._beside]
        self._logs = node.data_dir / "logs"
        self._service = service or ServiceManager()
        self._lease = Lease(folder.path)
        self._installed = InstalledVersion()
        self._status = ""
        """What the service manager shows while all is well."""

    def start(self, rest_url: str) -> bool:
        """Start everything; raises `NodeFailedError` if the group cannot be opened.

        Returns False if a signal came meanwhile: `watch` then returns at once.
        """
        self._signals = SignalWait()
        self._system.announce(rest_url, self._rest_socket)
        log_levels.forget(self._logs)
        write_assignors(self._folder.path, self._node.assignors)
        for tied in self._beside:
            tied.start()
        self._system.start()
        starting = f"group {self._node.group_id} starts"
        while not self._signals.ending and not self._system.has_begun:
            self._service.tell_starting(starting)
            self._look_after_actors()
        rest = None if self._signals.ending else self._rest
        if rest is not None and (why := rest.open(lambda: bool(self._signals.ending))):
            raise NodeFailedError(why)
        self._system.is_up = True
        count = len(self._node.workers)
        workers = f"{count} worker{'' if count == 1 else 's'}"
        self._status = f"group {self._node.group_id} is up with {workers}; REST on {rest_url}"
        return not self._signals.ending

    @property
    def flaw(self) -> str:
        """The reason why the group did not follow its store as the node started; empty: it did."""
        return self._system.flaw

    def watch(self) -> int:
        """Supervise the node until a signal comes; return its number."""
        if not self._signals.ending:
            self._service.tell_ready(self._status)
        while not self._signals.ending:
            self._look_after_actors()
            for tied in self._tied:
                tied.look_after()
            log_levels.apply(self._logs)
            rotate_output(self._logs)
            self._tell_service()
            self._signals.pause(self._idle_seconds)
        return self._signals.ending

    def stop(self) -> None:
        """Shut down the workers gracefully if the supervisor answers, then end all processes."""
        self._service.tell_stopping("the workers leave: each finishes or cancels its batches")
        answers = False
        with suppress(UnreachableError):
            answers = self._system.shut_down_workers()
        for tied in self._tied:
            tied.stop()
        write_slow(self._folder.path, ())
        self._system.stop(gracefully=answers)
        self._files.end_all()
        self._lease.release()

    def _tell_service(self) -> None:
        """Report what does not answer: while there is any, the watchdog is not told."""
        slow = self._slow()
        if self._installed.look():
            LOGGER.error(self._installed.skew)
        status = "; ".join(map(str, slow)) or self._installed.skew or self._status
        self._service.tell_alive(status, is_well=not slow)

    def _look_after_actors(self) -> None:
        self._lease.renew()
        self._system.look_after()
        write_slow(self._folder.path, self._slow())

    @property
    def _idle_seconds(self) -> float:
        """How long until the next look, unless a child process ends: until the next question."""
        if self._system.is_settled and all(each.is_settled for each in self._tied):
            tied = [probe for each in self._tied for probe in each.probes]
            rest = max(WATCH_SECONDS, rest_of([*self._system.probes, *tied]))
            return min(rest, RENEW_SECONDS) if self._lease.is_needed else rest
        return WATCH_SECONDS

    def _slow(self) -> list[SlowProcess]:
        """Return the processes that `status` and `/health` report as not answering."""
        now, limit_seconds = time.monotonic(), self._node.answer_timeout_ms / 1000
        tied = [(each.title, "", each.pid, each.silent_seconds) for each in self._tied]
        admin, supervisor, *groups = self._system.silent()
        return [
            SlowProcess(kind, name, pid, now - seconds, limit_seconds)
            for kind, name, pid, seconds in (admin, supervisor, *tied, *groups)
            if Silence(limit_seconds, now, seconds).is_slow
        ]


def _processes_beside(files: ProcessFiles, node: NodeSpec) -> list[TiedProcess]:
    """Return the engine and listener processes that a node needs; none is started yet."""
    engine = [EngineProcess(files, node)] if node.engine.is_shared else []
    listener = [KafkaProcess(files, node, node.kafka)] if node.kafka else []
    return [*engine, *listener]
