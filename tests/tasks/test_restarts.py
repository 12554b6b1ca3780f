"""A failure is answered by a restart, later each time, until the budget is used up."""

import math
import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.connect import SparkException

from fairlead.events.model import ErrorClass
from fairlead.runtime.pipeline.engines.failures import failure_text
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.errors import (
    BadInput,
    ContractBroken,
    PluginUnknown,
    SchemaRefused,
    SinkFull,
)
from fairlead.runtime.pipeline.tasks.failures import class_of, reason_of
from fairlead.runtime.pipeline.tasks.restarts import RestartPolicy, Restarts


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Highest(Random):
    """Chance that takes nothing off any pause."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


DEFAULT = RestartPolicy.of({})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    return clock


@pytest.mark.usefixtures("clock")
def test_waits_double_up_to_the_longest_until_the_budget_is_used_up() -> None:
    restarts = Restarts(replace(DEFAULT, initial_s=0.5, longest_s=3, budget=5), Highest())
    delays = [restarts.add_failure("x") for _ in range(6)]
    assert delays == [0.5, 1, 2, 3, 3, None]


def test_a_failure_is_forgiven_after_the_window(clock: Clock) -> None:
    restarts = Restarts(replace(DEFAULT, initial_s=0.5, budget=1, window_s=600), Highest())
    assert (restarts.add_failure("x"), restarts.add_failure("x")) == (0.5, None)
    clock.now = 601
    assert (restarts.add_failure("x"), restarts.count) == (0.5, 1)


def test_a_budget_below_zero_is_never_used_up(clock: Clock) -> None:
    restarts = Restarts(replace(DEFAULT, initial_s=0.5, longest_s=3, budget=-1), Highest())
    assert [restarts.add_failure("x") for _ in range(50)][-1] == 3
    restarts.add_restart()
    assert restarts.made.times == 50
    clock.now = 601
    restarts.add_failure("x")
    restarts.add_restart()
    assert restarts.made.times == 1, "what ran for so long begins anew"


def test_the_policy_comes_from_the_connectors_config() -> None:
    config = {
        "name": "c",
        "connector.class": "X",
        "task.restart.backoff.initial.ms": "100",
        "task.restart.backoff.max.ms": "2000",
        "task.restart.budget": "7",
        "task.restart.window.ms": "60000",
    }
    assert RestartPolicy.of(config) == RestartPolicy(0.1, 2.0, 7, 60.0, math.inf, 10.0)
    assert RestartPolicy.of({**config, "tasks.max": "none"}) == RestartPolicy.of(config)
    assert RestartPolicy.of({**config, "task.restart.budget": "none"}) == DEFAULT


def raised(act: object, *arguments: object) -> OSError:
    with pytest.raises(OSError, match=r".") as caught:
        act(*arguments)  # type: ignore[operator]
    return caught.value


def test_an_error_of_the_system_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    inside = tmp_path / "f" / "x"
    assert reason_of(raised(inside.read_text)) == f"{inside}: not a directory"
    moved = raised(os.rename, inside, tmp_path / "y")
    assert reason_of(moved) == f"{inside} -> {tmp_path}/y: not a directory"


def test_an_error_of_the_system_without_a_file_names_the_place_in_the_code() -> None:
    def flush() -> None:
        os.fsync(1_000_000)

    assert reason_of(raised(flush)) == "bad file descriptor, in flush (test_restarts.py)"


@pytest.mark.parametrize(
    ("error", "whose"),
    [
        (ConfigInvalid("no such key"), ErrorClass.CONFIG),
        (PluginUnknown("no such class"), ErrorClass.CONFIG),
        (SchemaRefused("no such column"), ErrorClass.INPUT),
        (SinkFull("no room"), ErrorClass.OUTSIDE),
        (OSError(28, "no space"), ErrorClass.OUTSIDE),
        (ContractBroken("plan returned None"), ErrorClass.BUG),
        (KeyError("x"), ErrorClass.BUG),
    ],
)
def test_an_error_is_classed_by_who_can_mend_it(error: Exception, whose: ErrorClass) -> None:
    assert class_of(error) is whose


def test_a_reason_does_not_break_off_before_what_it_announces() -> None:
    text = """Number of column in CSV header is not equal to number of fields in the schema:
     Header length: 2, schema size: 3
    CSV file: file:///in/a.csv"""
    assert reason_of(BadInput(text)) == (
        "Number of column in CSV header is not equal to number of fields in the schema:"
        " Header length: 2, schema size: 3"
    )
    assert reason_of(BadInput("it is bad\nand worse")) == "it is bad"
    assert reason_of(BadInput("")) == "BadInput"


class Thrown:
    """A Java exception, the outer one first."""

    _target_id = "o1"

    def __init__(self, *messages: str) -> None:
        self._messages = messages

    def getMessage(self) -> str:  # noqa: N802
        return self._messages[0]

    def getCause(self) -> "Thrown | None":  # noqa: N802
        return Thrown(*self._messages[1:]) if len(self._messages) > 1 else None


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        (
            ('Cannot run program "x": Exec failed, error: 2', "Exec failed, error: 2"),
            'Cannot run program "x": Exec failed, error: 2',
        ),
        (("java.io.IOException: disk is gone", "disk is gone"), "disk is gone"),
        (("Job aborted", "it cannot be read"), "it cannot be read"),
        (
            ("/out/x: No space left", "java.io.IOException: No space left", "No space left"),
            "/out/x: No space left",
        ),
    ],
)
def test_a_cause_in_java_is_told_with_what_it_is_about(
    messages: tuple[str, ...], told: str
) -> None:
    assert failure_text(Py4JJavaError("an error", Thrown(*messages))) == told


@pytest.mark.parametrize(
    ("causes", "told"),
    [
        (("[TASK_WRITE_FAILED] Task failed.", "Mkdirs failed: /x"), "Mkdirs failed: /x"),
        (("/out/x: No space left", "No space left"), "/out/x: No space left"),
        ((), "[TASK_WRITE_FAILED] Task failed."),
    ],
)
def test_a_cause_on_a_server_is_told_rather_than_what_the_scheduler_says_of_it(
    causes: tuple[str, ...], told: str
) -> None:
    frame = "\n\tat a.b.C.d(C.scala:1)"
    stack = "".join(f"{frame}\nCaused by: java.io.IOException: {each}" for each in causes)
    task = "Lost task 0.0 in stage 1.0 (TID 2) (host executor driver)"
    text = f"Job aborted due to stage failure: {task}: [TASK_WRITE_FAILED] Task failed.{stack}"
    stack = f"org.apache.spark.SparkException{stack}{frame}"
    error = SparkException(f"{text}{frame}\n\nDriver stacktrace:", server_stacktrace=stack)
    assert failure_text(error) == told
    bare = SparkException("It failed.", server_stacktrace=stack, display_server_stacktrace=True)
    assert failure_text(bare) == ": ".join(["It failed.", *([told] if causes else [])])
