"""Requests about a node, its workers, and the history of its groups."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, Unpack

from msgspec.json import Decoder

from ...planning.report import Plan
from ..replies.epochs import EpochExplanation
from ..replies.handovers import ResourceHistory
from ..replies.live.events import EventList
from ..replies.node import GroupWorkerOrder, WorkerList
from .frames import EpochHistory
from .notebook import NodeOverview
from .requests import NodeRequest, get

GROUP: Final = "connect"
"""The group of a node's workers, if its setting `group.id` names no other."""
LINES: Final = 50

OVERVIEW: Final = Decoder(NodeOverview)
WORKERS: Final = Decoder(WorkerList)
ORDER: Final = Decoder(GroupWorkerOrder)
HISTORY: Final = Decoder(EpochHistory)
EXPLANATION: Final = Decoder(EpochExplanation)
MOVES: Final = Decoder(ResourceHistory)
EVENTS: Final = Decoder(EventList)
PLAN: Final = Decoder(Plan)


class PlannedChanges(TypedDict, total=False):
    """Changes for a plan."""

    add_workers: int
    """How many workers join."""
    worker: Mapping[str, Any]
    """The `zone`, `tags` and `capacity` of each of these."""
    drain: Sequence[str]
    """Workers that give up their work, and stay."""
    remove_workers: Sequence[str]
    """Workers that leave."""
    delete: Sequence[str]
    """Connectors that are deleted."""
    connectors: Sequence[Mapping[str, Any]]
    """Connectors that are created or changed, each with `name` and `config`."""
    scale: Mapping[str, int]
    """Connectors with another number of tasks."""


def get_overview() -> NodeRequest[NodeOverview]:
    """Return the node, its groups, workers and connectors, and whether anything is wrong."""
    return get(OVERVIEW, "status")


def list_workers() -> NodeRequest[WorkerList]:
    """List the workers, with their processes and all that they have."""
    return get(WORKERS, "workers")


def drain(worker: str) -> NodeRequest[GroupWorkerOrder]:
    """Assign no more work to a worker, and revoke what it has."""
    return NodeRequest("PUT", ("workers", worker, "drain"), ORDER)


def cordon(worker: str) -> NodeRequest[GroupWorkerOrder]:
    """Assign no more work to a worker; it keeps what it has."""
    return NodeRequest("PUT", ("workers", worker, "cordon"), ORDER)


def uncordon(worker: str) -> NodeRequest[GroupWorkerOrder]:
    """Allow work for a worker again: ends a cordon or a drain."""
    return NodeRequest("PUT", ("workers", worker, "uncordon"), ORDER)


def get_history(limit: int = LINES, *, group: str = GROUP) -> NodeRequest[EpochHistory]:
    """List the last epochs: their causes, what they moved, and how long it took."""
    return get(HISTORY, "groups", group, "history", limit=str(limit))


def explain(
    epoch: int | Literal["latest"] = "latest", *, group: str = GROUP
) -> NodeRequest[EpochExplanation]:
    """Explain an epoch: its cause, its target, and each connector and task that moved."""
    return get(EXPLANATION, "groups", group, "explain", str(epoch))


def list_moves(
    resource: str, limit: int = LINES, *, group: str = GROUP
) -> NodeRequest[ResourceHistory]:
    """List how a connector or a task (`flights-0`) moved, and why."""
    return get(MOVES, "groups", group, "moves", resource, limit=str(limit))


def list_events(start: int = -1, *, group: str = GROUP) -> NodeRequest[EventList]:
    """List what happened from an offset of the group's log on; -1: lately."""
    return get(EVENTS, "groups", group, "events", start=str(start))


def plan(group: str = GROUP, **changes: Unpack[PlannedChanges]) -> NodeRequest[Plan]:
    """Return what would move, start, stop and stay if changes were made; nothing is changed."""
    return NodeRequest("POST", ("groups", group, "plan"), PLAN, {}, changes)
