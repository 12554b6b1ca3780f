# pyright: basic
"""One job from CSV to Parquet with another engine, in a separate process.

`python -m fairlead_tests.benchmarks.csv_peers ENGINE SOURCE SINK` prints the seconds that the job
took, without imports and the start of a JVM. Engines are spark, duckdb and polars, on two cores.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession

from fairlead.runtime.demo.stage import SCHEMA
from fairlead.runtime.pipeline.engines.embedded.attach import warm_up

CORES = 2
COLUMNS: dict[str, str] = {
    name: kind for name, _, kind in (each.partition(" ") for each in SCHEMA.split(", "))
}


def by_spark(source: Path, sink: Path) -> float:
    """Run the job with Spark, warm, in the usual way."""
    session = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    folder = sink.with_name(sink.name + "-warm")
    folder.mkdir()
    warm_up(session, folder)
    begun = time.perf_counter()
    read = session.read.schema(SCHEMA).options(header="true", nullValue="NA").csv(str(source))
    read.write.parquet(str(sink))
    return time.perf_counter() - begun


def by_duckdb(source: Path, sink: Path) -> float:
    """DuckDB, into one file."""
    kinds = {name: kind.replace("STRING", "VARCHAR") for name, kind in COLUMNS.items()}
    begun = time.perf_counter()
    with duckdb.connect(config={"threads": CORES}) as session:
        session.execute(
            f"COPY (SELECT * FROM read_csv('{source}/*.csv', header=true, nullstr='NA',"
            f" columns={kinds})) TO '{sink}' (FORMAT parquet, COMPRESSION snappy)"
        )
    return time.perf_counter() - begun


def by_polars(source: Path, sink: Path) -> float:
    """Polars, streaming, into one file; POLARS_MAX_THREADS says with how many threads."""
    import polars as pl  # noqa: PLC0415  # pyright: ignore[reportMissingImports]  # may not be there

    kinds = {"INT": pl.Int32, "STRING": pl.String, "TIMESTAMP": pl.String}
    schema = {name: kinds[kind] for name, kind in COLUMNS.items()}
    begun = time.perf_counter()
    read = pl.scan_csv(f"{source}/*.csv", schema=schema, null_values="NA")
    at = pl.col("time_hour").str.to_datetime("%Y-%m-%dT%H:%M:%SZ")
    read.with_columns(at).sink_parquet(sink, compression="snappy")
    return time.perf_counter() - begun


ENGINES: dict[str, Callable[[Path, Path], float]] = {
    "spark": by_spark,
    "duckdb": by_duckdb,
    "polars": by_polars,
}

if __name__ == "__main__":
    print(ENGINES[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3])))
