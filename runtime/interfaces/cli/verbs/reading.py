"""The commands `status` and `describe`, which show the state of a cluster."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Generic, TypeVar

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict, replace

from ...replies.connectors import (
    ConfigKeyInfo,
    ConnectorInfo,
    ConnectorState,
    ConnectorStateInfo,
    PluginInfo,
)
from ...replies.groups import GroupDescription, GroupSummary
from ...replies.node import Health, ServerInfo, WorkerDescription, WorkerList
from ...replies.progress import ConnectorProgressInfo
from ..command import client_tables
from ..command import connector_tables as connectors
from ..command import group_tables as groups
from ..command.client import Client, Refused, client_of
from ..command.connector_tables import ConnectorInFull, Expanded, PluginInFull, TaskLine, list_tasks
from ..command.options import ReadThere, of_kind, takes
from ..command.printing import FactList, Section, Table, show
from ..requests.names import NameOfKind, OfGroup
from ..requests.several import pick
from .listing import fetch_all_plugins, fetch_connectors, names_of_plugin, names_of_worker

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


class Described(StrEnum):
    """The types that `describe` shows."""

    CONNECTOR = "connector"
    WORKER = "worker"
    GROUP = "group"
    PLUGIN = "plugin"


@takes(ReadThere)
def describe(
    place: ReadThere,
    what: Annotated[Described, of_kind(Described)],
    name: NameOfKind,
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
    expanded = fetch_connectors(client)
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
    """Sends the request."""
    sections: Callable[[T], Sequence[Section]]

    def show(self, place: ReadThere, name: str) -> None:
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


def _connector(client: Client, name: str) -> ConnectorInFull:
    info = client.get(ConnectorInfo, "connectors", name)
    status = client.get(ConnectorStateInfo, "connectors", name, "status")
    progress = client.get(ConnectorProgressInfo, "connectors", name, "progress")
    return ConnectorInFull(**asdict(info), status=status, progress=progress)


def _worker(client: Client, name: str) -> WorkerDescription:
    reply = client.get(WorkerList, "workers").workers
    return pick("worker", [name], reply, names_of_worker)[0]


def _plugin(client: Client, name: str) -> PluginInFull:
    connectors_only = client.get(list[PluginInfo], "connector-plugins")
    named = [each for each in connectors_only if name in names_of_plugin(each)]
    plugin = (named or fetch_all_plugins(client, [name]))[0]
    keys = client.get(list[ConfigKeyInfo], "connector-plugins", plugin.class_name, "config")
    return PluginInFull(**asdict(plugin), configs=keys)


DESCRIPTIONS: Final[Mapping[Described, View[Any]]] = {
    Described.CONNECTOR: View(_connector, connectors.connector),
    Described.WORKER: View(_worker, groups.worker),
    Described.GROUP: View(
        lambda client, name: client.get(GroupDescription, "groups", name), groups.group
    ),
    Described.PLUGIN: View(_plugin, connectors.plugin),
}
