"""How a task makes each of its batches count exactly once (DATA_PLANE §2, §3).

    recover: settle the last commit, publish committed batches, sweep uncommitted files
    for each batch:
        stage       write the rows where no reader sees them
        commit      from here on the batch counts
        publish     make the rows visible

After a failure before the commit, the next owner of the task reads the batch again. After a failure
behind the commit, it publishes the batch. Only the commit itself may have an unknown outcome; then
the task does nothing else until the outcome is known.
"""

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ....actors.timing import Attempts, Backoff
from ....events.commits import Commit, CommitId, Document, identity
from ....events.model import RunState
from ....projections.launches import Launch
from ..batches.batch import Batch, Staged, Target
from ..batches.naming import describe_unpublished
from ..batches.session import TaskSession
from ..engines.engine import Cancelled, Engine
from ..spi.connector import Pipeline
from ..spi.context import SparkJob
from ..spi.errors import SinkBroken
from ..spi.rows import LaneCount
from ..spi.sink import TaskOwnership
from ..spi.source import BatchPlan
from .failures import LastFailure
from .ledger import Fenced, Ledger, LedgerUnavailable, Unpublished
from .plugins.calls import Calls
from .range_bisection import defer
from .restarts import Halt

_COMMIT_BACKOFF = Backoff(0.1, 2.0)
"""The pauses before a commit without an answer is sent again."""
_SWEEP_S = 60.0
"""How often a task removes files that a former owner, or its JVM, staged after it was fenced."""


@dataclass(slots=True)
class TaskMemory:
    """The state of a task that survives its restarts under the same token.

    Batch numbers never repeat under a token, since a second commit with an accepted id is treated
    as a retry. A commit without an answer must get one before the next batch.
    """

    next_batch: int = 0
    unsettled: Commit | None = None
    """The last commit, as long as its outcome is unknown."""
    fences: int = 0
    """How often the task was fenced under this token."""
    failure: LastFailure | None = None
    """The failure of a task that was FAILED when it ended."""
    not_before: float = 0.0
    """The monotonic time before which a fenced task does not start again."""


