"""The shared state of all routes, and the execution of commands by groups.

An actor answers in milliseconds, or not at all. So that nobody who reads waits for one that hangs,
a read waits `PATIENCE_SECONDS` for a new answer, and gets the last one with its age otherwise; only
the first one of all waits until the question fails. A question that fails takes the last answer
away: from then on nothing is known.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import Annotated, Final, Generic, Protocol, TypeVar, cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from .....actors.messages.commands import (
    CommandReply,
    CompactHistory,
    CompactionProgress,
    DescribeCompaction,
    Traffic,
)
from .....actors.messages.errors import Error
from .....actors.messages.orders import AlterOffsets
from .....events.group import Group
from .....events.records import ConnectorConfig
from .....projections.metrics.exposition import Exposition
from .....projections.metrics.processes import RequestMetrics
from ....cluster.messages import NodeView, OwnershipView, Whereabouts
from ....cluster.spec import AssignorSpec, WorkerTraits
from ....config.secrets import Vault
from ....node.shown_settings import ShownSetting
from ....pipeline.connectors.plugins import (
    SINK_TYPE,
    SOURCE_TYPE,
    Plugins,
    feeds_sink,
    is_pipeline,
)
from ....pipeline.spi.errors import PluginUnknown
from ....pipeline.spi.keys.common import (
    CONNECTOR_CLASS,
    RESTART_WINDOW_MS,
    running_settings,
)
from ....pipeline.spi.keys.plugin_sink import BESIDE_SOURCE, has_two_plugins
from ....pipeline.spi.offsets import PartitionOffset
from ....security.audit import AuditLog
from ....security.rights import Access, Right
from ...replies.building.connectors import UNKNOWN, MadeBy
from ...replies.building.validations import describe_validation
from ...replies.connectors import ConfigInfos
from ...replies.folder import FolderReport, no_folder
from ...replies.node import Message
from ..reading.ends import EndOffsets
from ..reading.feed import PageFeed
from ..reading.logs import NodeLogs
from ..server.connections import Encryption
from ..server.errors import ApiError, Unanswered, not_found
from ..server.permissions import access_of, check_of_names
from ..server.principals import Principal
from ..server.routing import FromRequest
from ..validation.configs import SealedConfig, check_config, seal_config
from ..validation.connect_configs import (
    refuse_ends,
    seal_connect_config,
    validate_both,
    with_flaws,
)
from ..validation.external_checks import ExternalChecks
from ..validation.letters import LetterReader
from ..validation.offsets import OffsetJudge
from ..validation.promises import PluginAnswersKept
from ..validation.second_plugins import ask_for_sink, flaw_in_sink, flaws_beside, with_sink
from ..validation.stand_ins import StandInVault
from .connect_offsets import OffsetsInKafka, ask_for_offsets
from .connect_plugins import ConnectPlugins
from .connection import Command, Outcome
from .samples import Samples

T = TypeVar("T")

_STATUS = {
    Error.ALREADY_EXISTS: HTTPStatus.CONFLICT,
    Error.NON_EMPTY_GROUP: HTTPStatus.CONFLICT,
    Error.UNKNOWN_CONNECTOR: HTTPStatus.NOT_FOUND,
    Error.UNKNOWN_MEMBER_ID: HTTPStatus.NOT_FOUND,
    Error.GROUP_ID_NOT_FOUND: HTTPStatus.NOT_FOUND,
    Error.INVALID_CONFIG: HTTPStatus.BAD_REQUEST,
    Error.INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
    Error.COORDINATOR_NOT_AVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}
ORDER_ERRORS = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)
"""The error statuses of every command to a group."""
WAIT_SECONDS: Final = 60
"""How long a request may wait in the queue of a `SerialExecutor`: clients time out after 90 s."""
PATIENCE_SECONDS: Final = 0.3


class KeptAnswer(Generic[T]):
    """The last answer to one question; one question at a time is open."""

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience_seconds = patience_seconds
        self.last: T | None = None
        """The last answer; None before the first one, and after a failure."""
        self._answered_at = 0.0
        """When it came, in monotonic seconds."""
        self._asking: asyncio.Task[T] | None = None

    @property
    def age_ms(self) -> int:
        """How old the last answer is, in milliseconds."""
        return int((time.monotonic() - self._answered_at) * 1000)

    def ask(self, question: Callable[[], Awaitable[T]]) -> "asyncio.Task[T]":
        """Begin to ask, unless a question is open; return the open one."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask(question))
            self._asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._asking

    async def read(self, question: Callable[[], Awaitable[T]]) -> tuple[T, int]:
        """Return an answer and its age in milliseconds, 0 for a new one; raises `Unanswered`."""
        asking = self.ask(question)
        patience = None if self.last is None else self._patience_seconds
        await asyncio.wait({asking}, timeout=patience)
        if not asking.done() and self.last is not None:
            return self.last, self.age_ms
        return await asyncio.shield(asking), 0

    async def _ask(self, question: Callable[[], Awaitable[T]]) -> T:
        try:
            answer = await question()
        except Unanswered:
            self.last = None
            raise
        self.last, self._answered_at = answer, time.monotonic()
        return answer


