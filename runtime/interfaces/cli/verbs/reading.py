"""The commands `status` and `describe`, which show the state of a cluster."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from ...replies.connectors import (
    ConnectorInfo,
    ConnectorStateInfo,
    TaskInfo,
)
from ...replies.folder import FolderReport
from ...replies.groups import GroupDescription, GroupSummary
from ...replies.node import Health, NodeList, WorkerDescription, WorkerList
from ...replies.overview import NodeStatus
from ...replies.progress import ConnectorProgressInfo
from ..adapters.parameters import Option
from ..output.printing import FactList, Misused, Section, Table, show
from ..requests.client import Client, find_client
from ..requests.grammar import Kind, NamedObjects, TaskName
from ..requests.names import OfGroup, name_argument
from ..requests.options import RemoteReadOptions, with_options
from ..requests.plugins import KeySearch, fetch_plugin, filter_keys, tabulate_plugin
from ..requests.resolving import choose_connectors, resolve_tasks, split_choice
from ..requests.selecting import Choice
from ..requests.several import pick
from ..tables.client_groups import count_client_groups
from ..tables.connectors import (
    ConnectorInFull,
    Expanded,
    TaskInFull,
    TaskLine,
    list_tasks,
    tabulate_config_warnings,
    tabulate_connector,
    tabulate_connectors,
    tabulate_folder,
    tabulate_task,
    tabulate_tasks,
)
from ..tables.groups import (
    summarize_engine,
    tabulate_group,
    tabulate_groups,
    tabulate_worker,
    tabulate_workers,
)
from ..tables.nodes import summarize_owner, tabulate_node
from .lists import fetch_nodes, fetch_tasks, list_worker_names

T = TypeVar("T")


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
    folder: FolderReport | None = None
    nodes: NodeList | None = None


DESCRIBED: Final = (
    Kind.CONNECTOR,
    Kind.TASK,
    Kind.WORKER,
    Kind.GROUP,
    Kind.PLUGIN,
    Kind.NODE,
)
"""The kinds that `describe` shows."""


@with_options(RemoteReadOptions)
@with_options(Choice)
@with_options(KeySearch)
def describe(
    search: KeySearch,
    choice: Choice,
    options: RemoteReadOptions,
    words: Annotated[list[str] | None, name_argument(DESCRIBED, may_be_all=True)] = None,
    *,
    tasks_config: Annotated[
        bool, Option("--tasks-config", help="Of connectors: also the configs of their tasks.")
    ] = False,
) -> None:
    """Show connectors, tasks, workers, groups, plugins, nodes, or types of sources and sinks."""
    named = split_choice("describe", words, DESCRIBED, choice)
    kind = named.kind
    if search.is_any and kind is not Kind.PLUGIN:
        raise Misused("--search, --search-name and --search-description are of plugins")
    if kind is not Kind.CONNECTOR and tasks_config:
        raise Misused("--tasks-config is of connectors")
    client = find_client(options)
    found = _choose(client, named, choice)
    views = {each: DESCRIPTIONS[_kind_of(each, kind)] for each in found}
    replies = [view.fetch(client, str(each)) for each, view in views.items()]
    if kind is Kind.PLUGIN:
        replies = [filter_keys(each, search) for each in replies]
    if tasks_config:
        replies = [
            _with_task_configs(client, each) if isinstance(each, ConnectorInFull) else each
            for each in replies
        ]
    shown = zip(views.values(), replies, strict=True)
    sections = [section for view, reply in shown for section in view.sections(reply)]
    show(options.output, replies[0] if len(replies) == 1 else replies, sections)


def _choose(client: Client, named: NamedObjects, choice: Choice) -> Sequence[str | TaskName]:
    """Return the names that are meant, and tasks that are called without their kind."""
    if named.kind is not Kind.CONNECTOR:
        return named.names
    if choice != Choice():
        return choose_connectors(client, named.names, choice)
    return named.names if named.is_told else resolve_tasks(client, named)


def _kind_of(name: str | TaskName, kind: Kind) -> Kind:
    return Kind.TASK if isinstance(name, TaskName) else kind


@with_options(RemoteReadOptions)
def status(options: RemoteReadOptions, group: OfGroup = None) -> None:
    """Show the health, groups, workers, connectors and tasks of the cluster; or one group.

    Groups of Kafka's clients are only counted here: `get groups` lists them.
    """
    if group is not None:
        view = DESCRIPTIONS[Kind.GROUP]
        described = view.fetch(find_client(options), group)
        show(options.output, described, view.sections(described))
        return
    client = find_client(options)
    node = client.get(NodeStatus, "status")
    cluster = ClusterStatus(
        client.base,
        node.server.fairlead_version,
        node.server.kafka_cluster_id,
        Health(
            status=node.verdict.status,
            error_code=node.health.error_code,
            message=node.verdict.message,
        ),
        node.groups,
        node.workers,
        node.connectors,
        list_tasks(node.connectors),
        node.folder,
        node.nodes,
    )
    show(options.output, cluster, tabulate_status(cluster))


@dataclass(frozen=True, slots=True)
class View(Generic[T]):
    """A request to a cluster, and the tables of its response."""

    fetch: Callable[[Client, str], T]
    """Sends the request."""
    sections: Callable[[T], Sequence[Section]]


def tabulate_status(cluster: ClusterStatus) -> list[Section]:
    """Return the sections of a cluster's summary."""
    states = Counter(each.state for each in cluster.tasks)
    facts = (
        ("Cluster", cluster.url),
        ("Version", cluster.version),
        ("Health", cluster.health.status),
        ("Detail", cluster.health.message),
        *summarize_engine(cluster.workers.engine),
        *((("Owner", summarize_owner(cluster.nodes)),) if cluster.nodes else ()),
        ("Tasks", ", ".join(f"{count} {state}" for state, count in sorted(states.items()))),
        ("Files", cluster.folder.summary if cluster.folder else ""),
    )
    return [
        FactList(facts),
        *tabulate_groups([each for each in cluster.groups if each.shard is None]),
        *count_client_groups(cluster.groups),
        *tabulate_workers(cluster.workers),
        *_troubles(cluster),
        *(tabulate_folder(cluster.folder) if cluster.folder else ()),
        *tabulate_connectors(cluster.connectors),
        *tabulate_tasks(cluster.tasks),
        *tabulate_config_warnings(cluster.connectors),
    ]


