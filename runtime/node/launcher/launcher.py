"""The launcher, the first process of a node: it starts, supervises and stops the others.

It opens no file or socket before the actor system runs, since the actors are its forks. All
processes that it starts end with it, even if it is killed. No call blocks for long, so that signals
are handled: a process that does not answer is asked again, and replaced after a time limit.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

from ....actors.transport import log_levels
from ....actors.transport.system import UnreachableError
from ...cluster.node_files import SlowProcess, write_assignors, write_slow
from ...cluster.run_folder import RunFolder
from ...cluster.spec import NodeSpec
from ...processes.liveness import SignalWait, Silence, rest_of
from ...processes.tied import BriefedProcess, TiedProcess
from ..process_files import ProcessFiles
from .actor_system import WATCH_SECONDS, NodeFailedError, SupervisedSystem
from .kafka_process import KafkaProcess
from .rest_process import RestProcess


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
        self, node: NodeSpec, folder: RunFolder, port: int, rest: Sequence[str] = ()
    ) -> None:
        """Prepare a node; `rest` is the command line of its REST process, if it has one."""
        self._node = node
        self._folder = folder
        self._files = ProcessFiles(folder.path)
        self._system = SupervisedSystem(node, folder, port, self._files)
        self._rest = RestProcess(rest, self._files, node) if rest else None
        self._beside = _processes_beside(self._files, node)
        """The tied processes that start before the actors."""
        self._tied = [*([self._rest] if self._rest else []), *self._beside]
        self._logs = node.data_dir / "logs"

    def start(self, rest_url: str) -> bool:
        """Start everything; raises `NodeFailedError` if the group cannot be opened.

        Returns False if a signal came meanwhile: `watch` then returns at once.
        """
        self._signals = SignalWait()
        self._system.announce(rest_url)
        log_levels.forget(self._logs)
        write_assignors(self._folder.path, self._node.assignors)
        for tied in self._beside:
            tied.start()
        self._system.start()
        while not self._signals.ending and not self._system.has_begun:
            self._look_after_actors()
        rest = None if self._signals.ending else self._rest
        if rest is not None and (why := rest.open(rest_url, lambda: bool(self._signals.ending))):
            raise NodeFailedError(why)
        self._system.is_up = True
        return not self._signals.ending

    def watch(self) -> int:
        """Supervise the node until a signal comes; return its number."""
        while not self._signals.ending:
            self._look_after_actors()
            for tied in self._tied:
                tied.look_after()
            log_levels.apply(self._logs)
            self._signals.pause(self._idle_seconds)
        return self._signals.ending

    def stop(self) -> None:
        """Shut down the workers gracefully if the supervisor answers, then end all processes."""
        answers = False
        with suppress(UnreachableError):
            answers = self._system.shut_down_workers()
        for tied in self._tied:
            tied.stop()
        write_slow(self._folder.path, ())
        self._system.stop(gracefully=answers)
        self._files.end_all()

    def _look_after_actors(self) -> None:
        self._system.look_after()
        write_slow(self._folder.path, self._slow())

    @property
    def _idle_seconds(self) -> float:
        """How long until the next look, unless a child process ends: until the next question."""
        if self._system.is_settled and all(each.is_settled for each in self._tied):
            tied = [probe for each in self._tied for probe in each.probes]
            return max(WATCH_SECONDS, rest_of([*self._system.probes, *tied]))
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