class Commands(Protocol):
    """Sends commands and questions to the actors; each method raises `Unanswered`."""

    async def carry_out(self, command: Command, *, is_of_clients: bool = False) -> Outcome:
        """Send a command to a group of workers, or to one of Kafka's clients."""
        ...

    async def locate(self, group_id: str) -> Whereabouts:
        """Ask for the current address of a group."""
        ...

    async def describe_node(self) -> NodeView:
        """Ask for the state of the node's processes."""
        ...

    async def traffic(self, group_id: str) -> Traffic:
        """Ask for the traffic counters of a group's actor."""
        ...

    async def ownership(self, group_id: str) -> OwnershipView:
        """Ask this node's process of a group who owns the group."""
        ...

    async def compaction(self, question: CompactHistory | DescribeCompaction) -> CompactionProgress:
        """Ask a group to compact its history, or how far it is."""
        ...

    async def announce_log_levels(self) -> None:
        """Reload the log levels of all actor processes."""
        ...

    async def stop_worker(self, worker: str, *, force: bool) -> None:
        """Stop the process of a worker, or kill it by force, without a restart."""
        ...


class SerialExecutor:
    """A thread that runs functions one after another, in the order of their submission.

    The first explanation of a group reads its whole log, which may take seconds. One request at a
    time does so; waiting requests block no thread of the server.
    """

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="explain")
        self._wait_seconds = wait_seconds

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function, and return its result; raises `ApiError` if it does not start in time."""
        turn = self._thread.submit(function)
        result = asyncio.wrap_future(turn)
        try:
            done, _ = await asyncio.wait([result], timeout=self._wait_seconds)
            if not done and turn.cancel():
                busy = "other requests that read whole logs are running: try again in a moment"
                raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, busy)
            return await result
        finally:
            result.cancel()  # nobody waits for it any more: it need not start

    def close(self) -> None:
        """Start nothing more; a running function ends when its log is closed."""
        self._thread.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Service:
    """The state of a REST process: its logs, its gateway to the actors, and the node's settings.

    `group_id` is the default group, to which the paths of Connect's API apply.
    """

    group_id: str
    cluster_id: str
    version: str
    logs: NodeLogs
    commands: Commands
    find_plugins: Callable[[], Plugins]
    """Returns the connector classes; the first call loads them, which is slow."""
    vault: Vault
    requests: RequestMetrics
    exposition: Exposition
    assignors: AssignorSpec = field(default_factory=AssignorSpec)
    """The assignors of this node's workers, which plans use as well."""
    assignor_log: Path = Path(os.devnull)
    """The file for the output of third-party assignors."""
    log_folder: Path = Path(os.devnull)
    """The folder of the node's log files and of the log levels that were set."""
    run_folder: Path = Path(os.devnull)
    """The folder in which the launcher lists the processes that do not answer."""
    traits: WorkerTraits = field(default_factory=WorkerTraits)
    """The default properties of this node's workers."""
    settings: Sequence[ShownSetting] = ()
    """The settings that the node was started with."""
    workers: int = 1
    """How many workers the node runs by itself."""
    encryption: Encryption = field(default_factory=Encryption)
    """The TLS of https listeners."""
    audit: AuditLog | None = None
    """The log of who changed what; None: it is not kept."""
    outside: ExternalChecks | None = None
    """The checks of new configs against external systems; None: no checks."""
    samples: Samples | None = None
    """Reads samples of the rows of configs; None: nothing here reads rows."""
    connect_plugins: ConnectPlugins | None = None
    """The plugins of Kafka Connect that the node has; None: none are looked for."""
    traffic: KeptAnswer[Traffic] = field(default_factory=KeptAnswer[Traffic])
    """The heartbeats that the group's actor counts."""
    processes: KeptAnswer[NodeView] = field(default_factory=KeptAnswer[NodeView])
    """The processes of the node, which its supervisor tells."""
    whereabouts: KeptAnswer[Whereabouts] = field(default_factory=KeptAnswer[Whereabouts])
    """Where the group is, which the supervisor tells as well."""
    ownership: KeptAnswer[OwnershipView] = field(default_factory=KeptAnswer[OwnershipView])
    """Who owns the group, which its process here tells."""
    asks_plugins: bool = True
    """Whether Connect's plugins may be asked about a config: they look at where it leads."""
    kept_answers: PluginAnswersKept = field(default_factory=PluginAnswersKept)
    """What they have said of their offsets."""
    page: PageFeed = field(default_factory=PageFeed)
    """What a page shows of the default group, and its changes."""
    ends: EndOffsets = field(default_factory=EndOffsets)
    """How far the partitions were written that groups of Kafka clients read."""
    planning: Lock = field(default_factory=Lock)
    """Held while a plan is computed: one at a time, since each may need much memory."""
    read_folder: Callable[[], FolderReport | None] = no_folder
    """Returns how the connectors differ from the folder of files; None: none is set."""
    count_spans: Callable[[], Mapping[str, int]] = dict
    """Returns how many spans of traces were sent and dropped; nothing if none are to be sent."""
    explaining: SerialExecutor = field(default_factory=SerialExecutor)
    """Runs the requests that read a whole log, one at a time."""

    @property
    def needs_engine(self) -> bool:
        """Whether tasks need a JVM: only nodes with Spark check what is outside."""
        return self.outside is not None

    def limited_to(self, access: Access, connectors: Collection[str]) -> "Service":
        """Return the service for a caller who compares configs of connectors, or validates one.

        A look at what a config leads to goes where the config says, with the secrets in it and
        those that it refers to. So it is for callers who may put such a config. Others are not to
        find out what a secret is.
        """
        may_put = (
            all(access.has(Right.ADMINISTER, each) for each in connectors)
            if connectors
            else access.has_somewhere(Right.ADMINISTER)
        )
        if may_put:
            return self
        stand_ins = StandInVault(self.vault)
        return replace(self, outside=None, vault=stand_ins, asks_plugins=False)

    @property
    def plugins(self) -> Plugins:
        """The connector classes that are installed here."""
        return self.find_plugins()

    def seal(
        self,
        config: Mapping[str, str | None],
        stored: Mapping[str, str],
        outside: ExternalChecks | None = None,
    ) -> SealedConfig:
        """Validate a config by its class and seal its secrets; `stored` is the present one, if any.

        Raises `ApiError` with all errors, in Connect's format.
        """
        connect = self.connect_plugins
        name = config.get(CONNECTOR_CLASS) or ""
        if connect is not None and self._has_plugin({CONNECTOR_CLASS: name}):
            look = partial(self.look_at, stored, outside)
            providers = connect.spec.providers
            sealed = seal_connect_config(look, self.vault, config, stored, providers)
            self.kept_answers.keep(sealed.config, sealed.exactly_once)
            return sealed
        plugins = self.plugins
        if connect is not None and not plugins.has(name):
            if why := connect.refusal(name):
                raise ApiError(HTTPStatus.BAD_REQUEST, why)
            plugins = replace(plugins, others=connect.connectors())
        return seal_config(plugins, self.vault, config, stored, outside)

    def look_at(
        self,
        stored: Mapping[str, str],
        outside: ExternalChecks | None,
        config: Mapping[str, str | None],
    ) -> ConfigInfos:
        """Return what a plugin of Connect's says of a config, and fairlead of the end in it.

        Raises `ApiError`.
        """
        connect = self.connect_plugins
        plugin = connect.find(config.get(CONNECTOR_CLASS) or "") if connect else None
        if connect is None or plugin is None:
            raise AssertionError("the class of the config is a plugin's")
        other = {"source": SINK_TYPE, "sink": SOURCE_TYPE}.get(plugin.type, "")
        has_end = other in config and not {SOURCE_TYPE, SINK_TYPE} <= config.keys()
        look = partial(connect.validate, batches=has_end) if self.asks_plugins else connect.describe
        if not has_end:
            return refuse_ends(look(config), plugin.type, config, connect.spec.providers)

        def check(plain: Mapping[str, str]) -> ConfigInfos:
            checked = check_config(self.plugins.of(plain), self.vault, plain, stored, outside)
            return describe_validation(plain[CONNECTOR_CLASS], checked.validation)

        ask = connect.exactly_once if self.asks_plugins else _ask_nobody
        infos = validate_both(look, check, config, ask)
        if plugin.type == "source" and has_two_plugins(config):
            infos = self._look_at_sink(connect, infos, look, config)
        return refuse_ends(infos, plugin.type, config, connect.spec.providers)

    def _look_at_sink(
        self,
        connect: ConnectPlugins,
        infos: ConfigInfos,
        look: Callable[[Mapping[str, str | None]], ConfigInfos],
        config: Mapping[str, str | None],
    ) -> ConfigInfos:
        """Add what is to be said of the plugin that is the sink of another one."""
        name = config.get(f"{BESIDE_SOURCE}{CONNECTOR_CLASS}") or ""
        plugin = connect.find(name)
        kind = plugin.type if plugin else ""
        if why := flaw_in_sink(name, kind, connect.refusal(name), connect.hint(name)):
            sinks = [each.class_name for each in connect.listed() if each.type == "sink"]
            return ask_for_sink(infos, config, why, sinks)
        flaws = flaws_beside(config, connect.spec.providers)
        return with_flaws(with_sink(infos, look, config), config, flaws)

    def is_of_connect(self, config: Mapping[str, str]) -> bool:
        """Return whether a connector is a plugin of Kafka Connect's that is here, as in Connect."""
        return not is_pipeline(config) and self._has_plugin(config)

    def _has_plugin(self, config: Mapping[str, str]) -> bool:
        name, connect = config.get(CONNECTOR_CLASS, ""), self.connect_plugins
        return connect is not None and not self.plugins.has(name) and connect.find(name) is not None

    def offsets_in_kafka(self, stored: ConnectorConfig, tasks: int) -> OffsetsInKafka | None:
        """Return the offsets of a connector of Kafka Connect's class; None: it is of fairlead's.

        `tasks` is how many it has had. Raises `ApiError`.
        """
        if self.connect_plugins is None or not self.is_of_connect(stored.config):
            return None
        return OffsetsInKafka.of(self.connect_plugins, self.vault, stored, tasks)

    def ask_for_offsets(
        self,
        stored: ConnectorConfig,
        offsets: Sequence[PartitionOffset] | None,
        before: Sequence[PartitionOffset],
    ) -> Message | None:
        """Ask a source of Connect's that feeds a sink before its offsets change; None: it is none.

        `offsets` of None are a reset. Raises `ApiError` if it refuses, or is not here.
        """
        name = stored.config.get(CONNECTOR_CLASS, "")
        if not feeds_sink(stored.config) or self.plugins.has(name):
            return None
        connect = self.connect_plugins
        if connect is None or connect.find(name) is None:
            return None
        partitions = [each.partition for each in before]
        return ask_for_offsets(connect, self.vault, stored, offsets, partitions)

    def judge_of(self, stored: ConnectorConfig) -> OffsetJudge:
        """Return the class that judges a connector's offsets; raises `ApiError`."""
        return OffsetJudge.of(self.plugins, self.vault, self.outside or ExternalChecks(), stored)

    def letters_of(self, stored: ConnectorConfig) -> LetterReader:
        """Return the class that reads a connector's dead letters; raises `ApiError`."""
        return LetterReader.of(self.plugins, self.vault, self.outside or ExternalChecks(), stored)

    def made_by(self, config: Mapping[str, str]) -> MadeBy:
        """Return the type and version of a connector's class."""
        name, window_ms = config.get(CONNECTOR_CLASS, ""), RESTART_WINDOW_MS
        with suppress(PluginUnknown):
            found = self.plugins.find(name).made_by
            return MadeBy(found.kind, found.version, running_settings(config).number(window_ms))
        if self.connect_plugins and (plugin := self.connect_plugins.find(name)):
            window = running_settings(config).number(window_ms)
            return MadeBy(plugin.type, plugin.version, window, is_of_connect=True)
        return MadeBy(UNKNOWN)


