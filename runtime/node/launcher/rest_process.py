"""The launcher's handle of the REST process: it is replaced when it ends or does not answer."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from ....actors.transport.ports import PortTakenError, check_free, free_port
from ...cluster.spec import NodeSpec
from ...config.load import Config
from ...config.references.rest_brief import RestBrief
from ...pipeline.engines.settings import SQL_MEANINGS
from ...processes.liveness import STARTS_FOR, ProcessProbe, Silence
from ...processes.readiness import wait_readable
from ...processes.socket_names import short_socket_name
from ...processes.tied import TiedProcess
from ...security.rest_listeners import UNIX, RestListener
from ..process_files import ProcessFiles
from ..shown_settings import list_settings
from .kafka_process import kafka_spec

LOOK_SECONDS: Final = 0.1
DEFAULTS: Final[Mapping[str, str]] = MappingProxyType({})
"""The sources of settings that are all defaults."""
_REQUEST: Final = b"HEAD /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class HttpQuestion:
    """A request in flight: any response at all says that the process serves."""

    def __init__(self, path: Path) -> None:
        """Begin to connect to a Unix socket; nothing is waited for."""
        self.is_lost = False
        """Whether nobody takes it: nothing listens, or the connection has ended."""
        self._request = _REQUEST
        """What of it is not sent yet."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(0)
        with suppress(OSError), short_socket_name(path) as name:  # its folder may be gone
            self._socket.connect_ex(name)

    def answer(self, seconds: float) -> object | None:
        """Wait for the first byte of the response, for some seconds at most."""
        while True:
            readable, writable = wait_readable(
                self._socket, seconds, or_writable=bool(self._request)
            )
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


class RestStart(NamedTuple):
    """How the REST process of a node is started."""

    command: Sequence[str]
    """The arguments of Python."""
    brief: bytes
    """What it reads from its stdin."""
    listeners: Sequence[RestListener]
    """Where it listens; the first is the node's own socket."""

    @property
    def url(self) -> str:
        """The URL of its first port, or of its own socket."""
        return self.listeners[1 if len(self.listeners) > 1 else 0].url

    @property
    def urls(self) -> str:
        """The URLs of its ports, or that of its own socket, for people."""
        return ", ".join(each.url for each in self.listeners[1:] or self.listeners)

    @property
    def socket(self) -> str:
        """The path of the node's own socket."""
        return self.listeners[0].path

    @property
    def port(self) -> int:
        """The first port; 0: it has none."""
        return next((each.port for each in self.listeners if not each.is_unix), 0)


class RestProcess(TiedProcess):
    """The REST process; it reports through a pipe when it listens, and is asked from then on."""

    title = "REST"

    def __init__(self, start: RestStart, files: ProcessFiles, node: NodeSpec) -> None:
        """Prepare the process; nothing is started yet."""
        super().__init__(start.command, files.recorder("rest", "interface"), node.backoff_ms)
        self._brief = start.brief
        self._ready_pipe = -1
        """The read end of the pipe to which it writes when it listens; -1: closed."""
        limit_seconds = node.answer_timeout_ms / 1000
        self.probe = ProcessProbe(limit_seconds)
        self._start = Silence(limit_seconds * STARTS_FOR, 0.0)
        """How long it has been starting."""
        self._listeners = start.listeners
        self._question = partial(HttpQuestion, Path(start.socket))

    @property
    def probes(self) -> Sequence[ProcessProbe]:
        """The probe of its answers."""
        return (self.probe,)

    def open(self, is_enough: Callable[[], bool]) -> str:
        """Start it and wait until it listens; return the error, "" if all is well.

        Returns early, with "", if `is_enough` becomes true: a signal has come.
        """
        self.start()
        while not is_enough():
            if wait_readable(self._ready_pipe, LOOK_SECONDS)[0]:
                is_ready = bool(os.read(self._ready_pipe, 1))
                self._close_pipe()
                return "" if is_ready else self._explain_exit()
        return ""

    def _ask(self) -> Silence:
        if self._is_starting():
            self._start.look(time.monotonic(), is_silent=True)
            return self._start
        self.probe.look(self._question)
        return self.probe.silence

    def _is_starting(self) -> bool:
        """Return whether it does not listen yet."""
        if self._ready_pipe < 0:
            return False
        if wait_readable(self._ready_pipe, 0)[0]:
            self._close_pipe()
        return self._ready_pipe >= 0

    def stop(self) -> None:
        """Shut it down gracefully, or kill it after `STOP_SECONDS`."""
        self._close_pipe()
        super().stop()

    def _explain_exit(self) -> str:
        code = None if self._process is None else self._process.wait()
        error_text = f"its REST interface did not start (exit code {code})"
        try:
            for each in self._listeners:
                if not each.is_unix:
                    check_free(*each.address)
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
            process = subprocess.Popen(  # noqa: S603 - no shell
                ready, stdin=subprocess.PIPE, pass_fds=(write_end,)
            )
        finally:
            os.close(write_end)
        # One that has ended already is restarted by `look_after`.
        with suppress(BrokenPipeError), process.stdin or nullcontext() as pipe:
            if pipe is not None:
                pipe.write(self._brief)
        return process

    def _close_pipe(self) -> None:
        read_end, self._ready_pipe = self._ready_pipe, -1
        if read_end >= 0:
            os.close(read_end)


