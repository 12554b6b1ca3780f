"""A process that owns an engine, configured by its arguments; it prints the result.

`python owner.py WORK_DIR HEAP CONF_AS_JSON` prints one line of JSON once the engine is warm or
down, and goes on until its input ends; then it closes the engine.
"""

import json
import sys
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded


def in_python(spark: SparkSession) -> int:
    """A job that needs a Python worker."""
    return sum(spark.sparkContext.parallelize([1, 2], 1).map(int).collect())


def main(work_dir: str, heap: str, conf: str) -> None:
    engine = Embedded(Path(work_dir), cores=1, heap=heap, conf=json.loads(conf))
    engine.open()
    warm = engine.wait_warm(120)
    told: dict[str, object] = {"state": engine.state.value, "detail": engine.detail, "pids": []}
    if warm:
        told["sum"] = engine.run("sum", in_python)
        jvm = psutil.Process(engine.pid)
        told["exe"] = jvm.exe()
        told["pids"] = [jvm.pid, *(child.pid for child in jvm.children(recursive=True))]
    print(json.dumps(told), flush=True)
    sys.stdin.read()
    engine.close(20)


if __name__ == "__main__":
    main(*sys.argv[1:])
