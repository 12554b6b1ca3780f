"""The REST process: `python -m fairlead.runtime.interfaces.rest --data-dir DIR`.

The launcher starts it so that it ends with it, and with SIGINT ignored: then the launcher handles
Ctrl-C for both. The log is `logs/rest.log` in the data folder; startup errors go to stderr.
"""

import argparse
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import Thread

import uvicorn
from setproctitle import setproctitle
from starlette.applications import Starlette

from ....actors.transport import log_levels
from ....actors.transport.log_file import FILES, LARGEST
from ....actors.transport.log_format import LogOutput
from ....events.placement import Abilities
from ....projections.metrics.exposition import Exposition
from ....projections.metrics.processes import RequestMetrics
from ...cluster.data_version import VersionSkewError, require_version_of_node
from ...cluster.identity import HEADER, KEY, VERSION_HEADER, cluster_id, identity_of
from ...cluster.log_checks import LogChecks, remove_trace, trace_crashes
from ...cluster.node_files import read_assignors
from ...cluster.run_folder import KeyRefusedError, RunFolder, read_key
from ...cluster.spec import WorkerTraits, assignor_log
from ...config.references.resolving import ReferenceBroken
from ...config.references.rest_brief import RestBrief, open_tls
from ...config.references.trace_target import TraceTarget, trace_target
from ...config.secrets import Vault
from ...node.sampling.brief import SamplingNode
from ...node.shown_settings import describe_setting
from ...pipeline.connectors.plugins import find_plugins
from ...pipeline.installed import DISTRIBUTION
from ...pipeline.plugins.options import PluginSpec
from ...pipeline.spi.context import AccessLimits, ExternalAccess
from ...security.audit import AuditLog
from ...security.proofs.entries import follow_entries
from ...security.rest_listeners import UNIX, RestListener
from ...security.settings import OPEN, AccessSettings
from ...security.tls import TlsRefusedError
from ..replies.folder import APPLY, FolderReport, no_folder
from .app import make_app
from .commands.connect_plugins import ConnectPlugins, open_plugins
from .commands.gateway import CommandGateway
from .commands.samples import Samples
from .commands.service import Service
from .middleware.answers import AnswerSettings
from .reading.changes import LogChanges
from .reading.ends import EndOffsets, ask_brokers
from .reading.logs import NodeLogs
from .server.admission import Authenticator
from .server.connections import Encryption
from .server.listeners import (
    BACKLOG,
    DEFAULT,
    CannotListen,
    OpenListener,
    RestServer,
    listen_apart,
    parse,
)
from .server.principals import identify
from .validation.external_checks import ExternalChecks
from .watch.folder import FolderSettings, FolderWatch
from .watch.lag import LagWatch
from .watch.page.client_groups import ClientGroupWatch
from .watch.page.node import NodeLooks
from .watch.page.watch import PageWatch
from .watch.span_queue import SpanQueue
from .watch.teller import Teller
from .watch.traces import TraceWatch

LOGGER = logging.getLogger(__package__)
EXIT_FAILED = 1
GRACE_SECONDS = 1


class CannotServe(Exception):  # noqa: N818  # says what happened
    """The REST process cannot start: something that it needs is missing."""


