"""The history of each group of a shard, from the beginning of its control log.

One pass through the control log finds the entries of each group, and counts the rebalances; a later
look reads what is new. So a group's epochs can be explained without reading those of all others,
and those of a deleted group as well.
"""

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Final, Self

from ..events.entries.group_keys import GroupPart, by_group
from ..events.log.errors import TrimmedError
from ..events.log.frame import Entry
from ..events.log.reader import BYTES_PER_READ, ENTRIES_PER_READ, LogReader, Slice
from ..events.log.tables import Trimmed
from .explain.cache import NAMED_MAX, EpochCache
from .explain.generations import ReadShares
from .follow.rebalances import Rebalances

CACHES_MAX: Final = 16
"""So many groups have their explanations kept, at most."""
KEPT_MAX: Final = NAMED_MAX
"""How much is kept of all of them together, by `EpochCache.size`: what one group of workers may."""
NAMED_OF_GROUP_MAX: Final = NAMED_MAX // 10
"""How many resources the epochs of one group may name that are kept in full."""


class ShardHistory:
    """The offsets of each group's entries, and counts of epoch bumps; thread-safe."""

    def __init__(self, log: LogReader) -> None:
        self._log = log
        self._turn = Lock()
        self._next = 0
        """The offset of the first entry that was not looked at yet."""
        self._offsets: dict[str, array[int]] = {}
        """Those of its entries that are left in the log, by group id."""
        self._low = 0
        """Where the log began at the last look."""
        self._rebalances = Rebalances()

    def catch_up(self) -> Self:
        """Index new entries; raises `LogError`, `CodecError`."""
        with self._turn:
            try:
                self._read()
            except TrimmedError:
                self._next = self._rebalances.begin_after(self._log.trimmed())
                self._read()
            if (low := self._log.low()) != self._low:
                self._forget_before(low)
        return self

    def _read(self) -> None:
        for entries in self._log.tail(self._next):
            for group_id, own in by_group(entries).items():
                found = self._offsets.setdefault(group_id, array("Q"))
                for each in own:
                    found.append(each.offset)
                    self._rebalances.count(each, group_id)
            self._next = entries[-1].offset + 1

    def _forget_before(self, low: int) -> None:
        """Drop the offsets of trimmed entries; the counts stay."""
        self._low = low
        for group_id, found in list(self._offsets.items()):
            del found[: bisect_left(found, low)]
            if not found:
                del self._offsets[group_id]

    @property
    def rebalances(self) -> Rebalances:
        """A copy of the counts of epoch bumps of all groups, as of the last catch-up."""
        with self._turn:
            return self._rebalances.copy()

    def knows(self, group_id: str) -> bool:
        """Return whether the log has entries of a group that are not trimmed."""
        with self._turn:
            return group_id in self._offsets

    def offsets_from(self, group_id: str, start: int) -> list[int]:
        """Return the offsets of a group's entries, from one on; raises `TrimmedError`."""
        with self._turn:
            if start < self._low:
                raise TrimmedError(f"the entries before {self._low} were trimmed", self._low)
            found = self._offsets.get(group_id, array("Q"))
            return found[bisect_left(found, start) :].tolist()


class GroupEntries:
    """The entries of one group in its shard's control log, as a log of its own."""

    def __init__(self, log: LogReader, group_id: str, history: ShardHistory) -> None:
        """`history` is that of the log."""
        self._log, self.log_id, self.history = log, group_id, history

    @property
    def path(self) -> Path:
        """Where the log lies."""
        return self._log.path

    def low(self) -> int:
        """Return the offset of the first entry of the log that was not trimmed."""
        return self._log.low()

    def trimmed(self) -> Trimmed:
        """Return where the log begins; the summary of what was trimmed is of many groups."""
        return Trimmed(self.low(), None)

    def end(self) -> int:
        """Return the offset behind the last durable entry of the log."""
        return self._log.end()

    def load(self) -> Slice:
        """Return the latest entry of each of the group's keys; costs the whole log."""
        entries, end = self._log.load()
        return Slice(by_group(entries).get(self.log_id, []), end)

    def scan(self, kind: int, key_prefix: bytes = b"") -> list[Entry]:
        """Return the latest entries of a type with this key prefix, none deleted."""
        return GroupPart(self._log, self.log_id).scan(kind, key_prefix)

    def tail(self, start: int) -> Iterator[list[Entry]]:
        """Yield the group's entries from an offset on, in batches, none empty.

        A batch is no larger than one of `LogReader.tail`. Raises `LogError`, `CodecError`.
        """
        offsets = self.history.catch_up().offsets_from(self.log_id, start)
        for _, run in groupby(enumerate(offsets), lambda each: each[1] - each[0]):
            numbers = [offset for _, offset in run]
            yield from self._part(numbers[0], numbers[-1] + 1)

    def _part(self, start: int, stop: int) -> Iterator[list[Entry]]:
        """Yield the group's entries between two offsets."""
        while start < stop:
            limit = min(stop - start, ENTRIES_PER_READ)
            entries = self._log.read(start, limit, BYTES_PER_READ).entries
            start = entries[-1].offset + 1
            yield by_group(entries)[self.log_id]

    def close(self) -> None:
        """Close the log."""
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class EpochCaches:
    """The explanations of the most recently used groups with a shared log.

    There may be a hundred thousand such groups: what is kept of all of them has one bound. For one
    thread at a time.
    """

    def __init__(self, read_shares: ReadShares) -> None:
        """`read_shares` reads what leaders of classic members assign."""
        self._read_shares = read_shares
        self._caches: OrderedDict[tuple[ShardHistory, str], EpochCache] = OrderedDict()
        """By the history of the shard and group id, the one that was asked for last at the end."""

    def of(self, entries: GroupEntries) -> EpochCache:
        """Return the explanations of a group; may evict those of others."""
        key = entries.history, entries.log_id
        cache = self._caches.pop(key, None)
        if cache is None:
            cache = EpochCache(entries, self._read_shares, NAMED_OF_GROUP_MAX)
        left = KEPT_MAX - cache.size - sum(each.size for each in self._caches.values())
        while self._caches and (left < 0 or len(self._caches) >= CACHES_MAX):
            left += self._caches.popitem(last=False)[1].size
        self._caches[key] = cache
        return cache

    def forget(self, history: ShardHistory) -> None:
        """Drop the explanations of a shard's groups."""
        for each in [key for key in self._caches if key[0] is history]:
            del self._caches[each]
