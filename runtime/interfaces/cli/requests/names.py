"""Arguments that are names of connectors, workers and groups, which a shell completes."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Final

import typer

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


_NAMES: Final[Mapping[str, Callable[[Client], list[str]]]] = {
    "connector": _connectors,
    "task": _connectors,
    "offset": _connectors,
    "worker": _workers,
    "group": _groups,
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


Connector = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="The connector's name.",
        show_default=False,
        autocompletion=names_in_shell("connector"),
    ),
]
Connectors = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME",
        help="Their names.",
        show_default=False,
        autocompletion=names_in_shell("connector"),
    ),
]
Worker = Annotated[
    str,
    typer.Argument(
        metavar="WORKER",
        help="Its name, as `get workers` shows it.",
        show_default=False,
        autocompletion=names_in_shell("worker"),
    ),
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
