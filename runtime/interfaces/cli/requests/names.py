"""Words that are names of connectors, tasks, workers and so on, which a shell completes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Final

from ..adapters.parameters import Argument, Complete, Option
from ..requests.grammar import Kind, join_words, parse_kind
from .client import Client, find_client
from .options import RemoteOptions

if TYPE_CHECKING:
    from ...replies.groups import GroupSummary

COMPLETION_SECONDS: Final = 2.0
"""How long a shell waits for names."""
CONNECTORS: Final = (Kind.CONNECTOR,)
WORKERS: Final = (Kind.WORKER,)


def _connectors(client: Client) -> list[str]:
    return client.get(list[str], "connectors")


def _tasks(client: Client) -> list[str]:
    from .resolving import fetch_task_names  # noqa: PLC0415  # only after TAB

    return [*map(str, fetch_task_names(client))]


def _workers(client: Client) -> list[str]:
    from ...replies.node import WorkerList  # noqa: PLC0415
    from ..tables.groups import label_worker  # noqa: PLC0415

    return [*map(label_worker, client.get(WorkerList, "workers").workers)]


def _groups(client: Client) -> list[str]:
    return [each.group_id for each in fetch_groups(client)]


def _plugins(client: Client) -> list[str]:
    from ...replies.connectors import PluginInfo  # noqa: PLC0415

    found = client.get(list[PluginInfo], "connector-plugins")
    return [each.class_name.rpartition(".")[2] for each in found]


def _loggers(client: Client) -> list[str]:
    return [*client.get(dict[str, object], "admin", "loggers")]


_NAMES: Final[Mapping[Kind, Callable[[Client], list[str]]]] = {
    Kind.CONNECTOR: _connectors,
    Kind.TASK: _tasks,
    Kind.OFFSET: _connectors,
    Kind.WORKER: _workers,
    Kind.GROUP: _groups,
    Kind.PLUGIN: _plugins,
    Kind.LOGGER: _loggers,
}
"""How the names of a kind are asked for."""


def complete_names(kinds: Sequence[Kind]) -> Complete:
    """Return the completion of `[KIND] NAME…`: names of the given kind, else of the first.

    In the place of the kind itself the words of the kinds, too.
    """

    def complete(values: Mapping[str, Any], incomplete: str) -> Iterable[str]:
        words = _words_before(values, kinds)
        kind = parse_kind(words[0]) if words else None
        if not words and len(kinds) > 1:
            yield from (each.plural for each in kinds if each.plural.startswith(incomplete))
        with suppress(Exception):  # a shell would show what is wrong in the middle of a line
            options = (values.get(each) for each in ("config", "overrides", "data_dir", "url"))
            client = find_client(RemoteOptions(*options))
            client.answer_seconds = COMPLETION_SECONDS
            found = _NAMES[kind or kinds[0]](client)
            yield from (name for name in found if name.startswith(incomplete))

    return complete


def _words_before(values: Mapping[str, Any], kinds: Sequence[Kind]) -> Sequence[str]:
    """Return the words of the grammar that stand before the cursor; none for an option's value."""
    words = values.get("words")
    return () if kinds == (Kind.GROUP,) or not words else words


def fetch_groups(client: Client) -> "list[GroupSummary]":
    """Return the groups of the node."""
    from ...replies.groups import GroupSummary  # noqa: PLC0415

    return client.get(list[GroupSummary], "groups")


def find_group_id(options: RemoteOptions, client: Client, group: str | None = None) -> str:
    """Return the id of the given or configured group, or else of the cluster's only one of workers.

    Raises `ConfigError`, `Failed`.
    """
    loaded = options.load()
    if group is not None or "group.id" in loaded.sources:
        return group or loaded.config.group_id
    of_workers = [each.group_id for each in fetch_groups(client) if each.shard is None]
    return of_workers[0] if len(of_workers) == 1 else loaded.config.group_id


def name_argument(
    kinds: Sequence[Kind], remark: str = "", *, is_listing: bool = False, may_be_all: bool = False
) -> Argument:
    """Return the argument `[KIND] NAME…`; `remark` is appended to its help."""
    may_be = join_words([each.plural if is_listing else each.value for each in kinds])
    if len(kinds) > 1:
        may_be += f"; without it, {kinds[0]}"
    return Argument(
        metavar="[KIND] [NAME...]" if may_be_all else "[KIND] NAME...",
        help=f"Names{remark}. KIND is {may_be}.",
        complete=complete_names(kinds),
    )


OfConnectors = Annotated[list[str], name_argument(CONNECTORS)]
OfWorkers = Annotated[list[str], name_argument(WORKERS, ", as `get workers` shows them")]
Patterns = Annotated[
    bool,
    Option("--reg-exp", "-e", help="The names are regular expressions (RE2) of whole names."),
]
OfGroup = Annotated[
    str | None,
    Option(
        "--group",
        metavar="NAME",
        help="A group other than the node's.",
        complete=complete_names((Kind.GROUP,)),
    ),
]
