"""Requests about a node itself: its health, settings, metrics, loggers and log files."""

from collections.abc import AsyncGenerator, Sequence
from http import HTTPStatus
from typing import Final, Literal, TypeVar

from msgspec.json import Decoder

from ...replies.node import (
    CallerDescription,
    Health,
    Liveness,
    LoggedEntry,
    LoggerLevel,
    LogPage,
    NodeList,
    Readiness,
    ServerInfo,
    SettingList,
)
from ..sending.errors import ClientError, is_away
from ..sending.exchange import RETRY_SECONDS, NodeExchange
from ..sending.requests import NodeRequest, TextDecoder, get
from .connectors import NAMES
from .notebook import NodeOverview

T = TypeVar("T")
LevelWord = Literal["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"]
SettableLevelWord = LevelWord | Literal["OFF"]
WAIT_MS: Final = 30_000
"""How long a request waits for new entries of the log files."""

SERVER: Final = Decoder(ServerInfo)
OVERVIEW: Final = Decoder(NodeOverview)
HEALTH: Final = Decoder(Health)
LIVENESS: Final = Decoder(Liveness)
READINESS: Final = Decoder(Readiness)
SETTINGS: Final = Decoder(SettingList)
NODES: Final = Decoder(NodeList)
CALLER: Final = Decoder(CallerDescription)
LOGGERS: Final = Decoder(dict[str, LoggerLevel])
LOGGER: Final = Decoder(LoggerLevel)
LOGS: Final = Decoder(LogPage)
METRICS: Final = TextDecoder()
_UNAVAILABLE: Final = (HTTPStatus.SERVICE_UNAVAILABLE,)


def get_server() -> NodeRequest[ServerInfo]:
    """Return the versions of fairlead and of Connect's API, and the id of the cluster."""
    return get(SERVER, "")


def get_overview() -> NodeRequest[NodeOverview]:
    """Return the node, its groups, workers and connectors, and whether anything is wrong."""
    return get(OVERVIEW, "status")


def get_health() -> NodeRequest[Health]:
    """Return whether the node accepts commands, also if it does not."""
    return NodeRequest("GET", ("health",), HEALTH, also=_UNAVAILABLE)


def get_liveness() -> NodeRequest[Liveness]:
    """Return that the REST process answers, to anybody."""
    return get(LIVENESS, "health", "live")


def get_readiness() -> NodeRequest[Readiness]:
    """Return whether the node can run work, and what is missing if not, to anybody."""
    return NodeRequest("GET", ("health", "ready"), READINESS, also=_UNAVAILABLE)


def list_nodes() -> NodeRequest[NodeList]:
    """List the nodes that the group knows: which one owns it, and how far the asked one is."""
    return get(NODES, "nodes")


def list_settings() -> NodeRequest[SettingList]:
    """List the settings of the node and of its group, with their sources; no secrets."""
    return get(SETTINGS, "settings")


def describe_caller(connector: str = "") -> NodeRequest[CallerDescription]:
    """Return who this client is taken for, and its rights: all, and those to a connector."""
    return get(CALLER, "whoami", connector=connector or None)


def get_metrics() -> NodeRequest[str]:
    """Return the metrics as a text for Prometheus."""
    return get(METRICS, "metrics")


def list_loggers() -> NodeRequest[dict[str, LoggerLevel]]:
    """List the loggers that are not OFF, with their levels."""
    return get(LOGGERS, "admin", "loggers")


def get_logger(logger: str) -> NodeRequest[LoggerLevel]:
    """Return the level of a logger."""
    return get(LOGGER, "admin", "loggers", logger)


def set_log_level(
    logger: str, level: SettableLevelWord, *, keep: bool = False
) -> NodeRequest[list[str]]:
    """Set the level of a logger and of all below it, in all processes of the node.

    It counts until the node ends; with `keep` also after that. The answer names what has changed.
    """
    path = ("admin", "loggers", logger)
    return NodeRequest("PUT", path, NAMES, {"keep": keep}, {"level": level})


def read_logs(
    about: Sequence[str] = (),
    *,
    level: LevelWord | None = None,
    tail: int = 1_000,
    since_ms: int | None = None,
    after: str = "",
    wait_ms: int = 0,
) -> NodeRequest[LogPage]:
    """Read the log files of the node's processes, in the order of their times.

    `about` are connectors, tasks or workers. At most `tail` entries of that level or graver ones,
    and not older than `since_ms`; with `after`, the `next` of an earlier answer, only newer ones,
    for which it waits.
    """
    query = {"about": about, "level": level, "tail": tail, "since_ms": since_ms}
    return NodeRequest(
        "GET", ("logs",), LOGS, {**query, "after": after or None, "wait_ms": wait_ms}
    )


async def follow_logs(
    node: NodeExchange, about: Sequence[str] = (), *, level: LevelWord | None = None, tail: int = 10
) -> AsyncGenerator[LoggedEntry]:
    """Return an iterator of the last entries of the log files, and of all new ones.

    It goes on while the node is away, until it is closed; raises `ClientError`.
    """
    return _entries(node, about, level, await node.send(read_logs(about, level=level, tail=tail)))


async def _entries(
    node: NodeExchange, about: Sequence[str], level: LevelWord | None, page: LogPage
) -> AsyncGenerator[LoggedEntry]:
    while True:
        for each in page.entries:
            yield each
        later = read_logs(about, level=level, after=page.next, wait_ms=WAIT_MS)
        page = await _send_until_answered(node, later)


async def _send_until_answered(node: NodeExchange, request: NodeRequest[T]) -> T:
    """Return the answer of a request that changes nothing; raises `ClientError` for a refusal."""
    while True:
        try:
            return await node.send(request)
        except ClientError as error:
            if not is_away(error):
                raise
        await node.pause(RETRY_SECONDS)
