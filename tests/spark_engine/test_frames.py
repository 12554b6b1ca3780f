# pyright: basic
"""Rows that a worker holds become a frame, and come back as they were."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.batches.frames import frame_of, rows_of, times_as_texts
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.sessions import session_beside

SKIPPED = dt.datetime.fromisoformat("2026-03-08 02:30")
TWICE = dt.datetime.fromisoformat("2026-11-01 01:30:00.000001")
DAY_END = 86_400_000_000


@pytest.mark.spark
def test_a_time_without_a_zone_is_none_of_the_session_that_may_skip_or_repeat_it(
    engine: Embedded,
) -> None:
    unzoned, days = pa.timestamp("us"), pa.time64("us")
    nested = pa.struct([("at", unzoned)])
    table: Any = pa.table(
        {
            "at": pa.array([SKIPPED, TWICE, None], unzoned),
            "list": pa.array([[SKIPPED, None], None, [TWICE]], pa.list_(unzoned)),
            "nested": pa.array([{"at": SKIPPED}, None, {"at": None}], nested),
            "map": pa.array([[("a", TWICE)], None, []], pa.map_(pa.string(), unzoned)),
            "moment": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
            "opens": pa.array([0, None, DAY_END], pa.int64()).cast(days),
            "opened": pa.array([[1, None], None, []], pa.list_(days)),
        }
    )

    def passed(spark: Any) -> Any:
        there = session_beside(spark, {"spark.sql.session.timeZone": "America/New_York"})
        return rows_of(frame_of(there, table.take([0, 1, 2])))

    found: Any = engine.run("t", passed)
    texts = {
        "opens": ["00:00:00.000000", None, "24:00:00.000000"],
        "opened": [["00:00:00.000001", None], None, []],
    }
    assert found.to_pydict() == table.drop_columns([*texts]).to_pydict() | texts
    assert found.schema.field("at").type == unzoned


def test_the_end_of_a_day_is_a_time_of_day_in_lists_too() -> None:
    numbers = pa.chunked_array([pa.array([[1, None, DAY_END], None, []], pa.list_(pa.int64()))])
    lists = numbers.cast(pa.list_(pa.time64("us")))
    want = [["00:00:00.000001", None, "24:00:00.000000"], None, []]
    assert times_as_texts(lists).to_pylist() == want
