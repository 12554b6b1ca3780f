"""The launcher's handle of the REST process."""

import os
import select
import subprocess
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from ...actors.door.ports import LOOPBACK, PortTakenError, check_free
from ..cluster.spec import NodeSpec
from ..config.load import Config
from ..pipeline.spark.settings import SQL_MEANINGS
from .processes import ProcessFiles
from .tied_process import TiedProcess

LOOK_SECONDS: Final = 0.1


class RestProcess(TiedProcess):
    """The REST process; it reports through a pipe when it listens."""

    kind = "rest"
    name = "interface"
    title = "REST"

    def __init__(self, command: Sequence[str], files: ProcessFiles, node: NodeSpec) -> None:
        """Prepare the process; `command` are arguments of Python."""
        super().__init__(command, files, node)
        self._ready_pipe = -1
        """The read end of the pipe to which it writes when it listens; -1: closed."""

    def open(self, url: str, is_enough: Callable[[], bool]) -> str:
        """Start it and wait until it listens; return the error, "" if all is well.

        Returns early, with "", if `is_enough` becomes true: a signal has come.
        """
        self.start()
        while not is_enough():
            if select.select([self._ready_pipe], [], [], LOOK_SECONDS)[0]:
                is_ready = bool(os.read(self._ready_pipe, 1))
                self._close_pipe()
                return "" if is_ready else self._explain_exit(url)
        return ""

    def stop(self) -> None:
        """Shut it down gracefully, or kill it after `STOP_SECONDS`."""
        self._close_pipe()
        super().stop()

    def _explain_exit(self, url: str) -> str:
        code = None if self._process is None else self._process.wait()
        error_text, listener = f"its REST interface did not start (exit code {code})", urlsplit(url)
        try:
            check_free(listener.hostname or LOOPBACK, listener.port or 0)
        except PortTakenError as error:
            return f"{error_text}: {error}"
        return error_text

    def _spawn(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        self._close_pipe()
        self._ready_pipe, write_end = os.pipe()
        ready = [*command, "--ready", str(write_end)]
        try:
            return subprocess.Popen(  # noqa: S603 - no shell
                ready, stdin=subprocess.DEVNULL, pass_fds=(write_end,)
            )
        finally:
            os.close(write_end)

    def _close_pipe(self) -> None:
        read_end, self._ready_pipe = self._ready_pipe, -1
        if read_end >= 0:
            os.close(read_end)


def rest_command(config: Config, url: str) -> Sequence[str]:
    """Return Python's arguments for the node's REST process."""
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
