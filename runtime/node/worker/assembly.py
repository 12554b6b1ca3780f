"""Builds the parts of a worker process from its `StartWorker` order."""

import gc
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from ....actors.assignors.built_in.catalogue import BUILT_IN
from ....actors.messages.assignors import Worker
from ....actors.worker.classic.membership import ClassicMembership
from ....actors.worker.group_membership import GroupMembership
from ....actors.worker.instructions import Identity
from ....actors.worker.membership import Membership
from ....events.catalogue import entry_key
from ....events.entries.codec import CONTROL, decode
from ....events.log.reader import LogReader
from ....events.model import ClientAssignor
from ....events.records import ConnectorConfig
from ....projections.follow.member import MemberFollower
from ...cluster.identity import cluster_id
from ...cluster.messages import StartWorker
from ...cluster.run_folder import RunFolder
from ...pipeline.connectors.plugins import find_plugins
from ...pipeline.engines.java import environment
from ...pipeline.spi.keys.common import CONNECTOR_CLASS
from ...processes.isolation import limit_memory
from .cleanup_duty import CleanupDuty
from .core.contract import CoreReport, MemberLog
from .core.worker_core import WorkerCore
from .group_ledger import GroupLedger
from .plugins.rights import ActorRights
from .runner import NoopRunner, WorkerRunner

if TYPE_CHECKING:
    from .engines import WorkerEngine


_OF_WORK: Final = (".spark_runner", "...pipeline.connectors.spark_pipeline")
"""The modules that load whatever else runs work."""
_THREADLESS: Final = {
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Environment variables that keep Arrow and numpy from starting threads when imported."""


class WorkerParts(NamedTuple):
    """The parts of a worker that its actor drives and closes."""

    core: WorkerCore
    runner: WorkerRunner
    ledger: GroupLedger
    log: MemberFollower


@cache
def load_work(kind: str) -> None:
    """Import the modules of workers with this kind of engine, in the process that forks them.

    Forks share the memory, and each saves a second of CPU time at its start. The imports must start
    no thread, since a fork would not have it. Import errors are ignored: the worker tries again and
    reports them.
    """
    if kind == "noop":
        return
    with environment(_THREADLESS), suppress(Exception):
        for name in _OF_WORK:
            import_module(name, __package__)
    gc.collect()
    gc.freeze()  # objects that the forks' garbage collectors skip stay in shared memory


def assemble(
    order: StartWorker, report: Callable[[CoreReport], None], rights: ActorRights
) -> WorkerParts:
    """Build a worker that has not begun yet; the engine of its runner may start already.

    `report` gets the runner's reports, from any thread; `rights` answers those threads.
    """
    node, membership = order.node, membership_of(order)
    if node.engine.memory_bytes:
        limit_memory(node.engine.memory_bytes, is_for_children=False)
    folder = node.group_folder(node.group_id)
    reader = LogReader.open(folder / "control", node.group_id, CONTROL)
    opened = _engine_of(order, reader)  # first: it warms up while the rest is loaded
    may_lead = bool(order.traits.classic_mode)
    log = MemberFollower(node.group_id, membership.member_id, reader, sees_configured=may_lead)
    cluster = cluster_id(RunFolder(node.data_dir).key())
    ids = cluster, node.store_id
    ledger = GroupLedger(node.group_id, folder / "offsets", report, *ids)
    core = core_of(order, membership, log)
    if opened is None:
        return WorkerParts(core, NoopRunner(report), ledger, log)
    from .spark_runner import SparkRunner  # noqa: PLC0415  # heavy, and only here

    duty = CleanupDuty(node.group_id, log, reader)
    runner = SparkRunner(node, order.name, opened, ledger, duty, report, rights=rights)
    return WorkerParts(core, runner, ledger, log)


def _engine_of(order: StartWorker, log: LogReader) -> "WorkerEngine | None":
    """Return the engine of a worker; None for the no-op engine.

    It is opened already unless all connectors are of classes that run elsewhere.
    """
    if order.node.engine.kind == "noop":
        return None
    from .engines import make_engine  # noqa: PLC0415  # heavy, and only here

    engine = make_engine(order.node, order.name)
    configs = [decode(each) for each in log.scan(*entry_key(ConnectorConfig, ()))]
    plugins = find_plugins()
    is_own = [
        plugins.has(each.config.get(CONNECTOR_CLASS, ""))
        for each in configs
        if isinstance(each, ConnectorConfig)
    ]
    if any(is_own) or not is_own:
        engine.engine.open()
    return engine


def membership_of(order: StartWorker) -> GroupMembership:
    """Build the membership of a worker's new process.

    A connect member names its assignors; it joins once it has their metadata.
    """
    node = order.node
    identity = Identity(
        node.group_id,
        str(uuid.uuid4()),
        str(uuid.uuid4()),
        node.url(order.name),
        client_id=order.name,
        client_host=socket.gethostname(),
        instance_id=node.instance_id(order.name),
        rack=order.traits.zone,
        node=node.node_id,
    )
    if mode := order.traits.classic_mode:
        first = node.assignors.names[0]
        users = "" if first in BUILT_IN else first
        delay_ms = node.settings.max_delay_ms
        return ClassicMembership(identity, node.timing, mode, delay_ms, users)
    named = () if node.server_assignor else tuple(map(ClientAssignor, node.assignors.names))
    return Membership(identity, node.timing, named, server_assignor=node.server_assignor)


def core_of(order: StartWorker, membership: GroupMembership, log: MemberLog) -> WorkerCore:
    """Build the core of a worker that has not begun yet.

    A worker joins cold and reports that, so that it gets no work before it is warm. Three join only
    once they are warm: one with a server assignor and a classic member cannot report it, and a
    static member would lose the work of its seat.
    """
    node, traits = order.node, order.traits
    able, is_mute = traits.abilities, bool(node.server_assignor or traits.classic_mode)
    return WorkerCore(
        membership,
        log,
        Worker(order.name, traits.zone, able.tags, able.capacity),
        () if is_mute else node.assignors.names,
        is_warm=node.engine.kind == "noop",
        joins_warm=is_mute or membership.identity.instance_id is not None,
    )