_REFUSALS = (
    CannotServe,
    CannotListen,
    KeyRefusedError,
    TlsRefusedError,
    ReferenceBroken,
    VersionSkewError,
)
"""Why it may not start, each with a sentence."""


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM, SIGINT or the end of the parent; return the exit code."""
    options = options_parser().parse_args(arguments)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # uvicorn would set its own handler
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    setproctitle(f"fairlead: rest {options.group}")
    try:
        require_version_of_node(options.data_dir)
        key = read_key(options.data_dir / "run" / KEY)
        brief = RestBrief.decode(sys.stdin.buffer.read()) if options.brief else RestBrief()
        tls = open_tls(brief.tls, options.data_dir) if brief.tls is not None else None
        traces = trace_target(brief.traces, options.data_dir) if brief.traces else None
        listeners = _listen(options, brief)
        _log_to(
            options.data_dir / "logs",
            LogOutput(
                options.log_level,
                options.log_format,
                options.log_to,
                options.log_bytes,
                options.log_files,
            ),
        )
        _say_ready(options.ready)
    except _REFUSALS as error:
        sys.stderr.write(f"the REST process cannot start: {error}\n")
        return EXIT_FAILED
    gateway = CommandGateway(options.data_dir)
    try:
        service = replace(
            _service(options, gateway, key, has_traces=traces is not None),
            outside=_outside(options),
            samples=_samples(options, brief),
            connect_plugins=_connect_plugins(options, brief),
            settings=[describe_setting(key, *each) for key, each in brief.settings.items()],
            workers=options.workers,
            ends=EndOffsets(ask_brokers(brief.kafka) if brief.kafka else None),
        )
        traits = WorkerTraits(options.zone, Abilities(options.capacity, frozenset(options.tag)))
        headers = [
            (HEADER, identity_of(options.data_dir / "run")),
            (VERSION_HEADER, version(DISTRIBUTION)),
        ]
        with (
            _watching(service),
            _tracing(service, traces) as count_spans,
            _in_step(service, options) as read_folder,
        ):
            service = replace(
                service,
                traits=traits,
                encryption=Encryption(tls),
                read_folder=read_folder,
                count_spans=count_spans,
            )
            app = _app(service, listeners, options, brief)
            _serve(app, listeners, headers)
    finally:
        gateway.close()
        remove_trace(options.data_dir / "run")
    return 0


@contextmanager
def _watching(service: Service) -> Generator[None]:
    """Tell what happens while requests are served, and what connectors that do not run leave."""
    page = service.page
    changes = LogChanges(service.logs, lambda: page.is_watched)
    changes.subscribe(Teller(service.log_folder).tell)
    node = NodeLooks(service, lambda: page.is_watched)
    watch = PageWatch(service, node)
    changes.subscribe_to_looks(watch.follow)
    changes.subscribe_to_looks(ClientGroupWatch(service).follow)
    changes.subscribe_to_errors(watch.fail)
    changes.start()
    node.start()
    if service.outside is not None:
        LagWatch(service).start()
    try:
        yield
    finally:
        node.stop()
        changes.stop()


@contextmanager
def _tracing(
    service: Service, target: TraceTarget | None
) -> Generator[Callable[[], Mapping[str, int]]]:
    """Send traces to a collector while requests are served, if there is one."""
    if target is None:
        yield dict[str, int]
        return
    from .watch.otlp import SpanSender  # noqa: PLC0415  # needs an extra

    facts = {"service.version": service.version, "fairlead.cluster": service.cluster_id}
    queue = SpanQueue(SpanSender(target, facts), target.endpoint)
    watch = TraceWatch(service.logs, service.cluster_id, queue, service.log_folder)
    watch.start()
    try:
        yield queue.counts
    finally:
        watch.stop()


def _listen(options: argparse.Namespace, brief: RestBrief) -> list[OpenListener]:
    """Listen where the node is to be reached, and always at its own socket, if it has one."""
    urls = options.listener or ([] if options.socket else [DEFAULT])
    own = [RestListener(UNIX, path=str(options.socket.absolute()))] if options.socket else []
    everywhere = [*own, *map(parse, urls)]
    admin = brief.admin_listeners
    apart = None if admin is None else [*(own if admin else []), *map(parse, admin)]
    opened = listen_apart(everywhere, apart)
    return [replace(each, is_own=each.listener in own) for each in opened]


@contextmanager
def _in_step(
    service: Service, options: argparse.Namespace
) -> Generator[Callable[[], FolderReport | None]]:
    """Keep the connectors in step with the folder of files, if there is to be one."""
    if options.connectors_dir is None:
        yield no_folder
        return
    applies = options.connectors_dir_mode == APPLY
    settings = FolderSettings(options.connectors_dir, applies, options.connectors_dir_prune)
    watch = FolderWatch(service, settings)
    watch.start()
    try:
        yield watch.report
    finally:
        watch.stop()


def options_parser() -> argparse.ArgumentParser:
    """Return the parser of the process's command line."""
    parser = argparse.ArgumentParser(
        prog="python -m fairlead.runtime.interfaces.rest", description=__doc__
    )
    parser.add_argument("--data-dir", type=Path, required=True, help="the node's data folder")
    parser.add_argument("--group", default="connect", help="the group of Connect's paths")
    parser.add_argument(
        "--listener", action="append", metavar="URL", help=f"where to listen; default: {DEFAULT}"
    )
    parser.add_argument("--socket", type=Path, metavar="PATH", help="a Unix socket, which is ours")
    parser.add_argument("--brief", action="store_true", help="more settings come through stdin")
    parser.add_argument(
        "--allowed-host", action="append", default=[], help="a further host name of requests"
    )
    parser.add_argument("--zone", help="the zone of the node's workers")
    parser.add_argument("--tag", action="append", default=[], help="a tag of the workers")
    parser.add_argument("--capacity", type=int, default=1, help="the capacity of each worker")
    parser.add_argument(
        "--path-allow", action="append", default=[], help="a folder that connectors may use"
    )
    parser.add_argument(
        "--sql-allow", action="append", default=[], help="a name that SQL may use besides its input"
    )
    parser.add_argument(
        "--jdbc-allow", action="append", default=[], help="the beginning of a JDBC URL to allow"
    )
    parser.add_argument(
        "--spark-sql", action="append", default=[], help="a setting of Spark's SQL, NAME=VALUE"
    )
    parser.add_argument("--engine", default="spark", help="what runs tasks: spark or noop")
    parser.add_argument(
        "--access", action="append", default=[], help="a setting of the callers, NAME=VALUE"
    )
    parser.add_argument("--workers", type=int, default=1, help="how many workers the node runs")
    parser.add_argument("--connectors-dir", type=Path, help="a folder of connector files")
    parser.add_argument(
        "--connectors-dir-mode", default="plan", help="whether to plan or to apply what differs"
    )
    parser.add_argument(
        "--connectors-dir-prune", action="store_true", help="delete connectors without their file"
    )
    parser.add_argument(
        "--task-series", action="store_true", help="whether each task has metrics of its own"
    )
    parser.add_argument("--log-level", default="INFO", help="the log level")
    parser.add_argument("--log-format", default="text", help="of the log: text or json")
    parser.add_argument("--log-bytes", type=int, default=LARGEST, help="the size of a log file")
    parser.add_argument("--log-files", type=int, default=FILES, help="how many of them there are")
    parser.add_argument("--log-to", default="file", help="where to: file or stdout")
    parser.add_argument(
        "--ready", type=int, metavar="FD", help="a pipe to write to once it listens"
    )
    return parser


