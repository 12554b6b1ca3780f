# pyright: basic
"""Bad rows of one batch: counted, held against what is allowed, and staged as dead letters.

Most batches have none, and pay for the count alone. Only if there are some a second job writes
them to the staging of the dead letter queue, which is written to as a sink is. The batch's one
commit holds both manifests, so a dead letter arrives once, as a row does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import pyarrow as pa
from pyspark.sql import functions as sf

from ....events.commits import CommitId, Manifest
from ..spi.connector import Pipeline
from ..spi.errors import BadInput, LostRange, RowsRefused
from ..spi.rows import Rejects
from ..spi.sink import Sink
from ..spi.source import Source
from ..spi.transform import Transform
from .counting import RowCount

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

_MOST_LOGGED: Final = 100
"""How many bad rows of one batch are logged."""
_STAGES: Final = {
    "source": ("VALUE_CONVERTER", Source, BadInput),
    "transform": ("TRANSFORMATION", Transform, BadInput),
    "sink": ("TASK_PUT", Sink, RowsRefused),
}
"""What Connect calls them, what finds such a row, and what ends a task that tolerates none."""
_TOLD: Final = ("position", "reason", "raw")
_RECORD: Final = ("key", "value")
"""What a letter keeps of the record that was read, where it was one."""
_REJECT: Final = pa.schema(
    [("position", pa.map_(pa.string(), pa.string())), ("reason", pa.string()), ("raw", pa.string())]
)


class SetAside(NamedTuple):
    """How many rows of a batch were left out, and what was staged of them; None: nothing.

    `rows_read` are those of them that the source did not hand on.
    """

    rows: int = 0
    rows_read: int = 0
    manifest: Manifest | None = None


@dataclass(frozen=True, slots=True)
class BadRows:
    """The bad rows of one batch, once its own job is over."""

    pipeline: Pipeline
    commit_id: CommitId
    lost: Sequence[LostRange]
    """What could not be read at all; each counts as one row."""
    failed: Sequence[tuple[str, Rejects]] = ()
    """What transforms and the sink fail for, each with the stage."""

    def set_aside(self, spark: "SparkSession", rows_in: int) -> SetAside:
        """Count them, and stage them where that is wanted; raises `BadInput` if they are too many.

        `rows_in` is how many rows the source handed on.
        """
        found = [("source", each) for each in self.pipeline.source.rejects()]
        if self.lost:
            found.append(("source", _of_ranges(spark, self.lost)))
        not_read = sum(each.count() for _, each in found)
        found += [("transform", each) for one in self.pipeline.transforms for each in one.rejects()]
        found += self.failed
        counted = [(stage, each, each.count()) for stage, each in found]
        count = sum(rows for _, _, rows in counted)
        if not count:
            return SetAside()
        letters = reduce(
            lambda one, other: one.unionAll(other),
            [_told(stage, each) for stage, each, rows in counted if rows],
        )
        self._refuse_too_many(letters, count, rows_in + not_read)
        self._log(letters, count)
        if not self.pipeline.tolerance.queue:
            return SetAside(count, not_read)
        return SetAside(count, not_read, self._staged(letters, count))

    def _refuse_too_many(self, letters: "DataFrame", count: int, read: int) -> None:
        most = self.pipeline.tolerance.max_ratio
        if count > most * read:
            first = "".join(f" One of them: {_line(each)}." for each in letters.limit(1).collect())
            raise BadInput(
                f"{count} of the {read} rows of a batch are bad, more than errors.max.ratio={most} "
                f"allows: nothing of the batch counts.{first} Mend the source, or raise "
                "errors.max.ratio"
            )

    def _log(self, letters: "DataFrame", count: int) -> None:
        log = self.pipeline.tolerance.log
        if log is None:
            return
        for each in letters.limit(_MOST_LOGGED).collect():
            log(f"bad row: {_line(each)}")
        if count > _MOST_LOGGED:
            log(f"bad rows: {count - _MOST_LOGGED} more in this batch")

    def _staged(self, letters: "DataFrame", count: int) -> Manifest:
        sink = self.pipeline.dead_letters
        if sink is None:
            raise RuntimeError("the pipeline has a queue of dead letters, and nothing to write it")
        written = RowCount()
        # One file is enough, and read is in parallel.
        frame = written.on(self._addressed(letters).repartition(1))
        manifest = sink.stage(cast("Any", frame), self.commit_id, 0)
        if written.rows != count:
            raise BadInput(
                f"{count} rows were bad, and {written.rows} when they were read again: a transform "
                "gives other rows each time; nothing of the batch counts"
            )
        return replace(manifest, rows=count)

    def _addressed(self, letters: "DataFrame") -> "DataFrame":
        """Say of each letter whose it is, and when."""
        connector, task, _, _ = self.commit_id
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        columns = [
            sf.lit(connector).alias("connector"),
            sf.lit(task).alias("task"),
            *(sf.col(each) for each in ("stage", *_TOLD)),
            sf.lit(now).alias("time"),
            *(sf.col(each) for each in _RECORD),
        ]
        if self.pipeline.tolerance.has_headers:
            columns.append(_headers(connector, task).alias("headers"))
        return letters.select(*columns)


def _told(stage: str, rejects: Rejects) -> "DataFrame":
    there = rejects.frame.columns
    record = (
        (sf.col(each) if each in there else sf.lit(None)).cast("binary").alias(each)
        for each in _RECORD
    )
    told = (sf.col(each) for each in _TOLD)
    return rejects.frame.select(sf.lit(stage).alias("stage"), *told, *record)


def _of_ranges(spark: "SparkSession", lost: Sequence[LostRange]) -> Rejects:
    rows = [{"position": list(each.position.items()), "reason": each.reason} for each in lost]
    table = pa.Table.from_pylist(rows, _REJECT)
    return Rejects(spark.createDataFrame(cast("Any", table)), lambda: len(lost))


def _line(row: "Row") -> str:
    return f"{row.stage}, {', '.join(row.position.values())}: {row.reason}".replace("\n", " ")


def _headers(connector: str, task: int) -> "Column":
    """Return the context of a letter, under the names that Connect gives its headers.

    The position is among them: that of a record is Connect's, that of a row in a file is its file.
    """
    words, finders, errors = (
        _by_stage({stage: told[column] for stage, told in _STAGES.items()}) for column in range(3)
    )
    reason = sf.col("reason")
    told = {
        "connector.name": sf.lit(connector),
        "task.id": sf.lit(str(task)),
        "stage": words,
        "class.name": finders,
        "exception.class.name": errors,
        "exception.message": reason,
        "exception.stacktrace": sf.concat(errors, sf.lit(": "), reason),
    }
    pairs = [each for name, text in told.items() for each in (sf.lit(name), text)]
    nowhere = sf.create_map().cast("map<string, string>")
    place = sf.map_filter(sf.col("position"), lambda name, _: ~name.isin(*told))
    every = sf.map_concat(sf.create_map(*pairs), sf.coalesce(place, nowhere))
    given = sf.map_filter(every, lambda _, text: text.isNotNull())
    return sf.transform_keys(given, lambda name, _: sf.concat(sf.lit("__connect.errors."), name))


def _by_stage(told: Mapping[str, str | type]) -> "Column":
    """Return what is told of a letter's stage; a class is told by its full name."""
    spelled = {
        stage: each if isinstance(each, str) else f"{each.__module__}.{each.__qualname__}"
        for stage, each in told.items()
    }
    pairs = sf.create_map(*(sf.lit(word) for pair in spelled.items() for word in pair))
    return pairs[sf.col("stage")]
