"""The places at which the records of one batch were written, as their producer hears of them.

A producer that hears of each record takes three times as long for it. So it hears of each
partition's first and last one of a part, and of some between. A producer writes to a partition in
order. If the offsets of two of them are as far apart as the records are, those between them have
the offsets between. Otherwise another producer has written there as well, and the places of these
are not known. For that the partitions of records are to be known before they are sent: they name
them, or their topic has one alone. The places of others are not known.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from confluent_kafka import KafkaError, Message

from ....spi.source import PlacedRun

UNKNOWN: Final = -1
_EVERY: Final = 128
"""One of so many records of a partition is heard of, at least."""
Heard = Callable[[KafkaError | None, Message], None]


class DeliveredPlaces:
    """The records of one transaction, in their order."""

    def __init__(self, failed: Heard, count: Callable[[str], int]) -> None:
        """Begin without a record; `failed` hears of errors of those that are heard of.

        `count` returns how many partitions a topic has.
        """
        self._failed = failed
        self._count = count
        self._partitions = array("i")
        self._offsets = array("q")
        self._groups: list[list[int]] = []
        """The records of a part that go to one partition."""

    def expect(
        self, topics: Sequence[str], partitions: Sequence[int | None]
    ) -> tuple[Sequence[int | None], Mapping[int, Heard]]:
        """Return the partitions of the next part's records, as far as they are known.

        And what hears of some of these records, by their number in the part.
        """
        alone = {each for each in {*topics} if self._count(each) == 1}
        partitions = [
            0 if at is None and topic in alone else at
            for topic, at in zip(topics, partitions, strict=True)
        ]
        first = len(self._offsets)
        self._partitions.extend(UNKNOWN if each is None else each for each in partitions)
        self._offsets.extend([UNKNOWN] * len(partitions))
        groups: dict[tuple[str, int], list[int]] = {}
        wanted: list[int] = []
        for row, (topic, at) in enumerate(zip(topics, partitions, strict=True)):
            if at is not None:
                groups.setdefault((topic, at), []).append(row)
        for rows in groups.values():
            wanted += rows[::_EVERY]
            wanted.append(rows[-1])
            self._groups.append([first + each for each in rows])
        return partitions, {row: partial(self._note, first + row) for row in wanted}

    def _note(self, row: int, error: KafkaError | None, record: Message) -> None:
        if error is not None:
            self._failed(error, record)
            return
        partition, offset = record.partition(), record.offset()
        if partition is not None and offset is not None:
            self._partitions[row], self._offsets[row] = partition, offset

    def runs(self) -> Sequence[PlacedRun]:
        """Return where the records are, in their order."""
        for group in self._groups:
            self._fill(group)
        self._groups.clear()
        runs: list[PlacedRun] = []
        rows, start, at, behind = 0, UNKNOWN, UNKNOWN, UNKNOWN
        for partition, offset in zip(self._partitions, self._offsets, strict=True):
            if not rows or partition != at or offset != behind:
                if rows:
                    runs.append(PlacedRun(rows, at, start))
                rows, start, at = 0, offset, partition
            rows += 1
            behind = UNKNOWN if offset == UNKNOWN else offset + 1
        return [*runs, PlacedRun(rows, at, start)] if rows else runs

    def _fill(self, rows: Sequence[int]) -> None:
        """Find the offsets of records between those that were heard of."""
        heard = [each for each in range(len(rows)) if self._offsets[rows[each]] != UNKNOWN]
        for one, other in pairwise(heard):
            begin = self._offsets[rows[one]]
            if self._offsets[rows[other]] - begin == other - one:
                for each in range(one + 1, other):
                    self._offsets[rows[each]] = begin + each - one
