"""The REST process of a node, as the node's first process starts it and keeps it running."""

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
    """The REST process, which says when it listens."""

    kind = "rest"
    name = "interface"
    title = "REST"

    def __init__(self, command: Sequence[str], files: ProcessFiles, node: NodeSpec) -> None:
        """Take the command line that Python is to run, and where its processes are told of."""
        super().__init__(command, files, node)
        self._told = -1
        """The read end of the pipe by which it says that it listens; -1: closed."""

    def open(self, url: str, is_enough: Callable[[], bool]) -> str:
        """Start it and wait until it listens at a URL; return why it does not.

        The wait ends early, without a reason, when whoever waits has had enough.
        """
        self.start()
        while not is_enough():
            if select.select([self._told], [], [], LOOK_SECONDS)[0]:
                has_said = bool(os.read(self._told, 1))
                self._hang_up()
                return "" if has_said else self._why_not(url)
        return ""

    def stop(self) -> None:
        """End it, in good order if it can."""
        self._hang_up()
        super().stop()

    def _why_not(self, url: str) -> str:
        code = None if self._process is None else self._process.wait()
        told, listener = f"its REST interface did not start (exit code {code})", urlsplit(url)
        try:
            check_free(listener.hostname or LOOPBACK, listener.port or 0)
        except PortTakenError as error:
            return f"{told}: {error}"
        return told

    def _spawn(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        self._hang_up()
        self._told, tells = os.pipe()
        ready = [*command, "--ready", str(tells)]
        try:
            return subprocess.Popen(  # noqa: S603 - no shell
                ready, stdin=subprocess.DEVNULL, pass_fds=(tells,)
            )
        finally:
            os.close(tells)

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
