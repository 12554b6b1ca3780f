"""`status`, `get` and `describe`: what a cluster says of itself."""

from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

import typer

from ..command.client import Client, Refused, client_of
from ..command.documents import Document, document, documents, inner, listed, text
from ..command.exit_codes import Failed
from ..command.options import ReadThere, takes
from ..command.printing import Section, show
from ..tables import cluster, members

RESTING: Final = frozenset({"PAUSED", "STOPPED"})
"""States that somebody asked for."""

BACKING_OFF: Final = "backing-off"


class Listed(StrEnum):
    """What `get` can list."""

    CONNECTORS = "connectors"
    TASKS = "tasks"
    WORKERS = "workers"
    GROUPS = "groups"
    PLUGINS = "plugins"
    ASSIGNORS = "assignors"


class Described(StrEnum):
    """What `describe` can show one of."""

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
    what: Annotated[
        Listed, typer.Argument(metavar="KIND", help=_choice(Listed), show_default=False)
    ],
) -> None:
    """List what there is of a kind."""
    found = FETCH[what](client_of(place))
    show(place.output, found, TABLES[what](found))


@takes(ReadThere)
def describe(
    place: ReadThere,
    what: Annotated[
        Described, typer.Argument(metavar="KIND", help=_choice(Described), show_default=False)
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.", show_default=False)],
) -> None:
    """Show one connector, worker, group or plugin in full."""
    view = DESCRIPTIONS[what]
    found = view.fetch(client_of(place), name)
    show(place.output, found, view.sections(found))


@takes(ReadThere)
def status(place: ReadThere) -> None:
    """Show the cluster at a glance: its health, groups, workers and connectors."""
    client = client_of(place)
    root = document(client.get())
    expanded = _connectors(client)
    found: Document = {
        "url": client.base,
        "version": text(root, "version"),
        "cluster_id": text(root, "kafka_cluster_id"),
        "health": _health(client),
        "groups": client.get("groups"),
        "workers": client.get("workers"),
        "connectors": expanded,
        "tasks": cluster.task_list(expanded),
    }
    found = {**found, "health": _condition(found)}
    show(place.output, found, cluster.status(found))


def _health(client: Client) -> object:
    try:
        return client.get("health")
    except Refused as unwell:  # it says so with an error's status
        return {"status": text(unwell.found, "status") or "unhealthy", "message": str(unwell)}


def _condition(found: Document) -> Document:
    """Return the health of the cluster, degraded while anything failed, waits or has a remark."""
    health = document(found["health"])
    runs: list[object] = [
        *(inner(each, "status", "connector") for each in document(found["connectors"]).values()),
        *documents(found["tasks"]),
    ]
    troubles = Counter(trouble for each in runs if (trouble := _trouble(each)))
    processes = listed(inner(found, "workers"), "workers")
    down = sum(text(each, "process", "state") == BACKING_OFF for each in processes)
    if down:
        troubles["worker processes down"] = down
    if not troubles or text(health, "status") != "healthy":
        return health
    told = ", ".join(f"{count} {what}" for what, count in sorted(troubles.items()))
    message = f"{text(health, 'message')}; of its connectors, tasks and workers: {told}"
    return {**health, "status": "degraded", "message": message}


def _trouble(status: object) -> str:
    """Return in what way a connector or a task does not simply run; nothing if it does."""
    state = text(status, "state")
    if state == "RUNNING":
        return "RUNNING with a remark" if text(status, "reason") else ""
    return "" if state in RESTING else state


def _connectors(client: Client) -> object:
    return client.get("connectors", expand=("status", "info", "progress"))


def _connector(client: Client, name: str) -> object:
    info = document(client.get("connectors", name))
    status, progress = (client.get("connectors", name, each) for each in ("status", "progress"))
    return {**info, "status": status, "progress": progress}


def _group(client: Client, name: str) -> object:
    return client.get("groups", name)


def _worker(client: Client, name: str) -> object:
    found = listed(client.get("workers"), "workers")
    return _one_of("worker", name, found, _names_of_worker)


def _plugin(client: Client, name: str) -> object:
    found = documents(client.get("connector-plugins"))
    one = _one_of("plugin", name, found, _names_of_plugin)
    return {**one, "configs": client.get("connector-plugins", text(one, "class"), "config")}


def _one_of(
    kind: str, name: str, found: list[Document], names_of: Callable[[Document], tuple[str, ...]]
) -> Document:
    for each in found:
        if name in names_of(each):
            return each
    known = ", ".join(names_of(each)[0] for each in found) or "none"
    raise Failed(f"there is no {kind} {name}; there is: {known}")


def _names_of_worker(found: Document) -> tuple[str, ...]:
    member_id = text(found, "member", "member_id")
    return members.worker_label(found), text(found, "worker_id"), member_id


def _names_of_plugin(found: Document) -> tuple[str, ...]:
    full = text(found, "class")
    return full.rpartition(".")[2], full


FETCH: dict[Listed, Callable[[Client], object]] = {
    Listed.CONNECTORS: _connectors,
    Listed.TASKS: lambda client: cluster.task_list(_connectors(client)),
    Listed.WORKERS: lambda client: client.get("workers"),
    Listed.GROUPS: lambda client: client.get("groups"),
    Listed.PLUGINS: lambda client: client.get("connector-plugins"),
    Listed.ASSIGNORS: lambda client: client.get("assignors"),
}
TABLES: dict[Listed, Callable[[object], list[Section]]] = {
    Listed.CONNECTORS: cluster.connectors,
    Listed.TASKS: cluster.tasks,
    Listed.WORKERS: members.workers,
    Listed.GROUPS: cluster.groups,
    Listed.PLUGINS: cluster.plugins,
    Listed.ASSIGNORS: cluster.assignors,
}


class Description(NamedTuple):
    """How one thing is asked for, and how it is told."""

    fetch: Callable[[Client, str], object]
    sections: Callable[[object], list[Section]]


DESCRIPTIONS: dict[Described, Description] = {
    Described.CONNECTOR: Description(_connector, cluster.connector),
    Described.WORKER: Description(_worker, members.worker),
    Described.GROUP: Description(_group, members.group),
    Described.PLUGIN: Description(_plugin, cluster.plugin),
}
