"""Rows that are counted as they pass, in the batch's own job."""

from collections.abc import Mapping
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import Observation
from pyspark.sql import functions as sf
from pyspark.sql.pandas import conversion
from pyspark.sql.utils import is_remote

from ..spi.rows import ArrowTable
from .arrow_schema import arrow_schema_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# PySpark's own walks through the stack, and asks the JVM twice, to show on Spark's pages by which
# line of Python a job was begun: that takes a twentieth of what Python does for a small batch.
cast("Any", conversion).SCCallSiteSync = nullcontext


class Passing:
    """What is aggregated of the rows that pass a point of a frame while its job runs."""

    def __init__(self) -> None:
        self._observation = Observation()
        self._again: DataFrame | None = None
        """What asks for the same in a job of its own; None: that is not needed."""

    def on(self, frame: "DataFrame", *aggregates: "Column") -> "DataFrame":
        """Return the frame, whose rows are looked at here."""
        if is_remote():
            self._again = frame.agg(*aggregates)
        return frame.observe(self._observation, *aggregates)

    @property
    def values(self) -> Mapping[str, Any]:
        """What was found, once the job is over; nothing if Spark saw that no row could pass."""
        try:
            found = self._observation.get
        except Py4JNetworkError:
            raise  # the JVM is gone, and nobody knows how many there were
        except Py4JError:
            return {}  # Spark left the point out
        if not found and self._again is not None:
            # A server of Spark Connect tells what it knows when its job ends, and that may be
            # nothing yet: it does not wait for its own listeners.
            row = self._again.collect()[0]
            return row.asDict()
        return found


class RowCount:
    """How many rows passed a point of a frame while its job ran."""

    def __init__(self) -> None:
        self._passing = Passing()

    def on(self, frame: "DataFrame", *beside: "Column") -> "DataFrame":
        """Return the frame, whose rows are counted here; `beside` is aggregated of them, too."""
        return self._passing.on(frame, sf.count(sf.lit(1)).alias("rows"), *beside)

    @property
    def rows(self) -> int:
        """How many there were, once the job is over."""
        return int(self.found.get("rows", 0))

    @cached_property
    def found(self) -> Mapping[str, Any]:
        """All that was aggregated, once the job is over, by name."""
        return self._passing.values


def above_queries(frame: "DataFrame") -> "DataFrame":
    """Return a frame with the same rows, below which rows are counted when `rows_of` runs it.

    Spark knows a frame that SQL has made by the text of its query, and would not tell who counts
    what the query reads that it has run: they would wait for ever. A frame above it is known by
    what it is made of.
    """
    return frame.select("*")


def rows_of(frame: "DataFrame") -> ArrowTable:
    """Run a frame, and return its rows, which this process holds.

    PySpark's `toArrow` asks the JVM for two settings first, which takes as many calls as the rest.
    """
    made: Any = frame
    if is_remote():
        return cast("ArrowTable", made.toArrow())
    parts = made._collect_as_arrow(empty_list_if_zero_records=False)  # noqa: SLF001
    table = cast("Any", pa).Table.from_batches(parts)
    return cast("ArrowTable", table.cast(arrow_schema_of(made.schema)))
