"""What a worker tells the group of what it runs, and what it writes into its own log."""

import logging

import pytest

from fairlead.events.model import Resource, RunState, Token
from fairlead.runtime.tasks.reports import StatusChanged
from fairlead.runtime.worker.news import News


@pytest.mark.parametrize(
    ("state", "lines"),
    [
        (RunState.FAILED, ["flights-1 is FAILED: no such column: carrier"]),
        (RunState.RESTARTING, ["flights-1 is RESTARTING: no such column: carrier"]),
        (RunState.RUNNING, []),
        (RunState.UNASSIGNED, []),
    ],
)
def test_each_failure_and_each_restart_of_a_task_is_a_line_in_the_log_of_its_worker(
    state: RunState, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    news = News("connect", "W1")
    report = StatusChanged(Resource("flights", 1), Token(2, 1), state, "no such column: carrier")
    with caplog.at_level(logging.INFO):
        news.changed(report, 5)
    assert [record.getMessage() for record in caplog.records] == lines
