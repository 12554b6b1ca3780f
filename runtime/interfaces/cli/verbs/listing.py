"""The command `get`, which lists objects of one kind: all, or those that are named."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, Final, Generic, TypeVar

import typer
from msgspec import structs

from ...replies.connectors import ExpandedConnector, PluginInfo
from ...replies.groups import GroupDescription, GroupPlacement, GroupSummary
from ...replies.node import AssignorList, LoggerLevel, WorkerDescription, WorkerList
from ...replies.progress import ConnectorOffsets
from ..command import connector_tables as connectors
from ..command import group_tables as groups
from ..command.client import Client, client_of
from ..command.connector_tables import Expanded, TaskLine, list_tasks
from ..command.options import Output, There, of_kind, takes
from ..command.phrases import moment
from ..command.printing import Misused, Section, Table, say, show, show_sections
from ..requests.names import OnlyThese
from ..requests.several import pick
from .offsets import format_document, offset_tables

T = TypeVar("T")
WATCH_SECONDS: Final = 1.0


class Listed(StrEnum):
    """The kinds that `get` lists."""

    CONNECTORS = "connectors"
    TASKS = "tasks"
    WORKERS = "workers"
    GROUPS = "groups"
    PLUGINS = "plugins"
    ASSIGNORS = "assignors"
    OFFSETS = "offsets"
    PLACEMENTS = "placements"
    LOGGERS = "loggers"


class ListOutput(StrEnum):
    """The output formats of a list; `wide` cuts no cell, `name` is one name in each line."""

    TABLE = "table"
    WIDE = "wide"
    NAME = "name"
    JSON = "json"
    YAML = "yaml"


@takes(There)
def get(
    place: There,
    what: Annotated[Listed, of_kind(Listed)],
    names: OnlyThese = None,
    *,
    every: Annotated[
        bool,
        typer.Option("--all", help="Of plugins: also converters, transforms and predicates."),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print it again when it changes, until Ctrl-C.")
    ] = False,
    output: Annotated[
        ListOutput, typer.Option("--output", "-o", help="The output format.")
    ] = ListOutput.TABLE,
) -> None:
    """List connectors, tasks, workers and so on: all, or those that are named."""
    view = LISTS[what]
    if every:
        if what is not Listed.PLUGINS:
            raise Misused("--all is of plugins")
        view = replace(view, fetch=fetch_all_plugins)
    client = client_of(place)
    last = view.show(client, names or [], output)
    try:
        while watch:
            sys.stdout.flush()
            time.sleep(WATCH_SECONDS)
            last = view.show(client, names or [], output, last)
    except KeyboardInterrupt:  # the normal end of `--watch`
        return


@dataclass(frozen=True, slots=True)
class ListView(Generic[T]):
    """How a kind is asked for and shown."""

    fetch: Callable[[Client, Sequence[str]], T]
    """Returns the objects with these names, all of them if there is no name."""
    sections: Callable[[T], Sequence[Section]]
    names: Callable[[T], Sequence[str]]

    def show(
        self, client: Client, names: Sequence[str], output: ListOutput, last: T | None = None
    ) -> T:
        """Ask the cluster, print the objects unless they are the last ones, and return them."""
        reply = self.fetch(client, names)
        match output:
            case _ if reply == last:
                pass
            case ListOutput.NAME:
                for name in self.names(reply):
                    say(name)
            case ListOutput.WIDE:
                show_sections([_uncut(each) for each in self.sections(reply)])
            case _:
                show(Output(output.value), reply, self.sections(reply))
        return reply


def fetch_connectors(client: Client, names: Sequence[str] = ()) -> Expanded:
    """Return connectors with their status, config and progress."""
    kind = dict[str, ExpandedConnector]
    found = client.get(kind, "connectors", expand=("status", "info", "progress"))
    return {name: found[name] for name in pick("connector", names, [*found], lambda name: [name])}


def fetch_all_plugins(client: Client, names: Sequence[str]) -> list[PluginInfo]:
    """Return plugins of all types, not connector classes alone."""
    found = client.get(list[PluginInfo], "connector-plugins", connectorsOnly="false")
    return pick("plugin", names, found, names_of_plugin)


def names_of_worker(reply: WorkerDescription) -> Sequence[str]:
    """Return the name of a worker, and its ids."""
    member_id = reply.member.member_id if reply.member else ""
    return groups.worker_label(reply), reply.worker_id, member_id


def names_of_plugin(reply: PluginInfo) -> Sequence[str]:
    """Return the short name of a plugin, and that of its class."""
    return reply.class_name.rpartition(".")[2], reply.class_name


def _uncut(section: Section) -> Section:
    return replace(section, brief=()) if isinstance(section, Table) else section


def _workers(client: Client, names: Sequence[str]) -> WorkerList:
    reply = client.get(WorkerList, "workers")
    picked = pick("worker", names, reply.workers, names_of_worker)
    return structs.replace(reply, workers=picked)


def _groups(client: Client, names: Sequence[str]) -> list[GroupSummary]:
    return pick("group", names, client.get(list[GroupSummary], "groups"), lambda it: [it.group_id])


def _plugins(client: Client, names: Sequence[str]) -> list[PluginInfo]:
    return pick("plugin", names, client.get(list[PluginInfo], "connector-plugins"), names_of_plugin)


def _assignors(client: Client, names: Sequence[str]) -> AssignorList:
    reply = client.get(AssignorList, "assignors")
    picked = pick("assignor", names, reply.assignors, lambda it: [it.name])
    return structs.replace(reply, assignors=picked)


def _offsets(client: Client, names: Sequence[str]) -> ConnectorOffsets:
    if len(names) != 1:
        raise Misused("offsets are of one connector: get offsets NAME")
    return client.get(ConnectorOffsets, "connectors", names[0], "offsets")


def _placements(client: Client, names: Sequence[str]) -> list[GroupPlacement]:
    """Return the placements that operators have ordered in all groups of workers."""
    groups_of_workers = [each for each in _groups(client, ()) if each.shard is None]
    found = [
        GroupPlacement(described.group_id, *structs.astuple(order))
        for each in groups_of_workers
        for described in [client.get(GroupDescription, "groups", each.group_id)]
        for order in described.placements
    ]
    return pick("placement", names, found, lambda it: [it.id])


def _placement_table(reply: Sequence[GroupPlacement]) -> list[Section]:
    rows = [(each.group_id, each.id, str(each.weight), ",".join(each.pins)) for each in reply]
    empty = "no placements: configs alone decide"
    return [Table(("GROUP", "RESOURCE", "WEIGHT", "WORKERS"), rows, empty)]


def _loggers(client: Client, names: Sequence[str]) -> dict[str, LoggerLevel]:
    found = client.get(dict[str, LoggerLevel], "admin", "loggers")
    return {name: found[name] for name in pick("logger", names, [*found], lambda name: [name])}


def _logger_table(reply: Mapping[str, LoggerLevel]) -> list[Section]:
    rows = [(name, each.level, moment(each.last_modified)) for name, each in reply.items()]
    return [Table(("LOGGER", "LEVEL", "SET AT"), rows, "no loggers")]


def _task_names(reply: Sequence[TaskLine]) -> list[str]:
    return [f"{each.connector}-{each.task}" for each in reply]


LISTS: Final[Mapping[Listed, ListView[Any]]] = {
    Listed.CONNECTORS: ListView(fetch_connectors, connectors.connectors, sorted),
    Listed.TASKS: ListView(
        lambda client, names: list_tasks(fetch_connectors(client, names)),
        connectors.tasks,
        _task_names,
    ),
    Listed.WORKERS: ListView(
        _workers, groups.workers, lambda reply: [*map(groups.worker_label, reply.workers)]
    ),
    Listed.GROUPS: ListView(_groups, groups.groups, lambda reply: [it.group_id for it in reply]),
    Listed.PLUGINS: ListView(
        _plugins, connectors.plugins, lambda reply: [names_of_plugin(each)[0] for each in reply]
    ),
    Listed.ASSIGNORS: ListView(
        _assignors, groups.assignors, lambda reply: [each.name for each in reply.assignors]
    ),
    Listed.OFFSETS: ListView(
        _offsets,
        offset_tables,
        lambda reply: [format_document(each.partition) for each in reply.offsets],
    ),
    Listed.PLACEMENTS: ListView(
        _placements, _placement_table, lambda reply: [each.id for each in reply]
    ),
    Listed.LOGGERS: ListView(_loggers, _logger_table, list),
}
