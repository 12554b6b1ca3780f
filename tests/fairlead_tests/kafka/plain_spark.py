# pyright: basic
"""Copies a topic to files with Spark's own Kafka package, as one batch.

Run as a module it does so once, in a process and a JVM of its own, and prints how many seconds it
took from a session that was warm. Its jars come from Maven Central, one by one: none of the
package's releases for this Spark has all that it names.
"""

import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fairlead_tests.java_peer import NoPeer, run_tool, tool

_JARS: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
_KEPT: Final = Path(sys.prefix) / "spark-kafka"
_LONGEST_S: Final = 900
_BESIDE: Final = ("CAST(key AS STRING) AS _key", "partition", "offset", "timestamp")
_VALUE: Final = "CAST(value AS STRING) AS _value"


def seconds_of_spark(bootstrap: str, topic: str, out: Path, schema: str = "") -> float:
    """Return how long Spark takes for a whole topic, values as text or, by a schema, as JSON.

    Raises `NoPeer` where its jars cannot be had.
    """
    told = [":".join(map(str, _fetched())), bootstrap, topic, str(out), schema]
    try:
        ran = subprocess.run(
            [sys.executable, "-m", __name__, *told],
            capture_output=True,
            text=True,
            timeout=_LONGEST_S,
            check=True,
        )
    except subprocess.SubprocessError as error:
        raise NoPeer(f"plain Spark does not read from Kafka: {error}") from error
    return float(ran.stdout.split()[-1])


def _fetched() -> list[Path]:
    """Return the jars, fetched unless they are here."""
    _KEPT.mkdir(exist_ok=True)
    for jar in _JARS:
        if not _path(jar).exists():
            command = [tool("mvn"), "-q", "-B", "dependency:copy", f"-Dartifact={jar}"]
            run_tool([*command, f"-DoutputDirectory={_KEPT}"], f"{jar} could not be had")
    return [_path(jar) for jar in _JARS]


def _path(jar: str) -> Path:
    _, name, version = jar.split(":")
    return _KEPT / f"{name}-{version}.jar"


def _main(classpath: str, bootstrap: str, topic: str, out: str, schema: str) -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415  # not where only the jars are asked for
    from pyspark.sql import functions as sf  # noqa: PLC0415

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraClassPath", classpath)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )

    def copy(into: str, most: int | None = None) -> None:
        options: Mapping[str, str] = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
        read = spark.read.format("kafka").options(**options).load()
        read = read if most is None else read.limit(most)
        if schema:
            value = sf.from_json(sf.col("value").cast("string"), schema).alias("value")
            rows = read.select(value, *map(sf.expr, _BESIDE)).select("value.*", *_NAMES)
        else:
            rows = read.selectExpr(_VALUE, *_BESIDE)
        rows.write.parquet(into)

    copy(f"{out}-warm", most=1000)
    began = time.perf_counter()
    copy(out)
    print(time.perf_counter() - began)


_NAMES: Final = ("_key", "partition", "offset", "timestamp")

if __name__ == "__main__":
    _main(*sys.argv[1:])
