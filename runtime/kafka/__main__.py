"""Serves Kafka's clients: `python -m fairlead.runtime.kafka`, started by a node.

Its brief comes by its input, as JSON. The groups are in processes of their own: when this one
ends, members, sessions and rounds live on, and clients dial again. It tells what happens in
`logs/kafka.log` of the data folder.
"""

import asyncio
import json
import logging
import signal
import ssl
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from setproctitle import setproctitle

from ...actors.door import log_levels
from ...actors.door.log_file import LogFile
from ..cluster.run_folder import RunFolder
from ..cluster.spec import KafkaSpec
from .amend import HostPort
from .counts import Counts
from .groups import Groups
from .line import ShardLine
from .server import Limits, Listener
from .topics import Topics
from .way_in import WayIn

LOGGER = logging.getLogger(__name__)
EXIT_FAILED: Final = 1
LEVELS_SECONDS: Final = 1.0


def main() -> int:
    """Serve until SIGTERM or the parent's end; return the exit code."""
    brief: Mapping[str, Any] = json.load(sys.stdin)
    setproctitle(f"fairlead: kafka {brief['group']}")
    data_dir = Path(brief["data_dir"])
    try:
        _log_to(data_dir / "logs", str(brief["log_level"]))
        asyncio.run(serve(KafkaSpec.read(brief["kafka"]), data_dir, str(brief["group"])))
    except (OSError, ssl.SSLError) as error:
        LOGGER.error("the listener for Kafka's clients cannot start: %s", error)  # noqa: TRY400  # it tells all
        sys.stderr.write(f"the listener for Kafka's clients cannot start: {error}\n")
        return EXIT_FAILED
    return 0


async def serve(spec: KafkaSpec, data_dir: Path, workers_group: str) -> None:
    """Serve until SIGTERM; raises `OSError` where the port cannot be had."""
    has_to_end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, has_to_end.set)
    host = time.time_ns()
    lines = [ShardLine(WayIn(data_dir, number), host) for number in range(spec.shards)]
    for line in lines:
        line.begin()
    workers = ShardLine(WayIn(data_dir, workers_group), host)
    counts = Counts(RunFolder(data_dir).metrics)
    brokers = [HostPort(*each) for each in spec.brokers]
    topics = Topics(lines, brokers, counts)
    groups = Groups(lines, topics, workers_group, workers)
    listener = Listener(groups, counts, Limits(spec.connections, spec.of_address), _tls(spec))
    at = HostPort(spec.host, spec.port)
    await listener.open(at, HostPort(spec.advertised_host, spec.port), brokers)
    LOGGER.info("Kafka's clients are served at %s:%d", spec.host, spec.port)
    beside = [
        asyncio.create_task(each)
        for each in (
            listener.learn_brokers(brokers),
            listener.sweep(),
            topics.watch(),
            _follow_levels(data_dir),
        )
    ]
    for each in beside:
        each.add_done_callback(_tell_failure)
    await has_to_end.wait()
    for each in beside:
        each.cancel()
    await listener.close()
    groups.close()


def _tls(spec: KafkaSpec) -> ssl.SSLContext | None:
    """Return what encrypts, and asks clients for a certificate; raises `OSError`."""
    if not spec.is_encrypted:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(spec.keystore)
    context.load_verify_locations(spec.truststore)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _tell_failure(task: "asyncio.Task[None]") -> None:
    """Log what has gone wrong beside the clients: nobody else would see it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        LOGGER.critical("a part of the listener has ended", exc_info=error)


async def _follow_levels(data_dir: Path) -> None:
    while True:
        log_levels.take_up(data_dir / "logs")
        await asyncio.sleep(LEVELS_SECONDS)


def _log_to(folder: Path, level: str) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = LogFile(folder / "kafka.log")
    form = "%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(level=level, format=form, handlers=[handler])


if __name__ == "__main__":
    sys.exit(main())
