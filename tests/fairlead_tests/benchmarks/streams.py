# pyright: basic
"""Spark Structured Streaming over folders of CSV files, in a separate process.

`python -m fairlead_tests.benchmarks.streams ROOT COUNT` starts a query, without a trigger's
interval, from each `ROOT/in/N` into `ROOT/out/N`, and runs them until its input ends.
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

SCHEMA = "id INT, name STRING, amount INT"


def main(root: Path, count: int) -> None:
    """Start the queries, and wait for the end."""
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.hadoop.fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    for number in range(count):
        reader = session.readStream.schema(SCHEMA).option("header", "true")
        rows = reader.csv(str(root / "in" / str(number)))
        write = rows.writeStream.format("parquet").option("path", str(root / "out" / str(number)))
        write.option("checkpointLocation", str(root / "check" / str(number))).start()
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
