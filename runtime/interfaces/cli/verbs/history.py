"""`history` and `explain`: what became of a group's epochs, with or without a cluster.

A cluster that runs is asked, so that it is told the same as everybody; without one the log's
files are read. All that is told is in the log, so both say the same.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Final, TypeVar

import typer

from .....events.log.errors import NoLogError
from .....events.log.reader import LogReader
from .....projections.explain.cache import EpochCache, EpochList, NotToldError
from ...replies.epochs import EpochExplanation, describe_epoch
from ..command.client import Client, client_of, note_of
from ..command.exit_codes import Failed, Unreachable
from ..command.options import ReadThere, takes
from ..command.printing import show
from ..log.files import GroupFolder, LogName
from ..tables import epochs

T = TypeVar("T")
LINES: Final = 50

Group = Annotated[
    str | None, typer.Option("--group", metavar="NAME", help="Another group than the node's.")
]


@takes(ReadThere)
def history(
    place: ReadThere,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, max=10_000, help="How many epochs.")
    ] = LINES,
    group: Group = None,
) -> None:
    """List the last epochs: cause, who asked, what moved, stayed and waits, how long it took."""

    def ask(client: Client, group_id: str) -> EpochList:
        return client.get(EpochList, "groups", group_id, "history", limit=str(limit))

    def read(log: LogReader) -> EpochList:
        return EpochCache(log).history(limit)

    found = _read(place, group, ask, read)
    show(place.output, found, epochs.history(found))


@takes(ReadThere)
def explain(
    place: ReadThere,
    epoch: Annotated[
        int | None,
        typer.Argument(metavar="[EPOCH]", help="A group epoch; the latest.", show_default=False),
    ] = None,
    group: Group = None,
) -> None:
    """Explain an epoch: its cause, its target, how long each phase took, what moved and why.

    From the log alone: also for epochs of long ago, and where no cluster runs.
    """

    def ask(client: Client, group_id: str) -> EpochExplanation:
        wanted = "latest" if epoch is None else str(epoch)
        return client.get(EpochExplanation, "groups", group_id, "explain", wanted)

    found = _read(place, group, ask, lambda log: _explained(log, epoch))
    show(place.output, found, epochs.explained(found))


def _explained(log: LogReader, epoch: int | None) -> EpochExplanation:
    try:
        return describe_epoch(EpochCache(log).explain(epoch))
    except NotToldError as untold:
        raise Failed(str(untold)) from None


def _read(
    place: ReadThere,
    group: str | None,
    ask: Callable[[Client, str], T],
    read: Callable[[LogReader], T],
) -> T:
    """Return what the cluster at `--url` or on this node answers, or else what its files say.

    `--data-dir` means the files, whatever runs.
    """
    if group is not None:
        place = replace(place, overrides=[*(place.overrides or ()), f"group.id={group}"])
    config = place.configured()
    if place.url is not None:
        return ask(client_of(place), config.group_id)
    if place.data_dir is None and note_of(config).exists():
        with suppress(Unreachable):  # it was killed, and its word of how it is reached is left
            return ask(client_of(place), config.group_id)
    try:
        with GroupFolder(place).open(LogName.CONTROL) as log:
            return read(log)
    except NoLogError:
        if place.data_dir is not None:
            raise
    return ask(client_of(place), config.group_id)
