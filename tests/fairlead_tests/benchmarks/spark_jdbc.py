"""Spark's own JDBC source and sink, as a peer in benchmarks.

The driver's jar comes from Maven Central through the Ivy that is part of Spark.
"""

import time

from pyspark.sql import DataFrame, SparkSession

from fairlead_tests.postgres_server import PASSWORD, Database

DRIVER = "org.postgresql:postgresql:42.7.4"
_PARTS = 2
_ROWS_AT_ONCE = "10000"


class NoDriver(Exception):  # noqa: N818  # what is the case, not what went wrong
    """Spark or the driver is not available; the message says why."""


def copy_seconds(database: Database, source: str, target: str, most: int) -> float:
    """Return how long a copy of a table by its `id`, from 1 to `most`, takes; JVM and code warm.

    Raises `NoDriver`.
    """
    try:
        spark = (
            SparkSession.builder.master(f"local[{_PARTS}]")
            .config("spark.jars.packages", DRIVER)
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )
        rows = _rows(spark, database, source, most)
    except Exception as error:
        raise NoDriver(str(error).strip().splitlines()[0]) from error
    try:
        _write(rows.where("id <= 1000"), database, f"{target}_warm")
        began = time.perf_counter()
        _write(rows, database, target)
        return time.perf_counter() - began
    finally:
        spark.stop()


def _rows(spark: SparkSession, database: Database, table: str, most: int) -> DataFrame:
    bounds = {"lowerBound": "1", "upperBound": str(most), "numPartitions": str(_PARTS)}
    return (
        spark.read.format("jdbc")
        .options(**_connection(database), **bounds, dbtable=table)
        .options(partitionColumn="id", fetchsize=_ROWS_AT_ONCE)
        .load()
    )


def _write(rows: DataFrame, database: Database, table: str) -> None:
    writer = rows.write.format("jdbc").options(**_connection(database), dbtable=table)
    writer.option("batchsize", _ROWS_AT_ONCE).mode("append").save()


def _connection(database: Database) -> dict[str, str]:
    where = f"127.0.0.1:{database.server.port}/{database.name}"
    return {
        "url": f"jdbc:postgresql://{where}?reWriteBatchedInserts=true",
        "user": "postgres",
        "password": PASSWORD,
        "driver": "org.postgresql.Driver",
    }
