"""Makes spans of the batches in an offset log: each batch a trace, its phases the children.

A task measures its phases. What it took until the commit is in the progress that the commit wrote;
commit and publishing are in that of the next batch, since they come after the first was written. So
a batch is told with its successor, or, if it is published, when none has come for a while: then the
log says when that was. The phases are laid end to end about the commit's time in the log.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from ...events.catalogue import TYPE_OF, commit_key
from ...events.commits import Committed, Cost, TaskProgress
from ...events.entries.codec import decode
from ...events.log.frame import Entry
from ...events.model import Resource
from ...events.records import Tombstone
from .spans import Attributes, TraceSpan, about, attributes, batch_context, epoch_context

_PROGRESS: Final = TYPE_OF[TaskProgress].number
_COMMITTED: Final = TYPE_OF[Committed].number
_FIRST: Final = 1
"""The number of batches of a task that has committed once."""


class PlacedSpan(NamedTuple):
    """A span, and the offset of the entry that it was made of."""

    offset: int
    span: TraceSpan


class _Phase(NamedTuple):
    """A part of a batch's time, which is a span of its own; times in ms of the wall clock."""

    name: str
    start_ms: int
    end_ms: int


@dataclass(slots=True)
class _CommittedBatch:
    """A batch that was committed; when it was published may not be known yet."""

    offset: int
    """That of the entry which committed it."""
    progress: TaskProgress
    """That of its task with this batch."""
    counted: Attributes
    """The rows and bytes that it read and wrote, and the rows that it left out."""
    cost: Cost
    """Without commit and publish."""
    is_unpublished: bool
    """Whether it has to be published, and the group has not heard yet that it was."""
    published_ms: int | None = None
    """When the group heard that it was published; None: not yet, or there was nothing to."""


class BatchSpans:
    """A fold of the offset log of one group."""

    def __init__(self, cluster_id: str, group_id: str) -> None:
        self._cluster_id, self._group_id = cluster_id, group_id
        self._progress: dict[Resource, TaskProgress] = {}
        """The last progress of each task: a batch is the difference of two."""
        self._open: dict[Resource, _CommittedBatch] = {}
        """The last batch of each task, if it was not told yet."""
        self._staged: set[Resource] = set()
        """The tasks whose next progress is that of a batch that has to be published."""

    @property
    def oldest(self) -> int | None:
        """The offset of the oldest batch that was not told yet; None: there is none."""
        return min((each.offset for each in self._open.values()), default=None)

    def apply(self, entry: Entry) -> Iterator[PlacedSpan]:
        """Yield the spans of batches that the next entry completes; raises `CodecError`."""
        if entry.type == _COMMITTED:
            self._follow(entry)
        elif entry.type == _PROGRESS:
            record = decode(entry)
            if isinstance(record, TaskProgress):
                yield from self._commit(record, entry.offset)
            elif isinstance(record, Tombstone):
                yield from self._forget(Resource(str(record.key[0]), int(record.key[1])))

    def settle(self, before_ms: int) -> Iterator[PlacedSpan]:
        """Yield the spans of published batches that were committed before a time."""
        for task, batch in list(self._open.items()):
            if batch.progress.time_ms < before_ms and not batch.is_unpublished:
                del self._open[task]
                yield from self._spans(batch, None)

    def _follow(self, entry: Entry) -> None:
        """Record that a batch has to be published, or that the group has heard that it was."""
        key = TYPE_OF[Committed].key.parse(entry.key)
        task = Resource(str(key[0]), int(key[1]))
        if entry.value is not None:
            self._staged.add(task)
            return
        batch = self._open.get(task)
        if batch is not None and commit_key(batch.progress.last) == key:
            batch.is_unpublished, batch.published_ms = False, entry.timestamp_ms

    def _forget(self, task: Resource) -> Iterator[PlacedSpan]:
        """Yield the spans of the last batch of a task whose connector was deleted."""
        self._progress.pop(task, None)
        self._staged.discard(task)
        if (last := self._open.pop(task, None)) is not None:
            yield from self._spans(last, None)

    def _commit(self, record: TaskProgress, offset: int) -> Iterator[PlacedSpan]:
        """Begin the next batch of a task, and yield the spans of the one before it."""
        task = Resource(record.last.connector, record.last.task)
        before, self._progress[task] = self._progress.get(task), record
        is_next = before is not None and before.batches + 1 == record.batches
        cost = _difference(before.cost, record.cost) if before and is_next else record.cost
        if (last := self._open.pop(task, None)) is not None:
            is_same_run = is_next and last.progress.last.token == record.last.token
            yield from self._spans(last, cost if is_same_run else None)
        is_unpublished = task in self._staged
        self._staged.discard(task)
        if is_next or record.batches == _FIRST:
            counted = _count(before if is_next else None, record, cost)
            self._open[task] = _CommittedBatch(offset, record, counted, cost, is_unpublished)

    def _spans(self, batch: _CommittedBatch, after: Cost | None) -> Iterator[PlacedSpan]:
        """Yield the spans of a batch; `after` is the cost of its successor, if that tells more."""
        commit_id = batch.progress.last
        context = batch_context(self._cluster_id, self._group_id, commit_id)
        phases = _phases(batch, after)
        common = dict(about(self._group_id, Resource(commit_id.connector, commit_id.task)))
        token = attributes(
            {
                "epoch": commit_id.token.grant_epoch,
                "generation": commit_id.token.generation,
                "batch": commit_id.batch,
            }
        )
        root = TraceSpan(
            "batch",
            context,
            phases[0].start_ms,
            phases[-1].end_ms,
            {**common, **token, **batch.counted},
            link=epoch_context(self._cluster_id, self._group_id, commit_id.token.grant_epoch),
        )
        yield PlacedSpan(batch.offset, root)
        for name, start_ms, end_ms in phases:
            if start_ms < end_ms:
                part = TraceSpan(name, context.child(name), start_ms, end_ms, common, context)
                yield PlacedSpan(batch.offset, part)


