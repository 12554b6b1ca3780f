"""Rows that are counted as they pass, in the batch's own job."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import Observation
from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RowCount:
    """How many rows passed a point of a frame while its job ran."""

    def __init__(self) -> None:
        self._observation = Observation()

    def on(self, frame: "DataFrame") -> "DataFrame":
        """Return the frame, whose rows are counted here."""
        return frame.observe(self._observation, sf.count(sf.lit(1)).alias("rows"))

    @property
    def rows(self) -> int:
        """How many there were, once the job is over."""
        return int(observed(self._observation).get("rows", 0))


def observed(observation: Observation) -> Mapping[str, Any]:
    """Return what was counted while a job ran; nothing if Spark saw that no row could pass."""
    try:
        return observation.get
    except Py4JNetworkError:
        raise  # the JVM is gone, and nobody knows how many there were
    except Py4JError:
        return {}  # Spark left the point out
