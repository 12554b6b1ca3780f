"""The commands `history` and `explain`, which work with or without a running cluster.

They ask the running cluster, or read the log files if there is none. Both give the same result,
since all of it is in the log.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeVar

from ......events.log.errors import NoLogError
from ......projections.explain.lists import EpochList
from ....replies.building.clients import read_shares
from ....replies.epochs import EpochExplanation, describe_epoch
from ....replies.handovers import ResourceHistory, describe_moves
from ...adapters.parameters import Argument, Option
from ...output.printing import Failed, Misused, Section, Unreachable, show
from ...requests.client import NOTE, Client, find_client
from ...requests.grammar import Kind, NamedObjects, parse_kind, parse_task, split_words
from ...requests.names import OfGroup, complete_explained, find_group_id
from ...requests.options import RemoteReadOptions, select_group, with_options
from ...requests.plugins import KeyMeaning, find_meanings, find_settings, tabulate_meanings
from ...tables.epochs import tabulate_explanation, tabulate_history, tabulate_moves

if TYPE_CHECKING:
    from ......projections.explain.cache import EpochCache

T = TypeVar("T")
LINES: Final = 50
EXPLAINED: Final = (Kind.CONNECTOR, Kind.TASK)
Limit = Annotated[int, Option("--limit", metavar="N", min=1, max=10_000, help="How many epochs.")]


@with_options(RemoteReadOptions)
def history(options: RemoteReadOptions, limit: Limit = LINES, group: OfGroup = None) -> None:
    """List the last epochs: cause, user, what moved, stayed and waits, how long it took."""

    def ask(client: Client, group_id: str) -> EpochList:
        return client.get(EpochList, "groups", group_id, "history", limit=str(limit))

    lines = _read(select_group(options, group), ask, lambda epochs, _: epochs.history(limit))
    show(options.output, lines, tabulate_history(lines))


@with_options(RemoteReadOptions)
def explain(
    options: RemoteReadOptions,
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="EPOCH|[KIND] RESOURCE|KEY...",
            help="Default: the latest epoch. Of a connector, a task (flights-0) or a partition"
            " (orders-3): all its moves. Of a key of a config or a setting of a node: what it"
            " means.",
            complete=complete_explained,
        ),
    ] = None,
    group: OfGroup = None,
) -> None:
    """Explain an epoch: its cause, its target, how long each phase took, what moved and why.

    Or explain why a connector, a task or a partition is where it is. It reads only the log, so it
    works for old epochs too, and without a running cluster. Or explain a key of a config, such as
    `source.mode`.
    """
    options = select_group(options, group)
    words = words or []
    if len(words) > 1 and words[0].lower() == "epoch":
        words = words[1:]
    if len(words) == 1 and parse_kind(words[0]) and (keys := find_settings(words[0])):  # `workers`
        show(options.output, keys, tabulate_meanings(keys))
        return
    named = split_words("explain", words, EXPLAINED, may_be_all=True)
    if named.is_told and not named.names:
        raise Misused("say what to explain: an epoch, a resource, or a key")
    found = [_explain(options, each, named) for each in named.names or [""]]
    sections = [section for each in found for section in each.sections]
    replies = [each.reply for each in found]
    show(options.output, replies[0] if len(replies) == 1 else replies, sections)


class Explained(NamedTuple):
    """An explanation, and its tables."""

    reply: EpochExplanation | ResourceHistory | list[KeyMeaning]
    sections: Sequence[Section]


def _explain(options: RemoteReadOptions, word: str, named: NamedObjects) -> Explained:
    """Explain an epoch ("": the latest), a resource or a key."""
    if not word or (word.isdecimal() and not named.is_told):
        told = _explain_epoch(options, int(word) if word else None)
        return Explained(told, tabulate_explanation(told))
    task = parse_task(word)
    name = str(task) if task and (named.kind is Kind.TASK or "/" in word) else word
    try:
        moves = _list_moves(options, name)
    except (Failed, NoLogError) as error:
        if named.is_told:
            raise
        keys = _explain_key(options, name, error)
        return Explained(keys, tabulate_meanings(keys))
    return Explained(moves, tabulate_moves(moves))


def _explain_key(options: RemoteReadOptions, name: str, error: Exception) -> list[KeyMeaning]:
    """Find what a key means; raises `Failed` after an error about the resource of that name."""
    try:
        if keys := find_meanings(options, name):
            return keys
    except Unreachable:
        raise Failed(f"{error}; what a key of a config means is told by a running node") from None
    raise Failed(f"{error}; and no key and no setting is called so")


def _explain_epoch(options: RemoteReadOptions, epoch: int | None) -> EpochExplanation:
    def ask(client: Client, group_id: str) -> EpochExplanation:
        wanted = "latest" if epoch is None else str(epoch)
        return client.get(EpochExplanation, "groups", group_id, "explain", wanted)

    return _read(options, ask, lambda epochs, _: describe_epoch(epochs.explain(epoch)))


def _list_moves(options: RemoteReadOptions, name: str) -> ResourceHistory:
    def ask(client: Client, group_id: str) -> ResourceHistory:
        return client.get(ResourceHistory, "groups", group_id, "moves", name)

    def read(epochs: "EpochCache", group_id: str) -> ResourceHistory:
        return describe_moves(group_id, name, epochs.moves(name, LINES))

    return _read(options, ask, read)


def _read(
    options: RemoteReadOptions,
    ask: Callable[[Client, str], T],
    read: "Callable[[EpochCache, str], T]",
) -> T:
    """Return the answer of the cluster at `--url` or on this node, or else read its files.

    With `--data-dir` the files are always read.
    """
    if options.find_address() is not None:
        client = find_client(options)
        return ask(client, find_group_id(options, client))
    folder = options.find_plain_folder() or options.load_config().data_path
    if options.data_dir is None and (folder / NOTE).exists():
        with suppress(Unreachable):  # it was killed, and its `node.json` is still there
            client = find_client(options)
            return ask(client, find_group_id(options, client))
    from ......projections.explain.cache import EpochCache, NotToldError  # noqa: PLC0415  # slow
    from ...logs.folder import GroupFolder, LogName  # noqa: PLC0415

    config = options.load_config()
    try:
        with GroupFolder(options).read(LogName.CONTROL) as log:
            return read(EpochCache(log, read_shares), config.group_id)
    except NotToldError as untold:
        raise Failed(str(untold)) from None
    except NoLogError:
        if options.data_dir is not None:
            raise
    return ask(find_client(options), config.group_id)
