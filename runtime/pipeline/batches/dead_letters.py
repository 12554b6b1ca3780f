# pyright: basic
"""Bad rows of one batch: counted, held against the limit, logged, and staged as dead letters.

Most batches have none, and pay for the count alone. Only if there are some a second job writes
them to the staging of the dead letter queue, which is written to as a sink is. The batch's one
commit holds both manifests, so a dead letter arrives once, as a row does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import pyarrow as pa
from pyspark.sql import functions as sf

from ....events.commits import CommitId, Manifest
from ..spi.connector import Pipeline
from ..spi.errors import BadInput, LostRange, RowsRefused
from ..spi.rows import ERROR_STAGES, RECORD_COLUMNS, Rejects
from ..spi.sink import Sink
from ..spi.source import Source
from ..spi.transform import Transform
from .counting import RowCount

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_MOST_LOGGED: Final = 100
"""How many bad rows of one batch are logged."""
_READING: Final = {"format": "string", "columns": "array<string>"}
"""The columns that say how a text is read again; null if it is not the row of the source."""
_REJECT: Final = pa.schema(
    [("position", pa.map_(pa.string(), pa.string())), ("reason", pa.string()), ("raw", pa.string())]
)
"""The columns of `Rejects` that each row has."""


class _Stage(NamedTuple):
    """A stage of the pipeline, as Connect's error headers describe it."""

    plugin: type
    """The class that rejects a row there."""
    error: type[Exception]
    """The error that ends a task which tolerates no bad row."""


_STAGES: Final = {
    "source": _Stage(Source, BadInput),
    "transform": _Stage(Transform, BadInput),
    "sink": _Stage(Sink, RowsRefused),
}


class RejectedRows(NamedTuple):
    """The bad rows of a batch: how many there are, and the manifest of their dead letters."""

    rows: int = 0
    unread: int = 0
    """How many of them the source did not hand on."""
    dead_letters: Manifest | None = None
    """None: nothing was staged."""


@dataclass(frozen=True, slots=True)
class BadRows:
    """The bad rows of one batch, once its own job is over."""

    pipeline: Pipeline
    commit_id: CommitId
    lost: Sequence[LostRange]
    """The ranges that could not be read; each counts as one row."""
    failed: Sequence[tuple[str, Rejects]] = ()
    """The rows that transforms and the sink fail for, each with the stage."""

    def reject(self, spark: "SparkSession", rows_in: int) -> RejectedRows:
        """Count and log them, and stage them if there is a queue.

        `rows_in` is how many rows the source handed on. Raises `BadInput` above the limit.
        """
        rejects = [("source", each) for each in self.pipeline.source.rejects()]
        if self.lost:
            rejects.append(("source", _of_ranges(spark, self.lost)))
        unread = sum(each.count() for _, each in rejects)
        is_as_read = True
        for transform in self.pipeline.transforms:
            found = transform.rejects()
            rejects += [("transform", each if is_as_read else _changed(each)) for each in found]
            is_as_read &= transform.keeps_rows
        # A transform that fails has the whole chain tried with rows of the source.
        for stage, each in self.failed:
            is_row = stage == "transform" or is_as_read
            rejects.append((stage, each if is_row else _changed(each)))
        counts = [each.count() for _, each in rejects]
        if not any(counts):
            return RejectedRows()
        count, now = sum(counts), datetime.now(UTC)
        frames = (
            self._letters(stage, each, now)
            for (stage, each), rows in zip(rejects, counts, strict=True)
            if rows
        )
        letters = reduce(lambda one, other: one.unionAll(other), frames)
        earlier = sum(each.read for _, each in rejects)
        self._check_limit(letters, count, rows_in + unread + earlier)
        self._log(letters, count)
        return RejectedRows(count, unread, self._staged(letters, count))

    def _letters(self, stage: str, rejects: Rejects, now: datetime) -> "DataFrame":
        """Return rows that a stage rejects as dead letters."""
        connector, task, _, _ = self.commit_id
        columns = rejects.frame.columns
        more = {**_READING, **RECORD_COLUMNS}
        further = (
            (sf.col(each) if each in columns else sf.lit(None)).cast(kind).alias(each)
            for each, kind in more.items()
        )
        letters = [
            sf.lit(connector).alias("connector"),
            sf.lit(task).alias("task"),
            sf.lit(stage).alias("stage"),
            *map(sf.col, _REJECT.names),
            sf.lit(now.isoformat(timespec="milliseconds")).alias("time"),
            *further,
        ]
        if self.pipeline.tolerance.has_headers:
            own = sf.col("context") if "context" in columns else _empty_map()
            letters.append(_headers(connector, task, stage, own).alias("headers"))
        return rejects.frame.select(*letters)

    def _check_limit(self, letters: "DataFrame", count: int, read: int) -> None:
        most = self.pipeline.tolerance.max_ratio
        if count > most * read:
            first = "".join(f" One of them: {each}." for each in _lines(letters, 1))
            raise BadInput(
                f"{count} of the {read} rows of a batch are bad, more than errors.max.ratio={most} "
                f"allows: nothing of the batch counts.{first} Mend the source, or raise "
                "errors.max.ratio"
            )

    def _log(self, letters: "DataFrame", count: int) -> None:
        log = self.pipeline.tolerance.log
        if log is None:
            return
        for each in _lines(letters, _MOST_LOGGED):
            log(f"bad row: {each}")
        if count > _MOST_LOGGED:
            log(f"bad rows: {count - _MOST_LOGGED} more in this batch")

    def _staged(self, letters: "DataFrame", count: int) -> Manifest | None:
        """Stage the dead letters if there is a queue; raises `BadInput` if their number changed."""
        if not self.pipeline.tolerance.queue:
            return None
        sink = self.pipeline.dead_letters
        if sink is None:
            raise RuntimeError("the pipeline has a queue of dead letters, and nothing to write it")
        written = RowCount()
        # One file is enough, and read is in parallel.
        frame = written.on(letters.repartition(1))
        manifest = sink.stage(cast("Any", frame), self.commit_id, 0)
        if written.rows != count:
            raise BadInput(
                f"{count} rows were bad, and {written.rows} when they were read again: a transform "
                "gives other rows each time; nothing of the batch counts"
            )
        return replace(manifest, rows=count)


