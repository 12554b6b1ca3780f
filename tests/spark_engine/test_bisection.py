# pyright: basic
"""Rows that a job fails for, found on a real JVM."""

from typing import Any

import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.batches.bisection import failing_rows
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import TaskError


@pytest.mark.spark
def test_rows_are_searched_that_hold_lists_among_which_nulls_are(engine: Embedded) -> None:
    lists = pa.array([None, ["a"], None, ["b"]], pa.list_(pa.string()))
    table: Any = pa.table({"n": [1, 2, 3, 4], "tags": lists})

    def attempt(part: Any) -> None:
        check = "assert_true(n <> 3)"
        engine.run("t", lambda spark: spark.createDataFrame(part).selectExpr(check).collect())

    def reason(error: Exception) -> str | None:
        return str(error) if isinstance(error, TaskError) else None

    assert [*failing_rows(table, attempt, reason, 9)] == [2]