class TaskCommits:
    """The batches of one task under one token; all methods are called from the task's thread."""

    def __init__(  # the services that a commit needs
        self,
        launch: Launch,
        engine: Engine,
        ledger: Ledger,
        memory: TaskMemory,
        halt: Halt,
        report: Callable[[RunState, str], None],
    ) -> None:
        self._resource, self._token = launch.resource, launch.token
        self._engine = engine
        self._ledger = ledger
        self._memory = memory
        self._halt = halt
        self._report = report
        self._calls: Calls
        """The plugin calls of the current attempt."""
        self._target: Target
        self._session: TaskSession
        self._in_sink: set[str] = set()
        """The source partitions whose earlier rows are known to be in the sink."""
        self._last_partitions: frozenset[str] = frozenset()
        """The source partitions of the last batch, which this task has published."""
        self.lanes = LaneCount()
        """Of the last batch that was staged."""
        self._sweep_at = 0.0
        """The monotonic time of the next sweep."""
        connector, task = launch.resource
        self.tag = f"fairlead-{quote(connector, safe='')}-{task}-{launch.token}"
        """The tag of all Spark jobs of this task under this token."""

    def recover(self, pipeline: Pipeline, calls: Calls) -> None:
        """Begin an attempt: publish the batches committed before, and remove uncommitted files."""
        self._calls = calls
        self._target = Target(pipeline.sink)
        self._session = TaskSession(pipeline.spark_settings)
        self._in_sink.clear()
        self._last_partitions = frozenset()
        self._settle(pipeline)
        unpublished = self._ledger.unpublished(*self._resource)
        try:
            pipeline.acquire(self._ownership(unpublished))
        except SinkBroken as broken:
            if unpublished:
                left = describe_unpublished([each.commit for each in unpublished])
                raise SinkBroken(f"{broken}. Not published is {left}") from None
            raise
        for commit, sequence in unpublished:
            self._publish(pipeline, commit, sequence)
        self.sweep(pipeline)

    def is_next(self, plan: BatchPlan[Any]) -> bool:
        """Return whether all earlier rows of a batch's source partitions are in the sink.

        If a partition has moved between tasks, its former task may still have to publish them. An
        older row of a key must not be published after a newer one. Raises `LedgerUnavailable`.
        """
        starts = {
            identity(each.partition): each.start for each in plan.advances if each.start is not None
        }
        if unknown := starts.keys() - self._in_sink - self._last_partitions:
            settled = self._ledger.settled(self._resource.connector)
            if any(settled.get(partition) != starts[partition] for partition in unknown):
                return False
        self._in_sink.update(starts)
        return True

    def on_spark(self, job: SparkJob) -> Any:  # noqa: ANN401  # of the job
        """Run a source's Spark job before there is a batch; it can be cancelled like a batch."""
        return self._engine.run(self.tag, job, self._resource.connector)

    def stage(self, pipeline: Pipeline, plan: BatchPlan[Any], begins: Callable[[], None]) -> Commit:
        """Stage a batch; return its commit, which the ledger has yet to accept.

        `begins` is called when the engine runs the job. Raises `BatchSplit` if the batch failed
        and the source has deferred its ranges.
        """
        batch = self._new_batch(pipeline, plan)

        def run(spark: Any) -> Staged:  # noqa: ANN401  # tasks do not import Spark
            begins()
            return batch.run(spark)

        with self._staging(batch):
            staged = self._engine.run(self.tag, run, self._resource.connector)
        return self._commit_of(batch, staged)

    def stage_held(self, pipeline: Pipeline, plan: BatchPlan[Any]) -> Commit | None:
        """Stage a batch without the engine, as `stage` does; None: the batch needs it."""
        batch = self._new_batch(pipeline, plan)
        with self._staging(batch):
            staged = batch.run_held()
        if staged is None:
            _discard(pipeline, batch.commit_id)
            return None
        return self._commit_of(batch, staged)

    def _new_batch(self, pipeline: Pipeline, plan: BatchPlan[Any]) -> Batch:
        commit_id = CommitId(*self._resource, self._token, self._memory.next_batch)
        self._memory.next_batch += 1
        return Batch(pipeline, self._target, plan, commit_id, self._session)

    @contextmanager
    def _staging(self, batch: Batch) -> Generator[None]:
        """Limit the time for a batch; after an error, discard it and defer its ranges."""
        try:
            with self._calls.batch():
                yield
        except BaseException as error:
            _discard(batch.pipeline, batch.commit_id)
            defer(batch.pipeline.source, batch.plan.ranges, error)
            raise

    def _commit_of(self, batch: Batch, staged: Staged) -> Commit:
        """Return the commit of a staged batch; raises `Cancelled`."""
        pipeline, plan = batch.pipeline, batch.plan
        if self._halt.is_cancelled:
            _discard(pipeline, batch.commit_id)
            raise Cancelled("cancelled before its commit")
        self.lanes = staged.lanes or LaneCount()
        manifest = pipeline.with_sink_type(staged.manifest)
        read, rejected = staged.rows_in, staged.rejected
        return Commit(batch.commit_id, plan.advances, manifest, read, plan.lag, rejected)

    def commit(self, pipeline: Pipeline, commit: Commit) -> int | None:
        """Commit a staged batch; return its sequence number, None: nothing to publish.

        Raises `Fenced` if the token is no longer current.
        """
        with self._calls.commit():
            self._memory.unsettled = commit
            return self._settle(pipeline)

    def publish(self, pipeline: Pipeline, commit: Commit, sequence: int | None) -> None:
        """Publish a committed batch, unless the task is cancelled; then its next owner does it."""
        if self._halt.is_cancelled:
            return
        if sequence is not None:
            self._publish(pipeline, commit, sequence)
        self._last_partitions = frozenset(identity(each.partition) for each in commit.advances)
        pipeline.source.acknowledge(commit.advances)

    def sweep(self, pipeline: Pipeline) -> None:
        """Remove staged files of batches that were never committed; called between batches."""
        pipeline.sweep(self._resource, self._token)
        self._sweep_at = time.monotonic() + _SWEEP_S

    def sweep_if_due(self, pipeline: Pipeline) -> None:
        """Sweep if the last sweep was `_SWEEP_S` seconds ago."""
        if time.monotonic() >= self._sweep_at:
            self.sweep(pipeline)

    def _publish(self, pipeline: Pipeline, commit: Commit, sequence: int) -> None:
        pipeline.publish(commit.manifest, commit.commit_id, sequence)
        self._ledger.published(commit.commit_id)

    def _ownership(self, unpublished: Sequence[Unpublished]) -> TaskOwnership:
        progress = self._ledger.progress(*self._resource)
        last, filled = (progress.last, progress.filled) if progress else (None, None)
        waits = any(each.commit.commit_id == filled for each in unpublished)
        published = None if waits else filled
        return TaskOwnership(self._resource, self._token, last, published, self._ledger.place)

    def _settle(self, pipeline: Pipeline) -> int | None:
        """Send the unsettled commit until there is an answer; raises `Cancelled`, `Fenced`.

        If the task is cancelled, the staged files stay: the log tells the next owner whether the
        batch was committed.
        """
        commit, sequence = self._memory.unsettled, None
        attempts = Attempts(_COMMIT_BACKOFF)
        while commit:
            if self._halt.is_cancelled:
                raise Cancelled("the outcome of the last commit is unknown")
            try:
                sequence = self._ledger.commit(commit)
            except LedgerUnavailable as unanswered:
                self._report(RunState.RUNNING, f"the last commit has no answer yet: {unanswered}")
                self._halt.wait_cancelled(attempts.next_pause())
                continue
            except Fenced:
                self._memory.unsettled = None
                _discard(pipeline, commit.commit_id)
                raise
            self._memory.unsettled = commit = None
        return sequence


def _discard(pipeline: Pipeline, commit_id: CommitId) -> None:
    """Remove the staged files of an uncommitted batch; errors are ignored.

    The caller reports why the batch failed, and remaining files are swept later.
    """
    with suppress(Exception):
        pipeline.discard(commit_id)


def advance_offsets(offsets: dict[str, Document], commit: Commit) -> None:
    """Apply the advances of a commit to offsets, which are keyed by partition identity."""
    for advance in commit.advances:
        if advance.end is None:
            offsets.pop(identity(advance.partition), None)
        else:
            offsets[identity(advance.partition)] = advance.end
