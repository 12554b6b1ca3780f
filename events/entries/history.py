"""The summary of the history that was trimmed from a control log (LOG.md §10).

A trim adds the entries that it removes to a summary, in the same commit: so the summary is always
of just what is gone, whatever ends the process. It has counts, no names but those of lost workers,
and stays small however long the history was. Counters that begin with it go on as if nothing had
been trimmed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from msgspec import MsgspecError, Struct, field
from msgspec.msgpack import Decoder, Encoder

from ..catalogue import BY_NUMBER, TYPE_OF
from ..log.errors import CorruptLogError
from ..log.frame import Entry
from ..log.tables import Summarize
from ..model import Why
from ..records import ClassicGroup, GroupMetadata, Record, Tombstone
from .codec import CodecError, decode
from .group_keys import split_key

RAISING: Final = frozenset(TYPE_OF[kind].number for kind in (GroupMetadata, ClassicGroup))
"""The numbers of the records that raise a group's epoch."""
GROUPS_MAX: Final = 2_000
"""Of how many groups of a shared log the last generation is kept: of those it counted last."""

_LOSSES: Final = {Why.PROCESS_ENDED, Why.SESSION_EXPIRED}


class EpochCounts:
    """Counts of the rises of group epochs, by cause.

    A generation of classic members is an epoch, told again once it is assigned.
    """

    def __init__(self) -> None:
        self.generations: Counter[Why] = Counter()
        """Those of classic members, by cause."""
        self.epochs: Counter[Why] = Counter()
        """All others, by cause."""
        self.losses: Counter[tuple[str, Why]] = Counter()
        """How often each worker was lost, by its url and how, in a log of one group."""
        self.last: dict[str, int] = {}
        """The last generation that was counted, by group: a log may be that of many."""

    def count(self, record: Record | None, group_id: str = "") -> None:
        """Apply the next record of a group; only those of `RAISING` types count."""
        if isinstance(record, Tombstone) and record.kind is ClassicGroup:
            self.last.pop(group_id, None)  # a group that is deleted may count from 1 again
        elif isinstance(record, GroupMetadata):
            self.epochs[record.cause.why] += 1
            if not group_id and record.cause.why in _LOSSES:
                self.losses[record.cause.subject, record.cause.why] += 1
        elif isinstance(record, ClassicGroup) and record.generation > self.last.get(group_id, 0):
            self.last.pop(group_id, None)
            self.last[group_id] = record.generation
            self.generations[record.cause.why] += 1


class HistorySummary(Struct, frozen=True, omit_defaults=True):
    """The history that was trimmed from a control log, in numbers; times are wall clock, ms."""

    compacted_ms: int
    """When the last of it was trimmed."""
    entries: int
    first_ms: int
    last_ms: int
    """The times of its first and last entry."""
    first_epoch: int | None = None
    last_epoch: int | None = None
    """The first and the last epoch that rose in it; None in a log that many groups share."""
    epochs: dict[str, int] = field(default_factory=dict[str, int])
    """How often the epoch rose, by cause."""
    generations: dict[str, int] = field(default_factory=dict[str, int])
    """How many generations of classic members there were, by cause."""
    losses: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """How often each worker was lost, by cause and then by the worker's url."""
    records: dict[str, int] = field(default_factory=dict[str, int])
    """The number of entries by the name of their type."""
    last: dict[str, int] = field(default_factory=dict[str, int])
    """The last generation of each group, which is told again once it is assigned."""

    @property
    def rebalances(self) -> Counter[str]:
        """All rises of epochs, by cause."""
        return Counter(self.epochs) + Counter(self.generations)

    def counts(self) -> EpochCounts:
        """Return the counts, to go on counting from what is left of the log."""
        counts = EpochCounts()
        for why, count in self.epochs.items():
            counts.epochs[_why(why)] += count
        for why, count in self.generations.items():
            counts.generations[_why(why)] += count
        for why, by_worker in self.losses.items():
            for worker, count in by_worker.items():
                counts.losses[worker, _why(why)] += count
        counts.last = dict(self.last)
        return counts


def _why(text: str) -> Why:
    return Why(text) if text in _CAUSES else Why.UNKNOWN


_CAUSES: Final = frozenset(why.value for why in Why)
_pack = Encoder().encode
_unpack = Decoder(HistorySummary).decode


def read_summary(packed: bytes | None) -> HistorySummary | None:
    """Return the summary of a trimmed history; None if there is none.

    Raises `CorruptLogError` if it is not readable.
    """
    if packed is None:
        return None
    try:
        return _unpack(packed)
    except MsgspecError as error:
        raise CorruptLogError(
            f"the summary of what was trimmed is not readable: {error}. Keep the files and restore"
            " the newest backup"
        ) from error


def summarizer(now_ms: int, *, is_shared: bool = False) -> Summarize:
    """Return what adds trimmed entries to a summary, at this time; `is_shared`: of many groups."""
    return partial(_summarize, now_ms, split_key if is_shared else _one_group)


def _one_group(entry: Entry) -> tuple[str, bytes]:
    return "", entry.key


def _summarize(
    now_ms: int,
    split: Callable[[Entry], tuple[str, bytes]],
    packed: bytes | None,
    entries: Sequence[Entry],
) -> bytes:
    former = read_summary(packed)
    counts = EpochCounts() if former is None else former.counts()
    rises = [] if former is None or former.first_epoch is None else [former.first_epoch]
    rises += [*_count(counts, split, entries)]
    summary = HistorySummary(
        now_ms,
        len(entries) + (former.entries if former else 0),
        former.first_ms if former else entries[0].timestamp_ms,
        entries[-1].timestamp_ms,
        rises[0] if rises else None,
        (former.last_epoch if former and len(rises) == 1 else rises[-1]) if rises else None,
        {why.value: count for why, count in counts.epochs.items()},
        {why.value: count for why, count in counts.generations.items()},
        _by_worker(counts.losses),
        Counter(former.records if former else {}) + Counter(name_of(each) for each in entries),
        dict(islice(counts.last.items(), max(0, len(counts.last) - GROUPS_MAX), None)),
    )
    return _pack(summary)


def _count(
    counts: EpochCounts,
    split: Callable[[Entry], tuple[str, bytes]],
    entries: Iterable[Entry],
) -> Iterator[int]:
    """Count entries; yield the epochs that rise in them, in a log of one group."""
    for entry in entries:
        group_id, key = split(entry)
        record = decode_rise(entry._replace(key=key))
        counts.count(record, group_id)
        if record is not None and not group_id and (epoch := epoch_of(record)):
            yield epoch


def decode_rise(entry: Entry) -> Record | None:
    """Return the record that raises an epoch, or ends a group; None for any other entry.

    One that this version cannot read is none: what is trimmed holds up nobody.
    """
    try:
        return decode(entry) if entry.type in RAISING else None
    except CodecError:
        return None


def epoch_of(record: Record | None) -> int | None:
    """Return the epoch to which a record raises its group, or None."""
    if isinstance(record, GroupMetadata):
        return record.group_epoch
    return record.generation if isinstance(record, ClassicGroup) else None


def name_of(entry: Entry) -> str:
    """Return the name of an entry's type."""
    row = BY_NUMBER.get(entry.type)
    return row.name if row else f"type {entry.type}"


def _by_worker(losses: Counter[tuple[str, Why]]) -> dict[str, dict[str, int]]:
    by_cause: dict[str, dict[str, int]] = {}
    for (worker, why), count in losses.items():
        by_cause.setdefault(why.value, {})[worker] = count
    return by_cause
