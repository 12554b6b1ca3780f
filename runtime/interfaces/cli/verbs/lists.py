"""The lists of objects of each kind: how they are asked for, by name or all, and laid out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

from msgspec import structs

from ...replies.connectors import ExpandedConnector
from ...replies.groups import GroupDescription, GroupPlacement, GroupSummary
from ...replies.node import AssignorList, LoggerLevel, NodeList, WorkerDescription, WorkerList
from ...replies.progress import ConnectorOffsets
from ..output.layout import TableLayout
from ..output.phrases import format_time
from ..output.printing import Section
from ..requests.client import Client
from ..requests.grammar import (
    Kind,
    parse_task,
)
from ..requests.plugins import fetch_plugins, tabulate_plugins
from ..requests.several import pick
from ..tables.connectors import Expanded, TaskLine, list_tasks, tabulate_connectors, tabulate_tasks
from ..tables.groups import label_worker, tabulate_assignors, tabulate_groups, tabulate_workers
from ..tables.nodes import tabulate_nodes
from .connectors.offsets import OffsetsOfNamed, fetch_offsets, format_document, tabulate_offsets

T = TypeVar("T")
WATCH_SECONDS: Final = 1.0


LISTED: Final = (
    Kind.CONNECTOR,
    Kind.TASK,
    Kind.WORKER,
    Kind.GROUP,
    Kind.PLUGIN,
    Kind.ASSIGNOR,
    Kind.OFFSET,
    Kind.PLACEMENT,
    Kind.LOGGER,
    Kind.NODE,
)
"""The kinds that `get` lists."""


@dataclass(frozen=True, slots=True)
class ListView(Generic[T]):
    """How a kind is asked for and shown."""

    fetch: Callable[[Client, Sequence[str]], T]
    """Returns the objects with these names, all of them if there is no name."""
    sections: Callable[[T], Sequence[Section]]
    names: Callable[[T], Sequence[str]] | None = None
    """Returns the names of the objects; None: they are the first cells of the first table."""
    member: str = ""
    """The member of the answer that is the list; "": the answer itself is."""

    def list_rows(self, data: Any) -> list[Any]:  # noqa: ANN401  # plain data
        """Return the objects of an answer that is plain data, in the order of the table."""
        inside = data[self.member] if self.member else data
        if isinstance(inside, list):
            return [*cast("Sequence[Any]", inside)]
        if any(not isinstance(each, dict) for each in inside.values()):
            return [inside]
        return [*inside.values()]


def fetch_connectors(client: Client, names: Sequence[str] = ()) -> Expanded:
    """Return connectors with their status, config and progress."""
    kind = dict[str, ExpandedConnector]
    found = client.get(kind, "connectors", expand=("status", "info", "progress"))
    there = sorted(found)
    return {name: found[name] for name in pick("connector", names, there, lambda name: [name])}


def fetch_tasks(client: Client, names: Sequence[str] = ()) -> list[TaskLine]:
    """Return tasks: of all connectors, of those with these names, and those with these names."""
    there = list_tasks(fetch_connectors(client))
    connectors = dict.fromkeys(each.connector for each in there)
    names = [str(parse_task(each) or each) if each not in connectors else each for each in names]
    if alone := [each for each in names if parse_task(each) is None and each not in connectors]:
        fetch_connectors(client, alone)  # one without tasks, or none at all
    names = [each for each in names if each not in alone]
    if not names and alone:
        return []
    return pick("task", names, there, lambda it: (it.id, it.connector))


def list_worker_names(worker: WorkerDescription) -> Sequence[str]:
    """Return the name of a worker, and its ids."""
    member_id = worker.member.member_id if worker.member else ""
    return label_worker(worker), worker.worker_id, member_id


def _workers(client: Client, names: Sequence[str]) -> WorkerList:
    every = client.get(WorkerList, "workers")
    picked = pick("worker", names, every.workers, list_worker_names)
    return structs.replace(every, workers=picked)


def fetch_nodes(client: Client, names: Sequence[str] = ()) -> NodeList:
    """Return the nodes that the group knows."""
    every = client.get(NodeList, "nodes")
    picked = pick("node", names, every.nodes, lambda it: [it.name])
    return structs.replace(every, nodes=picked)


def _groups(client: Client, names: Sequence[str]) -> list[GroupSummary]:
    return pick("group", names, client.get(list[GroupSummary], "groups"), lambda it: [it.group_id])


def _assignors(client: Client, names: Sequence[str]) -> AssignorList:
    every = client.get(AssignorList, "assignors")
    picked = pick("assignor", names, every.assignors, lambda it: [it.name])
    return structs.replace(every, assignors=picked)


def _offsets(client: Client, names: Sequence[str]) -> OffsetsOfNamed:
    """Return the offsets of connectors; those of all of them by name, even if there is one."""
    if names:
        return fetch_offsets(client, names)
    found = sorted(client.get(list[str], "connectors"))
    told = fetch_offsets(client, found)
    return {found[0]: told} if isinstance(told, ConnectorOffsets) else told


def _partitions(offsets: OffsetsOfNamed) -> Sequence[str]:
    alone = [offsets] if isinstance(offsets, ConnectorOffsets) else offsets.values()
    return [format_document(each.partition) for found in alone for each in found.offsets]


def _placements(client: Client, names: Sequence[str]) -> list[GroupPlacement]:
    """Return the placements that operators have ordered in all groups of workers."""
    groups_of_workers = [each for each in _groups(client, ()) if each.shard is None]
    placements = [
        GroupPlacement(described.group_id, *structs.astuple(order))
        for each in groups_of_workers
        for described in [client.get(GroupDescription, "groups", each.group_id)]
        for order in described.placements
    ]
    return pick("placement", names, placements, lambda it: [it.id])


class NamedLogger(NamedTuple):
    """A logger with its name."""

    name: str
    state: LoggerLevel


def _loggers(client: Client, names: Sequence[str]) -> dict[str, LoggerLevel]:
    found = client.get(dict[str, LoggerLevel], "admin", "loggers")
    return {name: found[name] for name in pick("logger", names, [*found], lambda name: [name])}


PLACEMENTS: Final = TableLayout(
    GroupPlacement,
    "GROUP: group_id, RESOURCE: id, WEIGHT: weight, WORKERS: pins",
    empty="no placements: configs alone decide",
)
LOGGERS: Final = TableLayout(
    NamedLogger,
    "LOGGER: name, LEVEL: state.level, SET AT: state.last_modified",
    {"SET AT": format_time},
    empty="no loggers",
)
LISTS: Final[Mapping[Kind, ListView[Any]]] = {
    Kind.CONNECTOR: ListView(fetch_connectors, tabulate_connectors),
    Kind.TASK: ListView(fetch_tasks, tabulate_tasks),
    Kind.WORKER: ListView(_workers, tabulate_workers, member="workers"),
    Kind.GROUP: ListView(_groups, tabulate_groups, lambda groups: [it.group_id for it in groups]),
    Kind.PLUGIN: ListView(fetch_plugins, tabulate_plugins),
    Kind.ASSIGNOR: ListView(_assignors, tabulate_assignors, member="assignors"),
    Kind.OFFSET: ListView(_offsets, tabulate_offsets, _partitions),
    Kind.PLACEMENT: ListView(
        _placements,
        lambda orders: [PLACEMENTS.lay_out(orders)],
        lambda orders: [it.id for it in orders],
    ),
    Kind.LOGGER: ListView(
        _loggers, lambda loggers: [LOGGERS.lay_out(starmap(NamedLogger, loggers.items()))]
    ),
    Kind.NODE: ListView(fetch_nodes, tabulate_nodes, member="nodes"),
}
