"""Reads epochs from entries that are in no log."""

from collections.abc import Iterable, Iterator

from fairlead.events.log.frame import Entry
from fairlead.projections.explain.epochs import EpochReading
from fairlead.projections.explain.reader import EpochReader


def read_epochs(entries: Iterable[Entry]) -> Iterator[EpochReading]:
    """Yield the epochs of a group by all its entries, in order."""
    reader = EpochReader()
    for entry in entries:
        yield from reader.apply(entry)
    yield from reader.unfinished()
