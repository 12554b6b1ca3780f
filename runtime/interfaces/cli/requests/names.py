"""Words that a shell completes: names of connectors, tasks, workers and so on, and config keys."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Final

from ..adapters.parameters import Argument, Complete, Option
from ..requests.grammar import CONNECTORS, WORKERS, Kind, join_words, parse_kind
from .client import Client, find_client
from .options import RemoteOptions

if TYPE_CHECKING:
    from ...replies.groups import GroupSummary

COMPLETION_SECONDS: Final = 2.0
"""How long a shell waits for names."""


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
    from .plugins import fetch_plugins, list_plugin_names  # noqa: PLC0415

    return [*dict.fromkeys(list_plugin_names(each)[0] for each in fetch_plugins(client, ()))]


def _assignors(client: Client) -> list[str]:
    from ...replies.node import AssignorList  # noqa: PLC0415

    return [each.name for each in client.get(AssignorList, "assignors").assignors]


def _loggers(client: Client) -> list[str]:
    return [*client.get(dict[str, object], "admin", "loggers")]


def _nodes(client: Client) -> list[str]:
    from ...replies.node import NodeList  # noqa: PLC0415

    return [each.name for each in client.get(NodeList, "nodes").nodes]


_NAMES: Final[Mapping[Kind, Callable[[Client], list[str]]]] = {
    Kind.CONNECTOR: _connectors,
    Kind.TASK: _tasks,
    Kind.OFFSET: _connectors,
    Kind.WORKER: _workers,
    Kind.GROUP: _groups,
    Kind.PLUGIN: _plugins,
    Kind.ASSIGNOR: _assignors,
    Kind.LOGGER: _loggers,
    Kind.NODE: _nodes,
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
        yield from _ask(values, incomplete, _NAMES[kind or kinds[0]])

    return complete


def _ask(
    values: Mapping[str, Any], incomplete: str, ask: Callable[[Client], Iterable[str]]
) -> Iterable[str]:
    """Yield the words of a cluster that begin so; none if it does not answer at once."""
    with suppress(Exception):  # a shell would show what is wrong in the middle of a line
        names = ("config", "overrides", "data_dir", "url", "context", "ca", "cert")
        client = find_client(RemoteOptions(**{each: values.get(each) for each in names}))
        client.answer_seconds = COMPLETION_SECONDS
        yield from (word for word in ask(client) if word.startswith(incomplete))


def complete_changes(values: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Return names of connectors, and behind one of them the keys that its config may have."""
    words = _words_before(values, CONNECTORS)
    name = next((each for each in words if parse_kind(each) is None), None)
    if name is None:
        return complete_names(CONNECTORS)(values, incomplete)
    return _ask(values, incomplete, lambda client: _keys_for(client, name))


def _keys_for(client: Client, name: str) -> list[str]:
    from .plugins import fetch_keys  # noqa: PLC0415

    config = client.get(dict[str, str], "connectors", name, "config")
    keys = fetch_keys(client, config["connector.class"])
    usual = {each.name: each.default_value for each in keys}
    return [
        f"{each.name}="
        for each in keys
        for selector, _, word in [each.only_with.partition("=")]
        if not selector or config.get(selector, usual.get(selector)) == word
    ]


def complete_own_keys(values: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Return the keys in the configs of the connectors that are named before."""
    names = [each for each in _words_before(values, CONNECTORS) if "=" not in each]

    def ask(client: Client) -> Iterable[str]:
        for name in names:
            if parse_kind(name) is None:
                yield from client.get(dict[str, str], "connectors", name, "config")

    return _ask(values, incomplete, ask)


def complete_explained(values: Mapping[str, Any], incomplete: str) -> Iterable[str]:
    """Return what can be explained: connectors and tasks, settings of a node, keys of configs."""
    from ....config.keys import SETTINGS  # noqa: PLC0415  # only after TAB

    yield from complete_names((Kind.CONNECTOR, Kind.TASK))(values, incomplete)
    if incomplete and not _words_before(values, CONNECTORS):
        keys = [*_ask(values, incomplete, _keys_of_all)]
        yield from dict.fromkeys([*keys, *(key for key in SETTINGS if key.startswith(incomplete))])


def _keys_of_all(client: Client) -> Iterable[str]:
    from ...replies.connectors import PluginInfo  # noqa: PLC0415
    from .plugins import fetch_keys  # noqa: PLC0415

    for plugin in client.get(list[PluginInfo], "connector-plugins"):
        yield from (each.name for each in fetch_keys(client, plugin.class_name))


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
    if group is not None:
        return group
    if options.find_plain_folder() is None and "group.id" in options.load().sources:
        return options.load_config().group_id
    of_workers = [each.group_id for each in fetch_groups(client) if each.shard is None]
    return of_workers[0] if len(of_workers) == 1 else options.load_config().group_id


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


OfConnectors = Annotated[list[str] | None, name_argument(CONNECTORS, may_be_all=True)]
OfWorkers = Annotated[list[str], name_argument(WORKERS, ", as `get workers` shows them")]
OfGroup = Annotated[
    str | None,
    Option(
        "--group",
        metavar="NAME",
        help="A group other than the node's.",
        complete=complete_names((Kind.GROUP,)),
    ),
]
