"""What every route works with, and how it has a group carry out a command."""

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import Annotated, Final, Protocol, TypeVar, cast

from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from .....actors.messages.commands import CommandReply, Traffic
from .....actors.messages.errors import Error
from .....events.group import Group
from .....projections.metrics import Exposition, RequestMetrics
from ....cluster.messages import NodeView, Whereabouts
from ....cluster.spec import AssignorSpec, WorkerTraits
from ....config.secrets import Vault
from ....pipeline.connectors.builtin.plugins import Plugins
from ....pipeline.connectors.common_keys import (
    CONNECTOR_CLASS,
    RESTART_WINDOW_MS,
    common_settings,
)
from ....pipeline.spi.errors import PluginUnknown
from ...replies.connectors import MadeBy
from .connection import Command, Outcome
from .errors import ApiError, not_found
from .logs import NodeLogs
from .outside import OutsideChecks

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
"""What any command to a group can be refused with."""
WAIT_SECONDS: Final = 60
"""How long a request waits for its turn: a client waits for 90 s at most."""


class Commands(Protocol):
    """Carries out commands; each of these raises `Unanswered`."""

    async def carry_out(self, command: Command) -> Outcome:
        """Have a group carry out a command."""
        ...

    async def locate(self, group_id: str) -> Whereabouts:
        """Ask where a group is served now."""
        ...

    async def describe_node(self) -> NodeView:
        """Ask which processes the node has."""
        ...

    async def traffic(self, group_id: str) -> Traffic:
        """Ask what went through a group's actor."""
        ...

    async def announce_log_levels(self) -> None:
        """Have all processes of the actors read their levels of logging."""
        ...

    async def let_go(self, worker: str, *, force: bool) -> None:
        """Have the process of a worker end, at once if by force, and not start again."""
        ...


class SerialExecutor:
    """A thread that runs functions in the order in which they were handed in.

    A first explanation reads a group's log from its beginning, which may take seconds. One request
    at a time does so; those that wait take no thread from other requests.
    """

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="explain")
        self._wait_seconds = wait_seconds

    async def run(self, function: Callable[[], T]) -> T:
        """Return what a function returns; raises `ApiError` if its turn does not come in time."""
        turn = self._thread.submit(function)
        result = asyncio.wrap_future(turn)
        try:
            done, _ = await asyncio.wait([result], timeout=self._wait_seconds)
            if not done and turn.cancel():
                busy = "other epochs are being told of: try again in a moment"
                raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, busy)
            return await result
        finally:
            result.cancel()  # nobody waits for it any more: what has not begun need not begin

    def close(self) -> None:
        """Start nothing more; a function that reads a log ends when that is closed."""
        self._thread.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Service:
    """One REST process: what it reads, whom it asks, and what it knows by itself.

    `group_id` is the default group, which the paths of Connect's API mean.
    """

    group_id: str
    cluster_id: str
    version: str
    logs: NodeLogs
    commands: Commands
    find_plugins: Callable[[], Plugins]
    """Loads the connector classes, which takes a while, or returns what it has loaded."""
    vault: Vault
    requests: RequestMetrics
    exposition: Exposition
    assignors: AssignorSpec = field(default_factory=AssignorSpec)
    """What this node's workers compute with: plans are made by the same."""
    assignor_log: Path = Path(os.devnull)
    """Where what third-party assignors print goes."""
    log_folder: Path = Path(os.devnull)
    """Where the node's logs lie, and the levels that were set."""
    run_folder: Path = Path(os.devnull)
    """Where the node's first process writes down which of the others are silent."""
    traits: WorkerTraits = field(default_factory=WorkerTraits)
    """What sets this node's workers apart from others, unless they are started otherwise."""
    outside: OutsideChecks | None = None
    """What holds new configs against this node; None: they are taken as they are."""
    planning: Lock = field(default_factory=Lock)
    """Held while a plan is made: one at a time, since each costs as much as a large group."""
    explaining: SerialExecutor = field(default_factory=SerialExecutor)
    """Runs what reads a whole log, for one request at a time."""

    @property
    def plugins(self) -> Plugins:
        """The connector classes that can be run here."""
        return self.find_plugins()

    def made_by(self, config: Mapping[str, str]) -> MadeBy:
        """Return what is known of a connector by its config."""
        try:
            found = self.plugins.find(config.get(CONNECTOR_CLASS, "")).made_by
        except PluginUnknown:
            return MadeBy("unknown")
        return MadeBy(found.kind, found.version, common_settings(config).number(RESTART_WINDOW_MS))


async def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


async def _principal(request: Request) -> str:
    return f"rest {request.client.host}" if request.client else "rest"


Served = Annotated[Service, Depends(_service)]
"""The service, as a parameter of a route."""
Principal = Annotated[str, Depends(_principal)]
"""The principal of a request, for the log."""


async def carry_out(service: Service, command: Command, read: Callable[[Group], T]) -> T:
    """Have a known group carry out a command, and return what is read of it afterwards.

    Raises `ApiError` if the group is not known, refuses, or its log here does not yet hold what
    the command led to; `Unanswered`.
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
    """Raise `ApiError` unless the command was carried out."""
    if reply.error is not Error.NONE:
        status = _STATUS.get(reply.error, HTTPStatus.INTERNAL_SERVER_ERROR)
        raise ApiError(status, reply.message or f"the group answered {reply.error.value}")


def require_written(group: Group, reply: CommandReply) -> None:
    """Raise `ApiError` if the log does not yet hold here what the command led to."""
    if group.end < reply.log_offset:
        raise ApiError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"the command was carried out, but the log here ends at {group.end}, not yet at"
            f" {reply.log_offset}: read again what it was about",
        )


def require_group(service: Service, group_id: str) -> None:
    """Raise `ApiError` if no group of that id has a log of its own on this node."""
    if service.logs.has_own_logs(group_id):
        return
    with service.logs.shards.holding(group_id) as shard:
        if shard is not None:
            raise not_found(
                f"group {group_id} is one of Kafka's clients: it has no workers and no connectors,"
                " and Kafka's own tools change it (kafka-consumer-groups)"
            )
    raise not_found(f"there is no group {group_id}")
