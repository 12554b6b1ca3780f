"""The engine part of a worker: it shares a JVM, runs jobs on request, and prints the results.

`python sharer.py SOCKET NAME SIGNS` reads lines: `warm` waits for the JVM, `children` asks for its
own processes, and others are the names of jobs. Each is answered with a line of JSON.
"""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import psutil
from pyspark import SparkContext
from pyspark.sql import SparkSession

from fairlead.runtime.pipeline.batches.session import TaskSession
from fairlead.runtime.pipeline.engines.engine import EngineDown, TaskError
from fairlead.runtime.pipeline.engines.shared.client import SharedEngine
from fairlead_tests.spark_engine.signs import until_told

SECRET = "Hush-hush-of-a-sharer"


class Sharer:
    def __init__(self, place: str, name: str, signs: str) -> None:
        self.name = name
        self.engine = SharedEngine(Path(place), name, secrets=lambda: {SECRET: "${ours}"})
        self.jobs: dict[str, Callable[[SparkSession], object]] = {
            "count": lambda spark: spark.range(5).count(),
            "look": self.look,
            "leak": leak,
            "own": own,
            "gateway": lambda _: SparkContext._gateway.gateway_parameters.port,  # type: ignore[union-attr]
            "wait": until_told(Path(signs), name),
        }

    def warm(self) -> list[str]:
        self.engine.open()
        while not self.engine.wait_warm(120):
            self.engine.open()
        return ["warm", self.engine.detail]

    def look(self, spark: SparkSession) -> object:
        """Change what belongs to a session, and tell what there is."""
        spark.range(3).createOrReplaceTempView(f"of_{self.name}")
        spark.conf.set("spark.sql.shuffle.partitions", str(len(self.name)))
        views = [each.name for each in spark.catalog.listTables()]
        return [views, spark.conf.get("spark.sql.shuffle.partitions")]

    def do(self, job: str) -> None:
        try:
            tell(["done", self.engine.run(f"{self.name}-{job}", self.jobs[job])])
        except (EngineDown, TaskError) as error:
            tell([type(error).__name__, str(error)])


def leak(spark: SparkSession) -> object:
    """Fail with a secret in the error, and then have the JVM log one."""
    try:
        return spark.sql(f"SELECT raise_error('no login with {SECRET}') FROM range(3)").collect()
    finally:
        loggers = spark._jvm.org.slf4j.LoggerFactory  # type: ignore[union-attr]
        loggers.getLogger("of.a.test").warn(f"afterwards {SECRET}")


def own(spark: SparkSession) -> object:
    """Set what a connector has for itself, and tell what it sees of it, and the others do."""
    beside = TaskSession({"spark.sql.shuffle.partitions": "7", "spark.sql.ansi.enabled": "false"})
    mine = beside.beside(spark)
    seen = [each.conf.get("spark.sql.shuffle.partitions") for each in (mine, spark)]
    return [*seen, mine.sql("SELECT CAST('x' AS INT) AS x").collect()[0].x]


def tell(told: object) -> None:
    print(json.dumps(told), flush=True)


def main(place: str, name: str, signs: str) -> None:
    sharer = Sharer(place, name, signs)
    for line in sys.stdin:
        match line.strip():
            case "warm":
                tell(sharer.warm())
            case "children":
                tell([each.name() for each in psutil.Process().children(recursive=True)])
            case "wait":
                threading.Thread(target=sharer.do, args=("wait",)).start()
            case job:
                sharer.do(job)
    sharer.engine.close(5)


if __name__ == "__main__":
    main(*sys.argv[1:])
