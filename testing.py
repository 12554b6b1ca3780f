"""Checks for the tests of a plugin: they use a source or a sink as a task does, crashes included.

They need neither a node nor Spark, and raise `AssertionError` with what was done and what came:

    def test_rows_come_once(tmp_path):
        found = check_source(lambda: MySource(tmp_path), MyType.check_offset)
        assert found == [{"id": 1}, {"id": 2}]

    def test_a_batch_is_published_once(tmp_path):
        check_sink(lambda: MySink(tmp_path), pa.table({"id": [1, 2]}), lambda: read(tmp_path))

A source whose `read` needs a Spark session, and a sink that takes Spark frames, are given one by
`spark`. Rows are compared as dicts, in any order.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .events.commits import Advance, CommitId, Document, Manifest, identity
from .events.model import Resource, Token
from .runtime.pipeline.spi.sink import Sink, TaskOwnership
from .runtime.pipeline.spi.source import BatchPlan, Limit, Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = Mapping[str, Any]
OffsetCheck = Callable[[Mapping[str, str], Document, Document | None], None]
"""`SourceType.check_offset`."""

WHOLE: Final = Limit(1_000_000, 1 << 30, 100_000)
"""A limit of a batch that small test data does not reach."""
SINGLE: Final = Limit(1, 1, 1)
"""A limit that every batch reaches: it has one row, or one range."""
_MOST_BATCHES: Final = 10_000

__all__ = ["SINGLE", "WHOLE", "ReadBatch", "check_sink", "check_source", "read_batches"]


class ReadBatch(NamedTuple):
    """A batch that was read: its rows, how it advanced, and the offsets that count after it."""

    rows: list[Row]
    advances: tuple[Advance, ...]
    offsets: dict[str, Document]
    """By the identity of the partition, as `Source.plan` takes them."""


def read_batches(
    source: Source[Any],
    offsets: Mapping[str, Document] | None = None,
    limit: Limit = WHOLE,
    spark: "SparkSession | None" = None,
) -> list[ReadBatch]:
    """Read batch after batch until the source has no more, as a task that commits each of them."""
    committed, found = dict(offsets or {}), list[ReadBatch]()
    while (plan := source.plan(committed, limit)).ranges or plan.advances:
        rows = _planned(source, plan, spark)
        source.verify(plan.ranges)
        committed = _advanced(committed, plan.advances)
        source.acknowledge(plan.advances)
        found.append(ReadBatch(rows, plan.advances, committed))
        assert len(found) < _MOST_BATCHES, f"the source still has more after {len(found)} batches"
    return found


def check_source(
    make: Callable[[], Source[Any]],
    check_offset: OffsetCheck | None = None,
    config: Mapping[str, str] | None = None,
    limits: Sequence[Limit] = (SINGLE,),
    spark: "SparkSession | None" = None,
) -> list[Row]:
    """Check that all rows come once, wherever a task ends; return them.

    `make` makes a source over the same data each time. They are read in one batch, and in batches
    of each of `limits`; after each of these batches another source goes on from its offsets, as
    after a crash; and a batch that is planned twice is the same. `check_offset`, given the
    `config`, must take each offset, as users may set it.
    """
    wanted = _read(make, {}, WHOLE, spark)
    for limit in limits:
        batches = _closing(make, partial(read_batches, limit=limit, spark=spark))
        left = [row for each in batches for row in each.rows]
        _same(left, wanted, f"read in batches of {limit}")
        for each in batches:
            left = left[len(each.rows) :]
            if check_offset is not None:
                for advance in each.advances:
                    check_offset(config or {}, advance.partition, advance.end)
            _same(_read(make, each.offsets, WHOLE, spark), left, f"read on from {each.offsets}")
    _closing(make, partial(_check_repeated_plan, spark=spark))
    return wanted


def check_sink(
    make: Callable[[], Sink[Any]],
    batch: Any,
    read: Callable[[], Sequence[Row]],
    spark: "SparkSession | None" = None,
) -> None:
    """Check that a batch is published once, wherever its task ends.

    `make` makes a sink over the same target each time, `batch` is an Arrow table, and `read`
    returns the rows that readers of the target see. Each step is done by another sink, as after a
    crash: staged twice, discarded, staged and swept, staged and published twice, and published
    late beside a later batch.
    """
    first, later, newer = (CommitId(*TASK, token, number) for token, number in _BATCHES)
    target = _Target(make, batch, read, spark)
    target.stage(first)
    target.stage(first)
    target.do(first.token, lambda sink: sink.discard(first))
    target.stage(first)
    target.do(later.token, lambda sink: sink.sweep(TASK, first.token))
    staged = target.stage(later)
    target.do(later.token, lambda sink: sink.sweep(TASK, first.token))
    target.publish(staged, later, sequence=7)
    target.publish(staged, later, sequence=7)
    after = target.stage(newer)
    target.publish(after, newer, sequence=9)
    target.publish(staged, later, sequence=7)
    target.publish(after, newer, sequence=9)


class _Target:
    """The target of a sink, which is made anew for each call."""

    def __init__(
        self,
        make: Callable[[], Sink[Any]],
        batch: Any,
        read: Callable[[], Sequence[Row]],
        spark: "SparkSession | None",
    ) -> None:
        self._make, self._batch, self._read, self._spark = make, batch, read, spark
        self._last: CommitId | None = None
        self._visible = list(read())
        """The rows that readers are to see."""
        self._published = set[int]()
        """The sequences of the batches that were published."""

    def do(self, token: Token, act: Callable[[Sink[Any]], Any]) -> Any:
        """Make a sink, and have it do something under a token."""

        def run(sink: Sink[Any]) -> Any:
            sink.acquire(TaskOwnership(TASK, token, self._last, self._last))
            return act(sink)

        return _closing(self._make, run)

    def stage(self, commit_id: CommitId) -> Manifest:
        """Stage the batch, of which nobody sees anything; return its manifest."""

        def act(sink: Sink[Any]) -> Manifest:
            sink.prepare(self._batch.schema)
            rows = self._batch if sink.takes_arrow else _frame(self._batch, self._spark)
            return sink.stage(rows, commit_id, self._batch.nbytes)

        staged: Manifest = self.do(commit_id.token, act)
        _same(self._read(), self._visible, f"after {commit_id} was staged and not published")
        assert staged.files, f"{commit_id} has rows, and its manifest says that it has no files"
        return staged

    def publish(self, staged: Manifest, commit_id: CommitId, *, sequence: int) -> None:
        """Publish the batch; all of it is seen, and once."""
        if sequence not in self._published:
            self._visible += self._batch.to_pylist()
        self._published.add(sequence)
        self.do(commit_id.token, lambda sink: sink.publish(staged, commit_id, sequence))
        self._last = max(commit_id, self._last or commit_id)
        _same(self._read(), self._visible, f"after {commit_id} was published")


TASK: Final = Resource("checked", 0)
"""The task whose batches are staged and published."""
_BATCHES: Final = ((Token(1, 1), 0), (Token(2, 1), 0), (Token(2, 1), 1))


def _closing(make: Callable[[], Any], use: Callable[[Any], Any]) -> Any:
    """Return what a use of a new source or sink returns, and close it."""
    made = make()
    try:
        return use(made)
    finally:
        made.close()


def _read(
    make: Callable[[], Source[Any]],
    offsets: Mapping[str, Document],
    limit: Limit,
    spark: "SparkSession | None",
) -> list[Row]:
    batches = _closing(make, lambda source: read_batches(source, offsets, limit, spark))
    return [row for each in batches for row in each.rows]


def _advanced(offsets: Mapping[str, Document], advances: Sequence[Advance]) -> dict[str, Document]:
    """Return the offsets after a batch; each advance begins where its partition stood."""
    after = dict(offsets)
    for each in advances:
        name = identity(each.partition)
        assert after.get(name) == each.start, (
            f"an advance of {each.partition} begins at {each.start}, and {after.get(name)} is"
            " committed"
        )
        if each.end is None:
            after.pop(name, None)
        else:
            after[name] = each.end
    names = [identity(each.partition) for each in advances]
    assert len(names) == len(set(names)), f"a plan advances a partition twice: {names}"
    return after


def _check_repeated_plan(source: Source[Any], spark: "SparkSession | None") -> None:
    first, second = source.plan({}, WHOLE), source.plan({}, WHOLE)
    assert first.advances == second.advances, "a plan that is made again advances otherwise"
    _same(_planned(source, second, spark), _planned(source, first, spark), "planned twice")


def _planned(
    source: Source[Any], plan: "BatchPlan[Any]", spark: "SparkSession | None"
) -> list[Row]:
    return _rows(source.read(spark, plan.ranges)) if plan.ranges else []  # type: ignore[arg-type]


def _rows(read: Any) -> list[Row]:  # a DataFrame, or a pyarrow.Table
    rows: list[Row] = (read.toArrow() if hasattr(read, "toArrow") else read).to_pylist()
    return rows


def _frame(batch: Any, spark: "SparkSession | None") -> Any:
    assert spark is not None, "this sink takes Spark's frames: give check_sink a session as `spark`"
    return spark.createDataFrame(batch)  # pyright: ignore[reportUnknownMemberType]


def _same(found: Sequence[Row], wanted: Sequence[Row], what: str) -> None:
    """Fail unless both have the same rows, each as often."""
    left = list(wanted)
    more = list[Row]()
    for row in found:
        if row in left:
            left.remove(row)
        else:
            more.append(row)
    told = f"missing {left[:3]}, too many {more[:3]}"
    assert len(left) + len(more) == 0, (
        f"{what}: {len(left)} rows are missing and {len(more)} are too many; {told}"
    )
