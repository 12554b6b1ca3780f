# pyright: basic
"""Which columns a sink's are made of, asked of the plans of a real Spark."""

from typing import Any

import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.lineage.run import columns_of

DDL = "id INT, name STRING, xs ARRAY<INT>, at TIMESTAMP"
QUERIES = {
    "SELECT * FROM input": {"id": "id", "name": "name", "xs": "xs", "at": "at"},
    "SELECT id + length(name) AS n, current_date() AS d FROM input": {"n": "id name", "d": ""},
    "SELECT explode(xs) AS x, upper(name) AS u FROM input": {"x": "xs", "u": "name"},
    "SELECT name, count(*) AS c, max(at) AS last FROM input GROUP BY name": {
        "name": "name",
        "c": "",
        "last": "at",
    },
    "SELECT a.name, b.id AS other FROM input a JOIN input b ON a.id = b.id": {
        "name": "name",
        "other": "id",
    },
    "WITH t AS (SELECT id AS k, name FROM input) SELECT k, row_number() OVER (ORDER BY name) AS r"
    " FROM t WHERE k > 1": {"k": "id", "r": "name"},
    "SELECT i.id, z.name FROM input i JOIN VALUES (1, 'a') AS z(id, name) ON i.id = z.id": {
        "id": "id",
        "name": "",
    },
}


ALIKE = ("GROUP BY", "VALUES")
"""What queries have whose columns are found as those of the others."""


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        pytest.param(each, marks=[pytest.mark.soak] * any(part in each for part in ALIKE))
        for each in QUERIES
    ],
)
def test_columns_of_a_query_go_back_to_those_that_were_read(engine: Embedded, query: str) -> None:
    def look(spark: Any) -> Any:
        read = spark.createDataFrame([], DDL)
        read.createOrReplaceTempView("input")
        return columns_of(read, spark.sql(query))

    found = engine.run("lineage", look)
    assert found.made_of is not None
    told = {name: " ".join(sorted(columns)) for name, columns in found.made_of.items()}
    assert told == QUERIES[query]
    assert found.read == {"id": "int", "name": "string", "xs": "array<int>", "at": "timestamp"}


@pytest.mark.spark
def test_names_that_are_given_anew_and_columns_that_are_left_out(engine: Embedded) -> None:
    def look(spark: Any) -> Any:
        read = spark.createDataFrame([], DDL)
        written = read.withColumnRenamed("id", "key").drop("xs").selectExpr("key", "name AS name")
        return columns_of(read, written)

    found = engine.run("lineage", look)
    assert found.made_of == {"key": frozenset({"id"}), "name": frozenset({"name"})}
    assert found.written == {"key": "int", "name": "string"}


def test_rows_that_pass_as_they_are() -> None:
    table: Any = pa.table({"n": pa.array([1], pa.int64()), "v": ["a"]})
    found = columns_of(table, table)
    assert found.read == found.written == {"n": "int64", "v": "string"}
    assert found.made_of == {"n": frozenset({"n"}), "v": frozenset({"v"})}


def test_nobody_knows_what_rows_that_are_held_were_made_of() -> None:
    before: Any = pa.table({"n": [1]})
    after: Any = pa.table({"m": [1]})
    assert columns_of(before, after).made_of is None
