"""The job that makes a fresh JVM fast: what a first batch does, in small."""

from pathlib import Path

from pyspark.sql import SparkSession


def warm_up(session: SparkSession, folder: Path) -> None:
    """Read a csv file, transform it in SQL, write partitioned parquet, read it back."""
    rows, out = folder / "warm.csv", folder / "warm.parquet"
    rows.write_text("id,day,name\n1,2024-01-01,a\n2,2024-01-02,b\n")
    read = session.read.csv(str(rows), header=True, schema="id bigint, day date, name string")
    shaped = session.sql("SELECT id + 1 AS id, day, upper(name) AS name FROM {rows}", rows=read)
    shaped.write.partitionBy("day").parquet(str(out))
    session.read.parquet(str(out)).count()
