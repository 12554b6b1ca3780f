"""The commands `status`, `get` and `describe`, which show the state of a cluster."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Generic, TypeVar

import typer
from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict, replace

from ...replies.connectors import (
    ConfigKeyInfo,
    ConnectorInfo,
    ConnectorState,
    ConnectorStateInfo,
    ExpandedConnector,
    PluginInfo,
)
from ...replies.groups import GroupDescription, GroupSummary
from ...replies.node import AssignorList, Health, ServerInfo, WorkerDescription, WorkerList
from ...replies.progress import ConnectorProgressInfo
from ..command import client_tables
from ..command import connector_tables as connectors
from ..command import group_tables as groups
from ..command.client import Client, Refused, client_of
from ..command.connector_tables import ConnectorInFull, Expanded, PluginInFull, TaskLine, list_tasks
from ..command.options import OfGroup, ReadThere, of_kind, takes
from ..command.printing import FactList, Failed, Section, Table, show

T = TypeVar("T")

RESTING: Final = frozenset({"PAUSED", "STOPPED"})
"""States that a user has requested: they are no problem."""

BACKING_OFF: Final = "backing-off"


class ClusterStatus(Struct, frozen=True):
    """The summary of a cluster."""

    url: str
    version: str
    cluster_id: str
    health: Health
    groups: list[GroupSummary]
    workers: WorkerList
    connectors: Expanded
    tasks: list[TaskLine]


class Listed(StrEnum):
    """The types that `get` lists."""

    CONNECTORS = "connectors"
    TASKS = "tasks"
    WORKERS = "workers"
    GROUPS = "groups"
    PLUGINS = "plugins"
    ASSIGNORS = "assignors"


class Described(StrEnum):
    """The types that `describe` shows."""

    CONNECTOR = "connector"
    WORKER = "worker"
    GROUP = "group"
    PLUGIN = "plugin"


def _choice(kinds: type[StrEnum]) -> str:
    *others, last = [each.value for each in kinds]
    return f"{', '.join(others)} or {last}."


@takes(ReadThere)
def get(
    place: ReadThere,
    what: Annotated[Listed, of_kind(Listed, _choice(Listed))],
) -> None:
    """List all connectors, tasks, workers, groups, plugins or assignors."""
    LISTS[what].show(place)


@takes(ReadThere)
def describe(
    place: ReadThere,
    what: Annotated[Described, of_kind(Described, _choice(Described))],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.", show_default=False)],
) -> None:
    """Show one connector, worker, group or plugin in full."""
    DESCRIPTIONS[what].show(place, name)


@takes(ReadThere)
def status(place: ReadThere, group: OfGroup = None) -> None:
    """Show the health, groups, workers, connectors and tasks of the cluster; or one group.

    Groups of Kafka's clients are only counted here: `get groups` lists them.
    """
    if group is not None:
        DESCRIPTIONS[Described.GROUP].show(place, group)
        return
    client = client_of(place)
    root = client.get(ServerInfo)
    expanded = _connectors(client)
    reply = ClusterStatus(
        client.base,
        root.version,
        root.kafka_cluster_id,
        _health(client),
        client.get(list[GroupSummary], "groups"),
        client.get(WorkerList, "workers"),
        expanded,
        list_tasks(expanded),
    )
    reply = replace(reply, health=_condition(reply))
    show(place.output, reply, status_tables(reply))


@dataclass(frozen=True, slots=True)
class View(Generic[T]):
    """A request to a cluster, and the tables of its response."""

    fetch: Callable[[Client, str], T]
    """Sends the request; the name is "" for a list."""
    sections: Callable[[T], Sequence[Section]]

    def show(self, place: ReadThere, name: str = "") -> None:
        """Send the request, and print the response."""
        reply = self.fetch(client_of(place), name)
        show(place.output, reply, self.sections(reply))


def status_tables(reply: ClusterStatus) -> list[Section]:
    """Return the sections of a cluster's summary."""
    states = Counter(each.state for each in reply.tasks)
    facts = (
        ("Cluster", reply.url),
        ("Version", reply.version),
        ("Health", reply.health.status),
        ("Detail", reply.health.message),
        *groups.engine(reply.workers.engine),
        ("Tasks", ", ".join(f"{count} {state}" for state, count in sorted(states.items()))),
    )
    return [
        FactList(facts),
        *groups.groups([each for each in reply.groups if each.shard is None]),
        *client_tables.counts(reply.groups),
        *groups.workers(reply.workers),
        *_troubles(reply),
        *connectors.connectors(reply.connectors),
        *connectors.tasks(reply.tasks),
        *connectors.config_warnings(reply.connectors),
    ]


def _health(client: Client) -> Health:
    try:
        return client.get(Health, "health")
    except Refused as unwell:  # it says so with an error's status
        try:
            word = convert(unwell.body, Health).status
        except ValidationError:
            word = "unhealthy"
        return Health(status=word, message=str(unwell))


