# pyright: basic
"""Python functions as the tasks of one Spark job."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pyarrow as pa
import pytest

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import Cancelled, EngineState
from fairlead.runtime.pipeline.engines.executors.arrow_job import OtherPython, Work, run_job
from fairlead.runtime.pipeline.engines.sessions import may_run_arrow
from fairlead_tests.spark_engine.signs import gone, runs

pytestmark = pytest.mark.spark


def stand(signs: Path, name: str) -> Work:
    """Return what tells who runs, and then waits for a writer of a pipe."""

    def wait() -> list[int]:
        (signs / f"{name}.tmp").write_text(str(os.getpid()))
        (signs / f"{name}.tmp").rename(signs / f"{name}.pid")
        with (signs / "pipe").open("rb") as pipe:
            return [*pipe.read()]

    return wait


def row(number: int) -> Work:
    return lambda: [number, f"é{number}", None]


def test_an_engine_that_is_warm_has_started_python_before_it_is_asked_to(engine: Embedded) -> None:
    assert engine.pid is not None
    jvm = psutil.Process(engine.pid)
    deadline = time.monotonic() + 120
    while not any("python_daemon" in " ".join(each.cmdline()) for each in jvm.children()):
        assert time.monotonic() < deadline, "no job was run, and there is no process of Python"
        time.sleep(0.1)


def test_functions_return_in_their_order_and_run_one_thread_of_arrow(engine: Embedded) -> None:
    works = [row(each) for each in range(5)]
    found = engine.run("numbers", lambda spark: run_job(spark, works))
    assert found == [[each, f"é{each}", None] for each in range(5)]
    threads = engine.run("threads", lambda spark: run_job(spark, [lambda: [pa.cpu_count()]]))
    assert threads == [[1]]
    assert engine.run("know", may_run_arrow)


def test_functions_do_not_run_where_arrow_is_of_another_release(
    engine: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = pa.__version__
    monkeypatch.setattr(pa, "__version__", "1.0.0")
    with pytest.raises(OtherPython, match=f"has pyarrow {there}"):
        engine.run("other", lambda spark: run_job(spark, [row(1)]))


def test_cancel_ends_functions_that_wait_and_their_cores_are_free(
    engine: Embedded, signs: Path
) -> None:
    os.mkfifo(signs / "pipe")
    works = [stand(signs, name) for name in "ab"]
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(engine.run, "wait", lambda spark: run_job(spark, works))
        pids = [runs(signs, name).pid for name in "ab"]
        engine.cancel("wait")
        (cancelling,) = [each for each in threading.enumerate() if each.name == "cancel-wait"]
        with pytest.raises(Cancelled):
            waiting.result(60)
    assert gone(pids)
    cancelling.join()
    assert engine.state is EngineState.WARM
    assert engine.run("next", lambda spark: run_job(spark, [row(1)])) == [[1, "é1", None]]


def test_python_processes_are_forked_from_one_that_has_loaded_arrow_and_end_with_the_jvm(
    engine_to_end: Embedded,
) -> None:
    def parent() -> list[int]:
        return [os.getpid(), os.getppid()]

    ((pid, daemon),) = engine_to_end.run("who", lambda spark: run_job(spark, [parent]))
    assert "fairlead.runtime.pipeline.engines.embedded.python_daemon" in (
        psutil.Process(daemon).cmdline()
    )
    assert any("libarrow." in each.path for each in psutil.Process(daemon).memory_maps())
    assert engine_to_end.pid is not None
    psutil.Process(engine_to_end.pid).kill()
    assert gone([pid, daemon])
