"""What workers run is loaded once, into the process that they are forks of."""

import json
import subprocess
import sys

import pytest

LOOK = """
import json, os, sys
from fairlead.runtime.node.worker.assembly import load_work
before = dict(os.environ)
load_work(sys.argv[1])
print(json.dumps({
    "runner": "fairlead.runtime.node.worker.spark_runner" in sys.modules,
    "pipeline": "fairlead.runtime.pipeline.connectors.spark_pipeline" in sys.modules,
    "spark": "pyspark" in sys.modules,
    "threads": len(os.listdir("/proc/self/task")),
    "same environment": dict(os.environ) == before,
}))
"""


def looked_at(kind: str) -> dict[str, object]:
    said = subprocess.run([sys.executable, "-c", LOOK, kind], check=True, capture_output=True)
    found: dict[str, object] = json.loads(said.stdout)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_what_forks_are_to_run_is_loaded_without_a_thread() -> None:
    assert looked_at("spark") == {
        "runner": True,
        "pipeline": True,
        "spark": True,
        "threads": 1,
        "same environment": True,
    }


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_forks_that_run_nothing_need_no_spark() -> None:
    assert looked_at("noop") == {
        "runner": False,
        "pipeline": False,
        "spark": False,
        "threads": 1,
        "same environment": True,
    }