def _changed(rejects: Rejects) -> Rejects:
    """Return rejects whose rows are no longer those of the source."""
    return Rejects(rejects.frame.drop(*_READING), rejects.count)


def _of_ranges(spark: "SparkSession", lost: Sequence[LostRange]) -> Rejects:
    rows = [{"position": list(each.position.items()), "reason": each.reason} for each in lost]
    table = pa.Table.from_pylist(rows, _REJECT)
    return Rejects(spark.createDataFrame(cast("Any", table)), lambda: len(lost))


def _lines(letters: "DataFrame", most: int) -> Iterator[str]:
    """Yield the first dead letters, each in one line."""
    for row in letters.limit(most).select("stage", "position", "reason").collect():
        position = ", ".join(row.position.values())
        yield f"{row.stage}, {position}: {row.reason}".replace("\n", " ")


def _headers(connector: str, task: int, stage: str, own: "Column") -> "Column":
    """Return the context of a dead letter, under the names that Connect gives its headers.

    The position is among them: that of a record is Connect's, that of a row in a file is its file.
    What the row has of its `own` replaces all else.
    """
    plugin, error_class = _STAGES[stage]
    error, reason = _full_name(error_class), sf.col("reason")
    headers = {
        "connector.name": sf.lit(connector),
        "task.id": sf.lit(str(task)),
        "stage": sf.lit(ERROR_STAGES[stage]),
        "class.name": sf.lit(_full_name(plugin)),
        "exception.class.name": sf.lit(error),
        "exception.message": reason,
        "exception.stacktrace": sf.concat(sf.lit(f"{error}: "), reason),
    }
    pairs = [each for name, text in headers.items() for each in (sf.lit(name), text)]
    position = sf.map_filter(sf.col("position"), lambda name, _: ~name.isin(*headers))
    every = sf.map_concat(sf.create_map(*pairs), sf.coalesce(position, _empty_map()))
    others = sf.map_filter(every, lambda name, _: ~sf.map_contains_key(own, name))
    every = sf.map_concat(others, own)
    texts = sf.map_filter(every, lambda _, text: text.isNotNull())
    return sf.transform_keys(texts, lambda name, _: sf.concat(sf.lit("__connect.errors."), name))


def _empty_map() -> "Column":
    return sf.create_map().cast("map<string, string>")


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