def with_ports(listeners: Sequence[RestListener]) -> tuple[RestListener, ...]:
    """Return listeners with a free port in place of each port 0."""
    return tuple(
        each._replace(port=free_port()) if not (each.is_unix or each.port) else each
        for each in listeners
    )


def prepare_rest(config: Config, sources: Mapping[str, str] = DEFAULTS) -> RestStart:
    """Choose the ports of the REST process, and return how it is started.

    `sources` has the source of each setting that is not a default.
    """
    listeners = with_ports(config.rest_listeners())
    chosen = dict(zip(config.rest_listeners(), listeners, strict=True))
    admin = config.only_admin_listeners()
    if admin is not None:
        admin = with_ports([chosen.get(each, each) for each in admin])
    own = RestListener(UNIX, path=str(config.rest_socket))
    urls = None if admin is None else tuple(each.url for each in admin)
    brief = RestBrief(
        tls=config.tls_values() if config.needs_tls else None,
        admin_listeners=urls,
        origins=config.access_control_allow_origin,
        methods=config.access_control_allow_methods,
        headers=config.response_http_headers_config,
        prefix=config.rest_path_prefix,
        traces=config.trace_values() if config.traces_endpoint else None,
        spark_conf=dict(config.spark_conf),
        kafka=_brokers(config),
        plugins=asdict(config.plugin_spec()),
        settings={each.key: (each.value, each.source) for each in list_settings(config, sources)},
    )
    return RestStart(
        rest_command(config, listeners),
        brief.encode(),
        (own, *dict.fromkeys((*listeners, *(admin or ())))),
    )


def _brokers(config: Config) -> Mapping[str, Any] | None:
    """Return how the brokers behind the listener are reached; None if there is none."""
    spec = kafka_spec(config)
    if spec is None:
        return None
    return {"brokers": spec.brokers, "upstream": asdict(spec.security.upstream)}


def rest_command(config: Config, listeners: Sequence[RestListener]) -> Sequence[str]:
    """Return Python's arguments for the node's REST process."""
    folder, group = str(config.data_path), config.group_id
    options = ["--data-dir", folder, "--group", group, "--socket", str(config.rest_socket)]
    options += ["--brief", *(part for each in listeners for part in ("--listener", each.url))]
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
    limits += [part for each in config.access().texts() for part in ("--access", each)]
    if config.connectors_dir:
        limits += ["--connectors-dir", str(Path(config.connectors_dir).expanduser().absolute())]
        limits += ["--connectors-dir-mode", config.connectors_dir_mode]
        limits += ["--connectors-dir-prune"] if config.connectors_dir_prune == "true" else []
    limits += ["--engine", config.engine, "--workers", str(config.workers)]
    limits += ["--task-series"] if config.metrics_task_series == "true" else []
    limits += ["--log-level", config.log_level]
    limits += ["--log-format", config.log_format, "--log-to", config.log_to]
    limits += ["--log-bytes", str(config.log_file_max_bytes)]
    limits += ["--log-files", str(config.log_file_count)]
    return ("-m", "fairlead.runtime.interfaces.rest", *options, *traits, *hosts, *limits)
