# pyright: basic
"""Of the rows of a batch that have the same key, one stays, the same at each try."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from transforms.conftest import made

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.config import ConfigInvalid

pytestmark = pytest.mark.spark

EVENTS = pa.table(
    {
        "k": ["a", "b", None, "a", "c", None, "b", "a"],
        "n": [1, 2, 3, 4, 5, 6, 7, 8],
        "at": [3, 1, 1, 9, 1, 2, None, 9],
    }
)
"""Rows as a record of Kafka or of PostgreSQL gives them: their order is that of their source."""


def left(engine: Embedded, keys: dict[str, str], frame: Callable[[SparkSession], Any]) -> list[int]:
    """Return the column `n` of the rows that stay, in their order."""
    transform = made("dedupe", keys)
    return engine.run(
        "t", lambda spark: [each.n for each in transform.apply(frame(spark)).collect()]
    )


def described(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(EVENTS)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"fields": "k"}, [5, 6, 7, 8]),
        ({"fields": "k", "keep": "first"}, [1, 2, 3, 5]),
        ({"fields": "K,at"}, [1, 2, 3, 5, 6, 7, 8]),
        ({"fields": "k", "order.by": "at"}, [2, 5, 6, 8]),
        ({"fields": "k", "order.by": "at", "keep": "first"}, [1, 2, 3, 5]),
        ({"fields": "k", "order.by": "at,n"}, [2, 5, 6, 8]),
    ],
    ids=str,
)
def test_one_row_of_a_key_stays_and_rows_keep_their_order(
    keys: dict[str, str], expected: list[int], engine: Embedded
) -> None:
    assert left(engine, keys, described) == expected


def test_lines_of_files_are_in_the_order_of_the_files_names(
    engine: Embedded, tmp_path: Path
) -> None:
    for name, size in (("b.csv", 2_500), ("a.csv", 5_600)):  # Spark reads the larger one first
        rows = "".join(f"{n % 3},{n}\n" for n in range(size))
        (tmp_path / name).write_text(f"k,n\n{rows}")

    def split(spark: SparkSession) -> DataFrame:
        spark.conf.set("spark.sql.files.maxPartitionBytes", "16384")
        return spark.read.csv(str(tmp_path), schema="k INT, n INT", header=True)

    assert left(engine, {"fields": "k"}, split) == [2_497, 2_498, 2_499]
    assert left(engine, {"fields": "k", "keep": "first"}, split) == [0, 1, 2]


GROUPED = (
    "SELECT k, n, max(at) AS at FROM VALUES ('a', 1, 2), ('a', 2, 2) AS t(k, n, at) GROUP BY 1, 2"
)


@pytest.mark.parametrize(
    "query", [GROUPED, f"SELECT a.* FROM ({GROUPED}) a JOIN ({GROUPED}) b USING (k, n)"]
)
def test_rows_in_any_order_need_a_column_that_says_which_is_last(
    query: str, engine: Embedded
) -> None:
    with pytest.raises(ConfigInvalid, match=r"put it before that, or give order\.by"):
        left(engine, {"fields": "k"}, lambda spark: spark.sql(query))
    ordered = {"fields": "k", "order.by": "at"}
    assert left(engine, ordered, lambda spark: spark.sql(query)) == [2]


def test_a_column_that_is_not_there_is_told(engine: Embedded) -> None:
    with pytest.raises(ConfigInvalid, match="the rows have no column id; they have k, n, at"):
        left(engine, {"fields": "id"}, described)