def _service(
    options: argparse.Namespace, gateway: CommandGateway, key: bytes, *, has_traces: bool
) -> Service:
    release, data_dir, requests = version(DISTRIBUTION), options.data_dir, RequestMetrics()
    exposition = Exposition(
        release,
        requests,
        RunFolder(data_dir).metrics,
        has_tasks=options.task_series,
        traced_cluster=cluster_id(key) if has_traces else "",
    )
    return Service(
        group_id=options.group,
        cluster_id=cluster_id(key),
        version=release,
        logs=NodeLogs(data_dir, LogChecks(trace_crashes(data_dir / "run"))),
        commands=gateway,
        find_plugins=cache(find_plugins),
        vault=Vault(key),
        requests=requests,
        exposition=exposition,
        assignors=read_assignors(data_dir / "run"),
        assignor_log=assignor_log(data_dir),
        log_folder=data_dir / "logs",
        run_folder=data_dir / "run",
        audit=AuditLog(data_dir / "logs", options.log_bytes, options.log_files),
    )


def _outside(options: argparse.Namespace) -> ExternalChecks | None:
    """Return the checks of configs against external systems; None on a node without Spark.

    Spark's libraries are imported with the first check.
    """
    if options.engine != "spark":
        return None
    paths, sql = tuple(options.path_allow), frozenset(options.sql_allow)
    reach = AccessLimits(str(options.data_dir.absolute()), paths, sql, tuple(options.jdbc_allow))
    settings = dict(each.split("=", 1) for each in options.spark_sql)

    @cache
    def look() -> ExternalAccess:
        from ...pipeline.engines.queries.query_check import QueryCheck  # noqa: PLC0415  # see above

        return ExternalAccess(reach, QueryCheck(settings))

    return ExternalChecks(look)


def _samples(options: argparse.Namespace, brief: RestBrief) -> Samples | None:
    """Return what reads samples of rows; None on a node without Spark."""
    if options.engine != "spark":
        return None
    node = SamplingNode(
        data_dir=str(options.data_dir.absolute()),
        conf=brief.spark_conf,
        paths=options.path_allow,
        sql=options.sql_allow,
        jdbc=options.jdbc_allow,
    )
    return Samples(node)


def _connect_plugins(options: argparse.Namespace, brief: RestBrief) -> ConnectPlugins | None:
    if not brief.plugins:
        return None
    return open_plugins(options.data_dir.absolute(), PluginSpec.read(brief.plugins))


def _log_to(folder: Path, output: LogOutput) -> None:
    try:
        output.begin(folder / "rest.log")
    except OSError as error:
        raise CannotServe(f"{folder} cannot be written to: {error.strerror}") from None
    # At INFO, uvicorn says of each start and end what is said here anyway.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, logging.root.level))
    log_levels.apply(folder)


def _app(
    service: Service,
    listeners: Sequence[OpenListener],
    options: argparse.Namespace,
    brief: RestBrief,
) -> Starlette:
    ports = [each.listener.address for each in listeners if not each.listener.is_unix]
    answers = AnswerSettings.parse(brief.origins, brief.methods, brief.headers, brief.prefix)
    access = AccessSettings.parse(options.access)
    entries = follow_entries(service.run_folder.parent)
    entries.refresh()  # what is wrong with the file is told at the start
    asks = access.authentication != OPEN.authentication
    who = Authenticator(access, entries) if asks else identify
    return make_app(service, ports, options.allowed_host, who, access, answers)


def _serve(
    app: Starlette,
    listeners: Sequence[OpenListener],
    headers: list[tuple[str, str]],
) -> None:
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        backlog=BACKLOG,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # whoever asks could say with X-Forwarded-For that it is another
        headers=headers,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    service: Service = app.state.service
    for each in listeners:
        LOGGER.info("listening at %s", each.listener.url)
    # The first command would wait for what takes half a second to import.
    Thread(target=service.find_plugins, name="plugins", daemon=True).start()
    gc.freeze()  # what was imported stays: to collect it would take longest when the process ends
    RestServer(config, listeners, service.encryption, service.page.close).run()


def _say_ready(pipe: int | None) -> None:
    """Write to the pipe of the launcher: the server accepts requests now."""
    if pipe is not None:
        with suppress(OSError):
            os.write(pipe, b"1")
        os.close(pipe)


def _end(*_: object) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main())
