"""The failure of code in a plugin host is told as a real Connect tells it."""

import pytest

from fairlead.events.model import ErrorClass, Resource, RunState, Token
from fairlead.runtime.interfaces.replies.building.connectors import MadeBy
from fairlead.runtime.pipeline.spi.errors import FailedElsewhere
from fairlead.runtime.pipeline.tasks.failures import failure_of
from fairlead.runtime.pipeline.tasks.reports import StatusChanged

TRACE = "a.b.ConnectException: no such table: t\n\tat a.b.Task.start(Task.java:7)\nCaused by: x.Y"


@pytest.mark.parametrize("again", ["", "; restarts in 1.0 s (1 of 5)"])
def test_the_trace_of_a_failed_task_of_connect_is_that_of_java(again: str) -> None:
    reason, trace, error = failure_of(FailedElsewhere(TRACE))
    assert error is ErrorClass.BUG
    status = StatusChanged(
        Resource("c", 0), Token(1, 1), RunState.FAILED, reason + again, trace, error=error
    )
    headline = f"bug: a.b.ConnectException: no such table: t{again}"
    assert MadeBy("sink", is_of_connect=True).split_failure(status.why) == (TRACE, headline)
    assert MadeBy("sink").split_failure(status.why) == (f"{headline}\n{TRACE}", "")


def test_a_failure_without_a_trace_of_java_is_told_as_it_is() -> None:
    why = "config: file: it is not there\nmore of it"
    assert MadeBy("sink", is_of_connect=True).split_failure(why) == (why, "")
