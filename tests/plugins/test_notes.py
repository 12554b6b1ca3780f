"""What the log is told of tasks of Connect's own classes, with a log in memory."""

from collections.abc import Sequence

import pytest

from fairlead.events.commits import Commit, Lag
from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.projections.views import TOPIC
from fairlead.runtime.pipeline.plugins.running.figures import Bean, TaskFigures, figures_of_tasks
from fairlead.runtime.pipeline.plugins.running.notes import TaskNotes
from fairlead_tests.tasks.memory_ledger import MemoryLedger

TASK, TOKEN = Resource("c", 0), Token(1, 1)


@pytest.fixture
def ledger() -> MemoryLedger:
    return MemoryLedger()


def notes(ledger: MemoryLedger, token: Token = TOKEN) -> TaskNotes:
    return TaskNotes(Launch(TASK, token, {}, {}, tasks=1), ledger)


def counted(ledger: MemoryLedger) -> Sequence[tuple[int, int, int, Lag | None]]:
    def letters(commit: Commit) -> int:
        return commit.manifest.dead_letters.rows if commit.manifest.dead_letters else 0

    return [
        (each.rows_in, each.manifest.rows, letters(each), each.lag)
        for each in ledger.accepted.values()
    ]


def test_rows_are_logged_as_they_move_and_nothing_while_they_stay(ledger: MemoryLedger) -> None:
    own = notes(ledger)
    own.keep((), None)
    own.keep((), TaskFigures())
    own.keep((), TaskFigures(5, 4, 1, 1, lag=7))
    own.keep((), TaskFigures(5, 4, 1, 1, lag=7))
    own.keep((), TaskFigures(9, 8, 1, 1, lag=3))
    assert counted(ledger) == [(5, 4, 1, Lag(0, 0, 7)), (4, 4, 0, Lag(0, 0, 3))]
    assert not ledger.to_publish


def test_an_attempt_counts_from_nothing_again(ledger: MemoryLedger) -> None:
    own = notes(ledger)
    own.keep((), TaskFigures(5, 5))
    own.begin()
    own.keep((), TaskFigures(2, 2))
    assert sum(each[0] for each in counted(ledger)) == 7


def test_a_commit_without_an_answer_is_sent_again_and_counts_once(ledger: MemoryLedger) -> None:
    own = notes(ledger)
    ledger.faults += ["lost", "away", "away"]
    for rows in (5, 6, 8, 9):
        own.keep((), TaskFigures(rows, rows))
    assert [each[:2] for each in counted(ledger)] == [(5, 5), (4, 4)]


def test_what_was_fenced_does_not_count(ledger: MemoryLedger) -> None:
    ledger.grant(TASK, Token(2, 1))
    own = notes(ledger)
    own.keep(["t"], TaskFigures(5, 5))
    assert counted(ledger) == []


def test_topics_are_logged_once_whoever_has_used_them_first(ledger: MemoryLedger) -> None:
    notes(ledger).keep(["t", "u"], TaskFigures(1, 1))
    notes(ledger, Token(2, 1)).keep(["u", "v"], None)
    named = [each.partition[TOPIC] for c in ledger.accepted.values() for each in c.advances]
    assert named == ["t", "u", "v"]


@pytest.mark.parametrize(
    ("labels", "lag"),
    [({"client-id": "connector-consumer-c-0"}, 9), ({"client-id": "renamed"}, None)],
)
def test_beans_tell_the_figures_of_a_task(labels: dict[str, str], lag: int | None) -> None:
    of_task = {"connector": "c", "task": "0"}
    sink = {"sink-record-read-total": 12.0, "sink-record-send-total": 10.0}
    errors = {
        "total-records-skipped": 2.0,
        "deadletterqueue-produce-requests": 2.0,
        "deadletterqueue-produce-failures": 1.0,
    }
    beans = [
        Bean("kafka.connect", "connect-worker-metrics", {}, {"task-count": 1.0}),
        Bean("kafka.connect", "sink-task-metrics", of_task, sink),
        Bean("kafka.connect", "task-error-metrics", of_task, errors),
        Bean("kafka.consumer", "consumer-fetch-manager-metrics", labels, {"records-lag": 9.0}),
    ]
    assert figures_of_tasks(beans) == {TASK: TaskFigures(12, 10, 2, 1, lag)}


def test_a_source_has_no_lag_though_it_reads_the_topic_of_offsets() -> None:
    of_task = {"connector": "c", "task": "0"}
    counts = {"source-record-poll-total": 2.0, "source-record-write-total": 1.0}
    client = {"client-id": "connector-consumer-c-0"}
    beans = [
        Bean("kafka.connect", "source-task-metrics", of_task, counts),
        Bean("kafka.consumer", "consumer-fetch-manager-metrics", client, {"records-lag": 0.0}),
    ]
    assert figures_of_tasks(beans) == {TASK: TaskFigures(2, 1)}