def _ask_nobody(_: Mapping[str, str]) -> str:
    return ""


def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


def _principal_name(request: Request) -> str:
    return cast(Principal, request.state.principal).name


Served = Annotated[Service, FromRequest(_service)]
"""The service, as a parameter of a route."""
PrincipalName = Annotated[str, FromRequest(_principal_name)]
"""The principal of a request, as commands and the log have it."""
RequireNames = Annotated[Callable[[Iterable[str]], None], FromRequest(check_of_names)]
"""Raises `ApiError` unless the caller may do the request with the connectors of these names."""
CallerAccess = Annotated[Access, FromRequest(access_of)]
"""What the caller may do, and which connectors they see."""


async def forget_topics(service: Service, name: str, config: Mapping[str, str], by: str) -> None:
    """Forget which topics a connector of Kafka Connect's class uses; of others nothing is kept.

    Raises `ApiError`, `Unanswered`.
    """
    if await run_in_threadpool(service.is_of_connect, config):
        order = AlterOffsets(
            service.group_id, name, "forgotten: its topics", principal=by, are_notes=True
        )
        refuse((await service.commands.carry_out(order)).reply)


async def carry_out(service: Service, command: Command, read: Callable[[Group], T]) -> T:
    """Send a command to a group, then return `read(group)` at a state that includes it.

    Raises `ApiError` if the group is unknown, refuses the command, or if its log as read here does
    not include it yet; `Unanswered`.
    """
    await run_in_threadpool(require_group, service, command.group_id)
    outcome = await service.commands.carry_out(command)
    refuse(outcome.reply)

    def read_after() -> T:
        with service.logs.reading(command.group_id) as logs:
            require_written(logs.group, outcome.reply)
            return read(logs.group)

    return await run_in_threadpool(read_after)


def refuse(reply: CommandReply) -> None:
    """Raise `ApiError` unless the command was executed."""
    if reply.error is not Error.NONE:
        status = _STATUS.get(reply.error, HTTPStatus.INTERNAL_SERVER_ERROR)
        raise ApiError(status, reply.message or f"the group answered {reply.error.value}")


def require_written(group: Group, reply: CommandReply) -> None:
    """Raise `ApiError` if the log as read here does not include the command yet."""
    if group.end < reply.log_offset:
        raise ApiError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"the command was carried out, but the log here ends at {group.end}, not yet at"
            f" {reply.log_offset}: read again what it was about",
        )


def require_group(service: Service, group_id: str) -> None:
    """Raise `ApiError` if no group with this id has its own log on this node."""
    if service.logs.has_own_logs(group_id):
        return
    with service.logs.shards.holding(group_id) as shard:
        if shard is not None:
            raise not_found(
                f"group {group_id} is one of Kafka's clients: it has no workers and no connectors"
                " here. Its settings can be changed; all else is for Kafka's own tools"
                " (kafka-consumer-groups)"
            )
    raise not_found(f"there is no group {group_id}")
