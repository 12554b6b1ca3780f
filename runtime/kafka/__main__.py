"""The listener process for Kafka clients: `python -m fairlead.runtime.kafka`, started by a node.

It reads its settings from standard input, as JSON. The groups are in other processes: when this
one ends, their members, sessions and rebalances continue, and the clients reconnect. It logs to
`logs/kafka.log` in the data folder.
"""

import asyncio
import json
import logging
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from setproctitle import setproctitle

from ...actors.transport import log_levels
from ...actors.transport.log_format import LogOutput
from ...actors.transport.ports import HostPort
from ..cluster.data_version import VersionSkewError, require_version_of_node
from ..cluster.run_folder import RunFolder
from ..cluster.spec import KafkaSpec
from ..security.followed_files import FileRefused
from ..security.tls import TlsRefusedError
from .broker.group_partition import GroupPartitions
from .broker.transactions import Transactions
from .broker.upstream import Upstream
from .counts import Counts
from .groups import Groups
from .security.access import BY_BROKER, ListenerAccess, open_access
from .security.broker_acls import BrokerAcls
from .server import Limits, Listener
from .shard_connection import ShardConnection, ShardLookup
from .topics import Topics

LOGGER = logging.getLogger(__package__)
EXIT_FAILED: Final = 1
LEVELS_SECONDS: Final = 1.0


def main() -> int:
    """Serve until SIGTERM, or until the parent process ends; return the exit code."""
    brief: Mapping[str, Any] = json.load(sys.stdin)
    setproctitle(f"fairlead: kafka {brief['group']}")
    data_dir = Path(brief["data_dir"])
    try:
        LogOutput(**brief["log"]).begin(data_dir / "logs" / "kafka.log")
        require_version_of_node(data_dir)
        asked = [socket.socket(fileno=int(each)) for each in sys.argv[1:]]
        asyncio.run(serve(KafkaSpec.read(brief["kafka"]), data_dir, str(brief["group"]), asked))
    except (FileRefused, TlsRefusedError, VersionSkewError, OSError) as error:
        LOGGER.error("the listener for Kafka's clients cannot start: %s", error)  # noqa: TRY400  # the message says it all
        sys.stderr.write(f"the listener for Kafka's clients cannot start: {error}\n")
        return EXIT_FAILED
    return 0


async def serve(
    spec: KafkaSpec, data_dir: Path, workers_group: str, echo_ends: Sequence[socket.socket] = ()
) -> None:
    """Serve until SIGTERM, and echo bytes of `echo_ends`; raises `OSError` as `Listener.open`."""
    must_stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, must_stop.set)
    for end in echo_ends:
        end.settimeout(0)
        loop.add_reader(end, _echo, loop, end)
    host = time.time_ns()
    shards = [ShardConnection(ShardLookup(data_dir, number), host) for number in range(spec.shards)]
    for shard in shards:
        shard.start()
    workers = ShardConnection(ShardLookup(data_dir, workers_group), host)
    counts = Counts(RunFolder(data_dir).metrics)
    brokers = [HostPort(*each) for each in spec.brokers]
    access = open_access(spec.security, RunFolder(data_dir).key())
    topics = Topics(shards, brokers, counts, access.upstream)
    partitions = GroupPartitions(brokers, access.upstream)
    open_transactions = partial(Transactions, partitions, counts.warn)
    groups = Groups(shards, topics, workers_group, workers, open_transactions, spec.protocols)
    limits = Limits(spec.connections, spec.of_address)
    listener = Listener(groups, counts, limits, access)
    acls = await _open_broker_acls(spec, access, brokers, counts)
    bind = HostPort(spec.host, spec.port)
    await listener.open(bind, HostPort(spec.advertised_host, spec.port), brokers)
    LOGGER.info("Kafka's clients are served at %s:%d", spec.host, spec.port)
    background = [
        asyncio.create_task(each)
        for each in (
            listener.open_broker_ports(brokers),
            listener.sweep(),
            topics.watch(),
            groups.wait_for_transactions(),
            listener.follow_files(),
            _follow_levels(data_dir),
            *([groups.watch_nodes()] if spec.security.nodes else []),
            *([acls.watch(listener.renew_rights)] if acls else []),
        )
    ]
    for each in background:
        each.add_done_callback(_log_failure)
    await must_stop.wait()
    for each in background:
        each.cancel()
    await listener.close()
    groups.close()
    counts.close()


async def _open_broker_acls(
    spec: KafkaSpec, access: ListenerAccess, brokers: Sequence[HostPort], counts: Counts
) -> BrokerAcls | None:
    """Read the access control lists of the brokers, None if these do not hold here."""
    if access.authorizer is None or spec.security.acls != BY_BROKER:
        return None
    connect = partial(Upstream, brokers, access.upstream)
    acls = BrokerAcls(access.authorizer, connect, counts.warn)
    await acls.refresh()
    return acls


def _echo(loop: asyncio.AbstractEventLoop, end: socket.socket) -> None:
    """Answer the launcher, which replaces a process that does not."""
    with suppress(BlockingIOError):
        if asked := end.recv(1):
            end.send(asked)
        else:  # the launcher has ended, and this process is about to
            loop.remove_reader(end)


def _log_failure(task: "asyncio.Task[None]") -> None:
    """Log the failure of a background task, which nothing else would report."""
    if not task.cancelled() and (error := task.exception()) is not None:
        LOGGER.critical("a part of the listener has ended", exc_info=error)


async def _follow_levels(data_dir: Path) -> None:
    while True:
        log_levels.apply(data_dir / "logs")
        await asyncio.sleep(LEVELS_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
