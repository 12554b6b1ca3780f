"""The programs of a node beside its actors, as the node's first process keeps them running.

That of REST is in `rest_process.py`, as it says when it listens.
"""

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import ClassVar, Final

from ...actors.backoff import Attempts
from ...events.log.process import process_of
from ..cluster.spec import NodeSpec
from ..pipeline.spark import tether
from .processes import NodeProcess, ProcessFiles

LOGGER = logging.getLogger(__name__)
STOP_SECONDS: Final = 5.0
HEALTHY_SECONDS: Final = 60.0


class TiedProcess:
    """A process that is started again under back-off when it ends, and dies with this one."""

    kind: ClassVar[str]
    """What it is called in logs and in the run folder."""
    name: ClassVar[str]
    title: ClassVar[str]
    """What people call it."""

    def __init__(self, command: Sequence[str], files: ProcessFiles, node: NodeSpec) -> None:
        """Take the command line that Python is to run, and where its processes are told of."""
        tied = [sys.executable, "-I", "-S", str(tether.__file__), str(os.getpid())]
        self._command = [*tied, sys.executable, *command]
        self._attempts = Attempts(node.backoff_ms)
        self._files = files
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        """On the monotonic clock."""
        self._start_at: float | None = None
        """When it is to start again; None: it runs, or has not ended yet."""

    def start(self) -> None:
        """Start it; raises `OSError`."""
        self._started_at, self._start_at = time.monotonic(), None
        self._process = self._spawn(self._command)
        self._files.write(NodeProcess(self.kind, self.name, process_of(self._process.pid)))

    def look_after(self) -> None:
        """Start it again, if it ended and has rested."""
        now = time.monotonic()
        if self._start_at is not None:
            if now >= self._start_at:
                self._start_again()
        elif self._process is not None and (code := self._process.poll()) is not None:
            if now - self._started_at > HEALTHY_SECONDS:
                self._attempts.reset()
            self._back_off(f"ended ({code})")

    def stop(self) -> None:
        """End it, in good order if it can."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _start_again(self) -> None:
        try:
            self.start()
        except OSError as error:  # no more processes, or memory, at this moment: the node goes on
            self._back_off(f"could not be started ({error.strerror or error})")

    def _back_off(self, why: str) -> None:
        seconds = self._attempts.next_pause() / 1000
        self._start_at = time.monotonic() + seconds
        LOGGER.error("the %s process %s: it starts again in %g s", self.title, why, seconds)

    def _spawn(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        raise NotImplementedError


class BriefedProcess(TiedProcess):
    """One that is told by its input what to run, as that may be secret."""

    def __init__(
        self, module: str, brief: Mapping[str, object], files: ProcessFiles, node: NodeSpec
    ) -> None:
        """Take what Python is to run, and where its processes are told of."""
        super().__init__(("-m", module), files, node)
        self._brief = json.dumps(brief).encode()

    def _spawn(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(command, stdin=subprocess.PIPE)  # noqa: S603 - no shell
        if process.stdin is None:
            raise AssertionError("Popen was asked for a pipe")
        try:
            with process.stdin as told:
                told.write(self._brief)
        except BrokenPipeError:
            pass  # it has ended already, and is looked after
        return process


class EngineProcess(BriefedProcess):
    """Owns the JVM that the workers of a node share, and outlives them and their supervisor."""

    kind = "engine"
    name = "shared"
    title = "engine"

    def __init__(self, files: ProcessFiles, node: NodeSpec) -> None:
        """Take what the node runs, and where its processes are told of."""
        brief = {
            "group": node.group_id,
            "data_dir": str(node.data_dir),
            "engine": asdict(node.engine),
            "paths": node.reach.paths,
            "answer_timeout_ms": node.answer_timeout_ms,
            "backoff_ms": [node.backoff_ms.first, node.backoff_ms.longest],
            "log_level": node.log_level,
        }
        super().__init__("fairlead.runtime.node.engine", brief, files, node)