def _phases(batch: _CommittedBatch, after: Cost | None) -> list[_Phase]:
    """Return the phases in order, in ms of the wall clock; one that did not run is empty."""
    cost, committed_ms = batch.cost, batch.progress.time_ms
    durations = {"plan": cost.plan_ms, "wait": cost.wait_ms, "run": cost.run_ms}
    start_ms = committed_ms - sum(durations.values())
    if after is not None and after.commit_ms + after.publish_ms:
        durations |= {"commit": after.commit_ms, "publish": after.publish_ms}
    elif batch.published_ms is not None:
        durations["publish"] = max(0, batch.published_ms - committed_ms)
    times = pairwise(accumulate(durations.values(), initial=start_ms))
    return [_Phase(name, *each) for name, each in zip(durations, times, strict=True)]


def _difference(before: Cost, total: Cost) -> Cost:
    return Cost(
        total.bytes_in - before.bytes_in,
        total.plan_ms - before.plan_ms,
        total.wait_ms - before.wait_ms,
        total.run_ms - before.run_ms,
        total.commit_ms - before.commit_ms,
        total.publish_ms - before.publish_ms,
    )


def _count(before: TaskProgress | None, record: TaskProgress, cost: Cost) -> Attributes:
    """Return the rows and bytes of a batch; bad rows only where there were any."""
    skipped = record.skipped - (before.skipped if before else 0)
    letters = record.dead_letters - (before.dead_letters if before else 0)
    return attributes(
        {
            "rows.read": record.rows_in - (before.rows_in if before else 0),
            "rows.written": record.rows_out - (before.rows_out if before else 0),
            "rows.skipped": skipped or None,
            "dead_letters": letters or None,
            "bytes.read": cost.bytes_in,
            "bytes.written": record.bytes_out - (before.bytes_out if before else 0),
        }
    )
