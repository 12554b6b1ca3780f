"""The tests of the example: `pip install pytest` beside it, and run `pytest` here."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from fairlead_sqlite import SqliteSink, SqliteSource, SqliteSourceType

from fairlead.testing import check_sink, check_source

ORDERS = [{"id": number, "item": f"item {number}", "price": number / 4} for number in range(1, 8)]


def rows(path: Path, table: str) -> list[dict[str, object]]:
    with closing(sqlite3.connect(path)) as database:
        database.row_factory = sqlite3.Row
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        told = database.execute(f"SELECT * FROM {table}") if table in tables else ()
        return [dict(row) for row in told]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, item TEXT, price REAL)"
        )
        database.executemany("INSERT INTO orders VALUES (:id, :item, :price)", ORDERS)
    return path


def test_each_row_comes_once(shop: Path) -> None:
    config = {"source.database": str(shop), "source.table": "orders"}
    found = check_source(
        lambda: SqliteSource(str(shop), "orders"), SqliteSourceType.check_offset, config
    )
    assert found == ORDERS


def test_each_batch_is_published_once(tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    check_sink(
        lambda: SqliteSink(str(path), "orders"),
        pa.Table.from_pylist(ORDERS),
        lambda: rows(path, "orders"),
    )