def _condition(reply: ClusterStatus) -> Health:
    """Return the health of the cluster; `degraded` if anything failed, waits or has a warning."""
    states: list[ConnectorState | TaskLine] = [
        *(each.status.connector for each in reply.connectors.values() if each.status),
        *reply.tasks,
    ]
    troubles = Counter(trouble for each in states if (trouble := _trouble(each)))
    processes = (each.process for each in reply.workers.workers)
    if down := sum(each.state == BACKING_OFF for each in processes if each):
        troubles["worker processes down"] = down
    if (engine := reply.workers.engine) is not None and engine.state == BACKING_OFF:
        troubles["shared JVM down"] = 1
    health = reply.health
    if not troubles or health.status != "healthy":
        return health
    counts = ", ".join(f"{count} {what}" for what, count in sorted(troubles.items()))
    message = f"{health.message}; of its connectors, tasks and workers: {counts}"
    return Health(status="degraded", message=message)


def _trouble(each: ConnectorState | TaskLine) -> str:
    """Return the problem of a connector or a task; "" if it runs."""
    if each.state == "RUNNING":
        return "RUNNING with a remark" if each.reason else ""
    return "" if each.state in RESTING else each.state


def _troubles(reply: ClusterStatus) -> list[Section]:
    """Return the problems of groups and workers; nothing if there are none."""
    engine = reply.workers.engine
    rows = [
        *((f"group {each.group_id}", each.assignor_error) for each in reply.groups),
        *([("shared JVM", engine.detail)] if engine else []),
        *(
            (f"worker {each.name}", each.process.detail)
            for each in reply.workers.workers
            if each.process
        ),
    ]
    rows = [each for each in rows if each[1]]
    return [Table(("TROUBLE", "REASON"), rows, title="Troubles")] if rows else []


def _connectors(client: Client) -> Expanded:
    kind = dict[str, ExpandedConnector]
    return client.get(kind, "connectors", expand=("status", "info", "progress"))


def _connector(client: Client, name: str) -> ConnectorInFull:
    info = client.get(ConnectorInfo, "connectors", name)
    status = client.get(ConnectorStateInfo, "connectors", name, "status")
    progress = client.get(ConnectorProgressInfo, "connectors", name, "progress")
    return ConnectorInFull(**asdict(info), status=status, progress=progress)


def _worker(client: Client, name: str) -> WorkerDescription:
    reply = client.get(WorkerList, "workers").workers
    return _one_of("worker", name, ((_names_of_worker(each), each) for each in reply))


def _plugin(client: Client, name: str) -> PluginInFull:
    reply = client.get(list[PluginInfo], "connector-plugins")
    named = ((_names_of_plugin(each), each) for each in reply)
    plugin = _one_of("plugin", name, named)
    keys = client.get(list[ConfigKeyInfo], "connector-plugins", plugin.class_name, "config")
    return PluginInFull(**asdict(plugin), configs=keys)


def _one_of(kind: str, name: str, named: Iterable[tuple[Sequence[str], T]]) -> T:
    """Return the only object with this name, of several per object; raises `Failed`."""
    known: list[str] = []
    for names, reply in named:
        if name in names:
            return reply
        known.append(names[0])
    raise Failed(f"there is no {kind} {name}; there is: {', '.join(known) or 'none'}")


def _names_of_worker(reply: WorkerDescription) -> Sequence[str]:
    member_id = reply.member.member_id if reply.member else ""
    return groups.worker_label(reply), reply.worker_id, member_id


def _names_of_plugin(reply: PluginInfo) -> Sequence[str]:
    return reply.class_name.rpartition(".")[2], reply.class_name


LISTS: Final[Mapping[Listed, View[Any]]] = {
    Listed.CONNECTORS: View(lambda client, _: _connectors(client), connectors.connectors),
    Listed.TASKS: View(lambda client, _: list_tasks(_connectors(client)), connectors.tasks),
    Listed.WORKERS: View(lambda client, _: client.get(WorkerList, "workers"), groups.workers),
    Listed.GROUPS: View(lambda client, _: client.get(list[GroupSummary], "groups"), groups.groups),
    Listed.PLUGINS: View(
        lambda client, _: client.get(list[PluginInfo], "connector-plugins"), connectors.plugins
    ),
    Listed.ASSIGNORS: View(
        lambda client, _: client.get(AssignorList, "assignors"), groups.assignors
    ),
}
DESCRIPTIONS: Final[Mapping[Described, View[Any]]] = {
    Described.CONNECTOR: View(_connector, connectors.connector),
    Described.WORKER: View(_worker, groups.worker),
    Described.GROUP: View(
        lambda client, name: client.get(GroupDescription, "groups", name), groups.group
    ),
    Described.PLUGIN: View(_plugin, connectors.plugin),
}
