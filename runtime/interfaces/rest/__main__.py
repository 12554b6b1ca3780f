"""The REST process: `python -m fairlead.runtime.interfaces.rest --data-dir DIR`.

The launcher starts it so that it ends with it, and with SIGINT ignored: then the launcher handles
Ctrl-C for both. The log is `logs/rest.log` in the data folder; startup errors go to stderr.
"""

import argparse
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import Thread

import uvicorn
from setproctitle import setproctitle

from ....actors.transport import log_levels
from ....actors.transport.log_format import LogOutput
from ....events.placement import Abilities
from ....projections.metrics.exposition import Exposition
from ....projections.metrics.processes import RequestMetrics
from ...cluster.identity import HEADER, KEY, VERSION_HEADER, cluster_id, identity_of
from ...cluster.log_checks import LogChecks, remove_trace, trace_crashes
from ...cluster.node_files import read_assignors
from ...cluster.run_folder import KeyRefusedError, RunFolder, read_key
from ...cluster.spec import WorkerTraits, assignor_log
from ...config.secrets import Vault
from ...pipeline.connectors.plugins import find_plugins
from ...pipeline.distribution import DISTRIBUTION
from ...pipeline.spi.context import AccessLimits, ExternalAccess
from .app import make_app
from .commands.gateway import CommandGateway
from .commands.service import Service
from .reading.changes import LogChanges
from .reading.logs import NodeLogs
from .server.listeners import (
    BACKLOG,
    DEFAULT,
    CannotListen,
    ReceiveTimeoutProtocol,
    RestServer,
    listen,
    parse,
    where,
)
from .validation.external_checks import ExternalChecks
from .watch.lag import LagWatch
from .watch.teller import Teller

LOGGER = logging.getLogger(__package__)
EXIT_FAILED = 1
GRACE_SECONDS = 1


class CannotServe(Exception):  # noqa: N818  # says what happened
    """The REST process cannot start: something that it needs is missing."""


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM, SIGINT or the end of the parent; return the exit code."""
    options = options_parser().parse_args(arguments)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # uvicorn would set its own handler
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    setproctitle(f"fairlead: rest {options.group}")
    try:
        key = read_key(options.data_dir / "run" / KEY)
        sockets = listen([parse(each) for each in options.listener or [DEFAULT]])
        _log_to(
            options.data_dir / "logs",
            LogOutput(options.log_level, options.log_format, options.log_to),
        )
        _say_ready(options.ready)
    except (CannotServe, CannotListen, KeyRefusedError) as error:
        sys.stderr.write(f"the REST process cannot start: {error}\n")
        return EXIT_FAILED
    gateway = CommandGateway(options.data_dir)
    try:
        service = replace(
            _service(options.data_dir, options.group, gateway, key), outside=_outside(options)
        )
        traits = WorkerTraits(options.zone, Abilities(options.capacity, frozenset(options.tag)))
        headers = [
            (HEADER, identity_of(options.data_dir / "run")),
            (VERSION_HEADER, version(DISTRIBUTION)),
        ]
        with _watching(service):
            _serve(replace(service, traits=traits), sockets, options.allowed_host, headers)
    finally:
        gateway.close()
        remove_trace(options.data_dir / "run")
    return 0


@contextmanager
def _watching(service: Service) -> Generator[None]:
    """Tell what happens while requests are served, and what connectors that do not run leave."""
    changes = LogChanges(service.logs)
    changes.subscribe(Teller(service.log_folder).tell)
    changes.start()
    if service.outside is not None:
        LagWatch(service).start()
    try:
        yield
    finally:
        changes.stop()


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
    parser.add_argument("--log-level", default="INFO", help="the log level")
    parser.add_argument("--log-format", default="text", help="of the log: text or json")
    parser.add_argument("--log-to", default="file", help="where to: file or stdout")
    parser.add_argument(
        "--ready", type=int, metavar="FD", help="a pipe to write to once it listens"
    )
    return parser


def _service(data_dir: Path, group_id: str, gateway: CommandGateway, key: bytes) -> Service:
    release = version(DISTRIBUTION)
    requests = RequestMetrics()
    return Service(
        group_id=group_id,
        cluster_id=cluster_id(key),
        version=release,
        logs=NodeLogs(data_dir, LogChecks(trace_crashes(data_dir / "run"))),
        commands=gateway,
        find_plugins=cache(find_plugins),
        vault=Vault(key),
        requests=requests,
        exposition=Exposition(release, requests, RunFolder(data_dir).metrics),
        assignors=read_assignors(data_dir / "run"),
        assignor_log=assignor_log(data_dir),
        log_folder=data_dir / "logs",
        run_folder=data_dir / "run",
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


def _log_to(folder: Path, output: LogOutput) -> None:
    try:
        output.begin(folder / "rest.log")
    except OSError as error:
        raise CannotServe(f"{folder} cannot be written to: {error.strerror}") from None
    # At INFO, uvicorn says of each start and end what is said here anyway.
    logging.getLogger("uvicorn").setLevel(max(logging.WARNING, logging.root.level))
    log_levels.apply(folder)


def _serve(
    service: Service,
    sockets: list[socket.socket],
    hosts: list[str],
    headers: list[tuple[str, str]],
) -> None:
    config = uvicorn.Config(
        make_app(service, [where(each) for each in sockets], hosts),
        loop="asyncio",
        http=ReceiveTimeoutProtocol,
        backlog=BACKLOG,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # whoever asks could say with X-Forwarded-For that it is another
        headers=headers,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    for each in sockets:
        LOGGER.info("listening at %s", where(each).url)
    # The first command would wait for what takes half a second to import.
    Thread(target=service.find_plugins, name="plugins", daemon=True).start()
    gc.freeze()  # what was imported stays: to collect it would take longest when the process ends
    RestServer(config).run(sockets)


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
