# pyright: basic
"""A sample of a database, in each mode: the first rows, and nothing is made in the database."""

from typing import Any

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors.sample import read_sample
from fairlead.runtime.pipeline.spi.context import Context
from fairlead_tests.postgres_pipes import source_config
from fairlead_tests.postgres_server import Database

MODES = {
    "bulk": {"mode": "bulk", "table_include_list": r"public\.orders"},
    "xmin": {"mode": "xmin", "table_include_list": r"public\.orders"},
    "log": {"mode": "log", "table_include_list": r"public\.orders"},
    "no snapshot": {
        "mode": "log",
        "table_include_list": r"public\.orders",
        "snapshot_mode": "no_data",
    },
    "query": {
        "mode": "incrementing",
        "query": "SELECT * FROM orders",
        "incrementing_column_name": "id",
    },
}


def no_spark(job: Any) -> Any:
    raise AssertionError(f"{job} needs no Spark")


def test_a_sample_of_a_database_has_its_first_rows_and_makes_nothing(database: Database) -> None:
    database.run("CREATE TABLE orders (id bigserial PRIMARY KEY, item text, price numeric(10, 2))")
    database.run(
        "INSERT INTO orders (item, price) SELECT 'i' || i, i / 4.0 FROM generate_series(1, 5000) i"
    )
    for mode, given in MODES.items():
        config = source_config(database, given)
        sample = read_sample(config, Context(Resource("sample"), print), no_spark)
        types = {each.name: each.type for each in sample.before.columns}
        assert types.items() >= {"id": "bigint", "item": "string", "price": "decimal(10,2)"}.items()
        at = [each.name for each in sample.before.columns].index("item")
        assert [row[at] for row in sample.before.rows] == [f"i{n}" for n in range(1, 11)], mode
        assert ("__op" in types) == (given["mode"] == "log"), types
    assert database.run("SELECT * FROM pg_replication_slots") == []
    assert database.run("SELECT * FROM pg_publication") == []
