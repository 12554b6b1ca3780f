"""What a task may commit, and when: after all earlier rows, and never once it was cancelled."""

from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from fairlead.events.commits import Advance, CommitId, Document, Manifest, identity
from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.batches.batch import Staged
from fairlead.runtime.pipeline.engines.engine import Cancelled
from fairlead.runtime.pipeline.spi.source import BatchPlan
from fairlead.runtime.pipeline.tasks.commits import TaskCommits, TaskMemory
from fairlead.runtime.pipeline.tasks.restarts import Halt

A: Document = {"file": "a"}
B: Document = {"file": "b"}
HERE: Document = {"row": 1}
THERE: Document = {"row": 2}


def commits_of(settled: dict[str, Document], engine: Any = None) -> tuple[TaskCommits, Halt]:
    """Return the commits of a task that has begun; in the sink is what is settled."""
    launch = Launch(Resource("c", 0), Token(1, 1), {}, {})
    ledger = Mock(settled=lambda _: settled, unpublished=lambda *_: [], progress=lambda *_: None)
    halt = Halt()
    made = TaskCommits(launch, engine or Mock(), ledger, TaskMemory(), halt, Mock())
    made.recover(MagicMock(spark_settings={}), MagicMock())
    return made, halt


def plan_of(*starts: tuple[Document, Document | None]) -> BatchPlan[Any]:
    return BatchPlan((), tuple(Advance(each, start, THERE) for each, start in starts), 1)


@pytest.mark.parametrize(
    ("settled", "is_next"),
    [
        ({identity(A): HERE, identity(B): HERE}, True),
        ({identity(A): HERE}, False),
        ({identity(B): HERE}, False),
        ({identity(A): HERE, identity(B): THERE}, False),
        ({}, False),
    ],
)
def test_a_batch_waits_until_the_earlier_rows_of_all_its_partitions_are_in_the_sink(
    settled: dict[str, Document], is_next: bool
) -> None:
    commits, _ = commits_of(settled)
    assert commits.is_next(plan_of((A, HERE), (B, HERE))) is is_next


def test_a_partition_that_nobody_has_read_waits_for_nothing() -> None:
    commits, _ = commits_of({})
    assert commits.is_next(plan_of((A, None), (B, None)))


def test_a_partition_that_was_settled_once_is_not_asked_about_again() -> None:
    settled = {identity(A): HERE}
    commits, _ = commits_of(settled)
    assert commits.is_next(plan_of((A, HERE)))
    settled.clear()
    assert commits.is_next(plan_of((A, HERE)))
    assert not commits.is_next(plan_of((A, HERE), (B, HERE)))


def test_a_batch_whose_task_was_cancelled_while_it_was_staged_is_discarded() -> None:
    pipeline, staged = MagicMock(), Staged(Manifest("/out", "s", 1, 1, 1), 1)

    def run(*_: object) -> Staged:
        halt.cancel()
        return staged

    commits, halt = commits_of({}, Mock(run=run))
    with pytest.raises(Cancelled, match="cancelled before its commit"):
        commits.stage(pipeline, plan_of((A, None)), Mock())
    pipeline.discard.assert_called_once_with(CommitId("c", 0, Token(1, 1), 0))


def test_a_batch_whose_task_is_only_drained_is_committed() -> None:
    staged = Staged(Manifest("/out", "s", 1, 1, 1), 1)
    pipeline = MagicMock(with_sink_type=lambda manifest: manifest)

    def run(*_: object) -> Staged:
        halt.drain()
        return staged

    commits, halt = commits_of({}, Mock(run=run))
    commit = commits.stage(pipeline, plan_of((A, None)), Mock())
    assert (commit.commit_id.batch, commit.manifest) == (0, staged.manifest)
    pipeline.discard.assert_not_called()
