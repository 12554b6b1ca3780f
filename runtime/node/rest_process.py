"""The REST process of a node, as the node's first process starts it and keeps it running."""

import logging
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from ...actors.backoff import Attempts
from ...actors.door.ports import LOOPBACK, PortTakenError, check_free
from ...events.log.process import process_of
from ..cluster.spec import NodeSpec
from ..config.load import Config
from ..pipeline.spark import tether
from ..pipeline.spark.settings import SQL_MEANINGS
from .processes import NodeProcess, ProcessFiles

LOGGER = logging.getLogger(__name__)
STOP_SECONDS: Final = 5.0
HEALTHY_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.1


class RestProcess:
    """The REST process, started again under back-off when it ends; it dies with this one."""

    def __init__(self, command: Sequence[str], files: ProcessFiles, node: NodeSpec) -> None:
        """Take the command line that Python is to run, and where its processes are told of."""
        tied = [sys.executable, "-I", "-S", str(tether.__file__), str(os.getpid())]
        self._command = [*tied, sys.executable, *command]
        self._attempts = Attempts(node.backoff_ms)
        self._files = files
        self._process: subprocess.Popen[bytes] | None = None
        self._told = -1
        """The read end of the pipe by which it says that it listens; -1: closed."""
        self._started_at = 0.0
        """On the monotonic clock."""
        self._start_at: float | None = None
        """When it is to start again; None: it runs, or has not ended yet."""

    def open(self, url: str, is_enough: Callable[[], bool]) -> str:
        """Start it and wait until it listens at a URL; return why it does not.

        The wait ends early, without a reason, when whoever waits has had enough.
        """
        self._start()
        while not is_enough():
            if select.select([self._told], [], [], LOOK_SECONDS)[0]:
                has_said = bool(os.read(self._told, 1))
                self._hang_up()
                return "" if has_said else self._why_not(url)
        return ""

    def _why_not(self, url: str) -> str:
        code = None if self._process is None else self._process.wait()
        told, listener = f"its REST interface did not start (exit code {code})", urlsplit(url)
        try:
            check_free(listener.hostname or LOOPBACK, listener.port or 0)
        except PortTakenError as error:
            return f"{told}: {error}"
        return told

    def _start(self) -> None:
        self._started_at, self._start_at = time.monotonic(), None
        self._hang_up()
        self._told, tells = os.pipe()
        command = [*self._command, "--ready", str(tells)]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - no shell
                command, stdin=subprocess.DEVNULL, pass_fds=(tells,)
            )
        finally:
            os.close(tells)
        self._files.write(NodeProcess("rest", "interface", process_of(self._process.pid)))

    def look_after(self) -> None:
        """Start it again, if it ended and has rested."""
        now = time.monotonic()
        if self._start_at is not None:
            if now >= self._start_at:
                self._start()
        elif self._process is not None and (code := self._process.poll()) is not None:
            if now - self._started_at > HEALTHY_SECONDS:
                self._attempts.reset()
            rest_ms = self._attempts.next_pause()
            self._start_at = now + rest_ms / 1000
            LOGGER.error(
                "the REST process ended (%s): it starts again in %g s", code, rest_ms / 1000
            )

    def stop(self) -> None:
        """End it, in good order if it can."""
        self._hang_up()
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _hang_up(self) -> None:
        """Wait no more for what it would say of itself."""
        told, self._told = self._told, -1
        if told >= 0:
            os.close(told)


def rest_command(config: Config, url: str) -> Sequence[str]:
    """Return what Python is to run as the node's REST process."""
    folder, group = str(config.data_path), config.group_id
    options = ("--data-dir", folder, "--group", group, "--listener", url)
    able = config.abilities()
    traits = [part for tag in sorted(able.tags) for part in ("--tag", tag)]
    traits += ["--capacity", str(able.capacity)]
    if config.client_rack:
        traits += ["--zone", config.client_rack]
    hosts = [part for host in config.allowed_hosts() for part in ("--allowed-host", host)]
    reach = config.reach()
    limits = [part for path in reach.paths for part in ("--path-allow", path)]
    limits += [part for name in sorted(reach.sql) for part in ("--sql-allow", name)]
    for name, value in config.spark_conf.items():
        limits += ["--spark-sql", f"{name}={value}"] if name.startswith(SQL_MEANINGS) else []
    limits += ["--engine", config.engine, "--log-level", config.log_level]
    return ("-m", "fairlead.runtime.interfaces.rest", *options, *traits, *hosts, *limits)
