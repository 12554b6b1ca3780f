"""Arguments that are names of connectors, workers and groups, which a shell completes."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Final

import typer
from typer.models import ArgumentInfo

from ...replies.connectors import PluginInfo
from ...replies.groups import GroupSummary
from ...replies.node import WorkerList
from ..command.client import Client, client_of
from ..command.group_tables import worker_label
from ..command.options import There

COMPLETION_SECONDS: Final = 2.0
"""How long a shell waits for names."""


def _connectors(client: Client) -> list[str]:
    return client.get(list[str], "connectors")


def _workers(client: Client) -> list[str]:
    return [*map(worker_label, client.get(WorkerList, "workers").workers)]


def _groups(client: Client) -> list[str]:
    return [each.group_id for each in client.get(list[GroupSummary], "groups")]


def _plugins(client: Client) -> list[str]:
    found = client.get(list[PluginInfo], "connector-plugins")
    return [each.class_name.rpartition(".")[2] for each in found]


_NAMES: Final[Mapping[str, Callable[[Client], list[str]]]] = {
    "connector": _connectors,
    "task": _connectors,
    "offset": _connectors,
    "worker": _workers,
    "group": _groups,
    "plugin": _plugins,
}
"""How the names of a kind are asked for."""


def names_in_shell(kind: str = "") -> Callable[[typer.Context, str], list[str]]:
    """Return the completion of names of a kind; "": of the kind that the command line has."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        with suppress(Exception):  # a shell would show what is wrong in the middle of a line
            given = ctx.params
            fetch = _NAMES[(kind or str(given["what"])).removesuffix("s")]
            place = (given.get(each) for each in ("config", "overrides", "data_dir", "url"))
            client = client_of(There(*place))
            client.answer_seconds = COMPLETION_SECONDS
            return [name for name in fetch(client) if name.startswith(incomplete)]
        return []

    return complete


def group_of(place: There, client: Client, group: str | None = None) -> str:
    """Return the id of the given or configured group, or else of the cluster's only one of workers.

    Raises `ConfigError`, `Failed`.
    """
    loaded = place.load()
    if group is not None or "group.id" in loaded.sources:
        return group or loaded.config.group_id
    found = client.get(list[GroupSummary], "groups")
    of_workers = [each.group_id for each in found if each.shard is None]
    return of_workers[0] if len(of_workers) == 1 else loaded.config.group_id


def _argument(told: str, kind: str, metavar: str = "NAME") -> ArgumentInfo:
    """Return the argument for one or more names of a kind; see `names_in_shell`."""
    argument: ArgumentInfo = typer.Argument(
        metavar=metavar, help=told, show_default=False, autocompletion=names_in_shell(kind)
    )
    return argument


Connector = Annotated[str, _argument("The connector's name.", "connector")]
Connectors = Annotated[list[str], _argument("Their names.", "connector")]
Worker = Annotated[str, _argument("Its name, as `get workers` shows it.", "worker", "WORKER")]
NameOfKind = Annotated[str, _argument("Its name.", "")]
OnlyThese = Annotated[
    list[str] | None, _argument("Only these; of tasks and offsets: of these connectors.", "")
]
OnlyOfConnectors = Annotated[list[str] | None, _argument("Only of these connectors.", "connector")]
OnlyAbout = Annotated[
    list[str] | None, _argument("Only of these connectors, tasks or workers.", "connector")
]
OfGroup = Annotated[
    str | None,
    typer.Option(
        "--group",
        metavar="NAME",
        help="A group other than the node's.",
        autocompletion=names_in_shell("group"),
    ),
]
