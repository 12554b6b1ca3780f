"""The JVM that answers for queries ends with who asks, when it is idle, and when it hangs."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from fairlead.runtime.pipeline.engines.queries import query_check
from fairlead.runtime.pipeline.engines.queries.query_check import CheckFailed, QueryCheck
from fairlead.runtime.processes.java import Java

pytestmark = pytest.mark.spark

ASKS = """
import os, time
from fairlead.runtime.pipeline.engines.queries import query_check
query_check.LONGEST_SECONDS = 120
check = query_check.QueryCheck()
check.columns_of("a INT")
import psutil
print(psutil.Process().children()[0].pid, flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def check() -> Iterator[QueryCheck]:
    """What the tests ask one after the other; on a busy machine an answer takes its time."""
    with pytest.MonkeyPatch.context() as patience:
        patience.setattr(query_check, "LONGEST_SECONDS", 120.0)
        made = QueryCheck()
        yield made
        made.close()


def jvm(check: QueryCheck) -> psutil.Process | None:
    """Return the JVM of a check; others may have one in this process, too."""
    known = check._jvm
    return psutil.Process(known._process.pid) if known is not None else None


@pytest.mark.soak  # each run has it of any process: tests/test_tether.py
def test_it_ends_with_a_process_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", ASKS], stdout=subprocess.PIPE, text=True) as asks:
        assert asks.stdout is not None
        java = psutil.Process(int(asks.stdout.readline()))
        os.kill(asks.pid, signal.SIGKILL)
    java.wait(60)


def test_it_ends_when_it_is_idle_and_is_started_again(
    check: QueryCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_check, "IDLE_SECONDS", 0.2)
    check.columns_of("a INT")
    first = jvm(check)
    if first is not None:
        first.wait(60)
    monkeypatch.undo()
    assert list(check.columns_of("b INT").types) == ["b"]
    assert jvm(check) not in {first, None}


def test_a_java_that_hangs_at_its_start_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nexec sleep 600\n")
    java.chmod(0o700)
    monkeypatch.setattr(query_check, "find_java", lambda: Java(java, "17.0.1"))
    monkeypatch.setattr(query_check, "LONGEST_SECONDS", 0.5)
    with pytest.raises(CheckFailed, match="Java gave no answer within"):
        QueryCheck().columns_of("a INT")


def test_a_question_that_takes_too_long_ends_it(
    check: QueryCheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    check.columns_of("a INT")
    java = jvm(check)
    assert java is not None
    monkeypatch.setattr(query_check, "LONGEST_SECONDS", 0.5)
    java.suspend()
    with pytest.raises(CheckFailed):
        check.columns_of("a INT")
    monkeypatch.undo()
    assert list(check.columns_of("b INT").types) == ["b"]
    check.close()
    assert jvm(check) is None
    assert threading.active_count() < 20