def _troubles(cluster: ClusterStatus) -> list[Section]:
    """Return the problems of groups and workers; nothing if there are none."""
    engine = cluster.workers.engine
    rows = [
        *((f"group {each.group_id}", each.assignor_error) for each in cluster.groups),
        *([("shared JVM", engine.detail)] if engine else []),
        *(
            (f"worker {each.name}", each.process.detail)
            for each in cluster.workers.workers
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


def _with_task_configs(client: Client, described: ConnectorInFull) -> ConnectorInFull:
    """Return a connector with the configs of its tasks."""
    found = client.get(list[TaskInfo], "connectors", described.name, "tasks")
    configs = {f"{described.name}-{each.id.task}": each.config for each in found}
    return replace(described, tasks_config=configs)


def _task(client: Client, name: str) -> TaskInFull:
    (task,) = resolve_tasks(client, NamedObjects(Kind.TASK, [name], is_told=True))
    (line,) = fetch_tasks(client, [str(task)])
    found = client.get(list[TaskInfo], "connectors", line.connector, "tasks")
    configs = {each.id.task: each.config for each in found}
    return TaskInFull(**asdict(line), config=configs.get(line.task, {}))


def _worker(client: Client, name: str) -> WorkerDescription:
    workers = client.get(WorkerList, "workers").workers
    return pick("worker", [name], workers, list_worker_names)[0]


DESCRIPTIONS: Final[Mapping[Kind, View[Any]]] = {
    Kind.CONNECTOR: View(_connector, tabulate_connector),
    Kind.WORKER: View(_worker, tabulate_worker),
    Kind.GROUP: View(
        lambda client, name: client.get(GroupDescription, "groups", name), tabulate_group
    ),
    Kind.TASK: View(_task, tabulate_task),
    Kind.PLUGIN: View(fetch_plugin, tabulate_plugin),
    Kind.NODE: View(lambda client, name: fetch_nodes(client, [name]).nodes[0], tabulate_node),
}
