# pyright: basic
"""Rows on their way to a Spark Connect server: as they were, and nothing is left of them."""

import gc
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.engines.connect.engine import ConnectEngine
from fairlead.runtime.pipeline.engines.connect.session import folder_of_rows
from fairlead.runtime.pipeline.engines.executors.cluster import SparkCluster
from fairlead_tests.spark_engine.connect_server import ConnectServerProcess

pytestmark = pytest.mark.spark

ROWS = 10_000
"""More than go within the plan of a query."""
KINDS: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "a name": pa.string(),
    "raw": pa.binary(),
    "money": pa.decimal128(20, 4),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
    "tags": pa.list_(pa.string()),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    "place": pa.map_(pa.string(), pa.string()),
    "inner": pa.struct([("x.y", pa.int32())]),
}


def table(rows: int = ROWS) -> pa.Table:
    full = {
        "a name": "ü{}",
        "raw": b"\x00\xff",
        "money": Decimal("12.3400"),
        "day": date(1, 2, 3),
        "at": datetime(2024, 5, 6, 7, 8, 9, 10, UTC),
        "tags": ["a", None],
        "headers": [{"key": "k", "value": b"v"}],
        "place": [("a", "b")],
        "inner": {"x.y": 7},
    }
    values = [{"id": n, **(full if n % 2 else {})} for n in range(rows)]
    return pa.Table.from_pylist(values, pa.schema(list(KINDS.items())))


def sent(shared: Path) -> list[Path]:
    return sorted(shared.glob(".fairlead-*/*"))


@pytest.mark.parametrize("rows", [0, 2, ROWS])
def test_rows_come_to_the_server_as_they_are_and_a_file_of_them_goes_with_the_job(
    on_server: ConnectEngine, shared: Path, rows: int
) -> None:
    def job(spark: Any) -> tuple[pa.Table, int]:
        frame = spark.sql("SELECT * FROM {t}", t=spark.createDataFrame(table(rows)))
        return frame.toArrow(), len(sent(shared))

    back, files = on_server.run("job", job)
    assert back.select([*KINDS]).to_pylist() == table(rows).to_pylist()
    assert files == (1 if rows == ROWS else 0)
    assert sent(shared) == []


@pytest.mark.parametrize(
    "columns",
    [
        pa.schema([("id", pa.int64()), ("ID", pa.int64())]),
        pa.schema([("id", pa.int64()), ("nothing", pa.null())]),
    ],
    ids=["names", "nulls"],
)
def test_columns_that_no_file_has_reach_the_server_as_well(
    on_server: ConnectEngine, shared: Path, columns: pa.Schema
) -> None:
    many = 4 * ROWS  # of so few bytes each
    one = pa.table({"id": pa.array(range(many), pa.int64())})
    more = pa.array([None] * many, columns.types[1])
    rows = one.append_column(columns.field(1), more)
    back, files = on_server.run(
        "job", lambda spark: (spark.createDataFrame(rows).toArrow(), len(sent(shared)))
    )
    assert back.column_names == columns.names
    assert back.to_pylist() == rows.to_pylist()
    assert files == 0


def test_rows_that_somebody_holds_stay_until_he_lets_go(
    on_server: ConnectEngine, shared: Path
) -> None:
    held = [on_server.run("hold", lambda spark: spark.createDataFrame(table()))]
    assert on_server.run("use", lambda _: held[0].count()) == ROWS
    assert len(sent(shared)) == 1
    held.clear()
    gc.collect()
    assert sent(shared) == []


def test_what_a_former_process_has_left_is_removed(
    server: ConnectServerProcess, on_server: ConnectEngine, shared: Path, tmp_path: Path
) -> None:
    del on_server
    left = folder_of_rows(shared, "01234567-89ab-cdef-0123-456789abcdef")
    left.mkdir()
    (tmp_path / "connect-session").write_text("01234567-89ab-cdef-0123-456789abcdef")
    heir = ConnectEngine(tmp_path, SparkCluster(server.master, (shared,)))
    heir.open()
    assert heir.wait_warm(180), heir.detail
    assert not left.exists()
    driver = heir._driver
    assert driver
    driver.jvm.kill("the test is over")
