"""The launcher's handle of the REST process: it is replaced when it ends or does not answer."""

import os
import select
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from ....actors.transport.ports import PortTakenError, check_free
from ...cluster.spec import NodeSpec
from ...config.kinds import parse_listener
from ...config.load import Config
from ...pipeline.engines.settings import SQL_MEANINGS
from ...processes.liveness import STARTS_FOR, ProcessProbe, Silence
from ...processes.tied import TiedProcess
from ..process_files import ProcessFiles

LOOK_SECONDS: Final = 0.1
_CONNECT_SECONDS: Final = 2.0
_REQUEST: Final = b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class HttpQuestion:
    """A request in flight: any response at all says that the process serves."""

    def __init__(self, family: int, address: tuple[Any, ...]) -> None:
        """Begin to connect to a socket address; nothing is waited for."""
        self.is_lost = False
        """Whether nobody takes it: nothing listens, or the connection has ended."""
        self._request = _REQUEST
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.settimeout(0)
        self._socket.connect_ex(address)

    def answer(self, seconds: float) -> object | None:
        """Wait for the first byte of the response, for some seconds at most."""
        while True:
            waits = [self._socket] if self._request else []
            readable, writable, _ = select.select([self._socket], waits, [], seconds)
            if not (readable or writable):
                return None
            try:
                if writable:
                    self._request = self._request[self._socket.send(self._request) :]
                    continue
                if self._socket.recv(1):
                    return True
            except BlockingIOError:
                return None
            except OSError:
                pass
            self.is_lost = True
            return None

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class RestProcess(TiedProcess):
    """The REST process; it reports through a pipe when it listens, and is asked from then on."""

    title = "REST"

    def __init__(self, command: Sequence[str], files: ProcessFiles, node: NodeSpec) -> None:
        """Prepare the process; `command` are arguments of Python."""
        super().__init__(command, files.recorder("rest", "interface"), node.backoff_ms)
        self._ready_pipe = -1
        """The read end of the pipe to which it writes when it listens; -1: closed."""
        limit_seconds = node.answer_timeout_ms / 1000
        self.probe = ProcessProbe(limit_seconds)
        self._start = Silence(limit_seconds * STARTS_FOR, 0.0)
        """How long it has been starting."""
        self._place: tuple[int, tuple[Any, ...]] | None = None
        """The family and the address at which it was reached; None: it is not asked."""

    @property
    def probes(self) -> Sequence[ProcessProbe]:
        """The probe of its answers."""
        return (self.probe,)

    def open(self, url: str, is_enough: Callable[[], bool]) -> str:
        """Start it and wait until it listens; return the error, "" if all is well.

        Returns early, with "", if `is_enough` becomes true: a signal has come.
        """
        self.start()
        while not is_enough():
            if select.select([self._ready_pipe], [], [], LOOK_SECONDS)[0]:
                is_ready = bool(os.read(self._ready_pipe, 1))
                self._close_pipe()
                self._place = _address_of(url) if is_ready else None
                return "" if is_ready else self._explain_exit(url)
        return ""

    def _ask(self) -> Silence | None:
        if self._is_starting():
            self._start.look(time.monotonic(), is_silent=True)
            return self._start
        if (place := self._place) is None:
            return None
        self.probe.look(lambda: HttpQuestion(*place))
        return self.probe.silence

    def _is_starting(self) -> bool:
        """Return whether it does not listen yet."""
        if self._ready_pipe < 0:
            return False
        if select.select([self._ready_pipe], [], [], 0)[0]:
            self._close_pipe()
        return self._ready_pipe >= 0

    def stop(self) -> None:
        """Shut it down gracefully, or kill it after `STOP_SECONDS`."""
        self._close_pipe()
        super().stop()

    def _explain_exit(self, url: str) -> str:
        code = None if self._process is None else self._process.wait()
        error_text = f"its REST interface did not start (exit code {code})"
        try:
            check_free(*parse_listener(url))
        except PortTakenError as error:
            return f"{error_text}: {error}"
        return error_text

    def _spawn(self, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        self._close_pipe()
        self.probe.forget()
        self._start = Silence(self._start.limit_seconds, time.monotonic())
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


def _address_of(url: str) -> tuple[int, tuple[Any, ...]] | None:
    """Return the family and the address at which a listener takes connections; None: nowhere."""
    host, port = parse_listener(url)
    with suppress(OSError):
        for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as tried:
                tried.settimeout(_CONNECT_SECONDS)
                tried.connect(address)
                return family, address
    return None


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
    limits += [part for begin in reach.jdbc for part in ("--jdbc-allow", begin)]
    for name, value in config.spark_conf.items():
        limits += ["--spark-sql", f"{name}={value}"] if name.startswith(SQL_MEANINGS) else []
    limits += ["--engine", config.engine, "--log-level", config.log_level]
    limits += ["--log-format", config.log_format, "--log-to", config.log_to]
    return ("-m", "fairlead.runtime.interfaces.rest", *options, *traits, *hosts, *limits)
