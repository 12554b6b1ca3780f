"""Counts and aggregates of rows that pass, by the batch's own job."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import Observation
from pyspark.sql import functions as sf
from pyspark.sql.utils import is_remote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class RowAggregates:
    """Aggregates over a frame's rows, which its own job computes as they pass (`Observation`)."""

    def __init__(self) -> None:
        self._observation = Observation()
        self._again: DataFrame | None = None
        """The same aggregates as a query of their own; None: not needed."""

    def on(self, frame: "DataFrame", *aggregates: "Column") -> "DataFrame":
        """Return the frame with its rows aggregated at this point."""
        if is_remote():
            self._again = frame.agg(*aggregates)
        return frame.observe(self._observation, *aggregates)

    @property
    def values(self) -> Mapping[str, Any]:
        """The aggregates by name, once the job is over; empty if Spark left the point out."""
        try:
            values = self._observation.get
        except Py4JNetworkError:
            raise  # the JVM is gone, and nobody knows how many there were
        except Py4JError:
            return {}  # Spark left the point out
        if not values and self._again is not None:
            # A server of Spark Connect sends the metrics it has when its job ends, perhaps none
            # yet: it does not wait for its own listeners.
            row = self._again.collect()[0]
            return row.asDict()
        return values


class RowCount:
    """Counts the rows that pass a point of a frame while its job runs."""

    def __init__(self) -> None:
        self._aggregates = RowAggregates()

    def on(self, frame: "DataFrame", *beside: "Column") -> "DataFrame":
        """Return the frame with its rows counted at this point, and `beside` aggregated too."""
        return self._aggregates.on(frame, sf.count(sf.lit(1)).alias("rows"), *beside)

    @property
    def rows(self) -> int:
        """The number of rows, once the job is over."""
        return int(self.values.get("rows", 0))

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """All aggregates by name, once the job is over."""
        return self._aggregates.values


def above_queries(frame: "DataFrame") -> "DataFrame":
    """Wrap a frame, so that rows counted below it are counted when `rows_of` runs it.

    Spark names a frame of SQL by the text of its query, and would not report to an observation
    below it that it has run: that would wait for ever. A frame above it is named by its plan.
    """
    return frame.select("*")
