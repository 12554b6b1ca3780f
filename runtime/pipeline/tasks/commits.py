"""The part of a task that makes each of its batches count exactly once (DATA_PLANE §2, §3).

    recover: settle and publish what is left over, sweep what never counted
    for each batch:
        stage       written where no reader looks
        commit      the one point where it counts
        publish     put in place

The next owner of the task repeats what went wrong before the commit, and finishes what is left to
do after it. Only the commit itself may have an unknown outcome: then nothing else happens until it
is known.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ....actors.backoff import Attempts, Backoff
from ....events.commits import Commit, CommitId, Document, identity
from ....events.model import RunState
from ....projections.launches import Launch
from ..batches.batch import Batch, Staged, Target
from ..batches.session import TaskSession
from ..connectors.naming import describe_unpublished
from ..spark.engine import Cancelled, Engine
from ..spi.connector import Pipeline
from ..spi.context import SparkJob
from ..spi.errors import SinkBroken
from ..spi.sink import Tenure
from ..spi.source import BatchPlan
from .failures import LastFailure
from .halving import put_off
from .ledger import Fenced, Ledger, LedgerUnavailable, Unpublished
from .plugins.calls import Calls
from .restarts import Halt

_COMMIT_BACKOFF = Backoff(0.1, 2.0)
"""For a commit without an answer."""
_SWEEP_S = 60.0
"""How often a task removes what a former owner, or its JVM, has staged since it was cut off."""


@dataclass(slots=True)
class TaskMemory:
    """What must outlive a restart of a task under the same token.

    Batch numbers never repeat under a token, since a commit id that was accepted is taken for
    a repetition; and a commit without an answer must get one before the next batch.
    """

    next_batch: int = 0
    unsettled: Commit | None = None
    fences: int = 0
    failure: LastFailure | None = None
    """Why it stopped working, if it had failed when it was ended."""
    not_before: float = 0.0
    """When a task that was fenced may begin again, on the monotonic clock."""


class TaskCommits:
    """What one task commits under one token; each method is called from the task's thread."""

    def __init__(  # all that a commit passes through
        self,
        launch: Launch,
        engine: Engine,
        ledger: Ledger,
        memory: TaskMemory,
        halt: Halt,
        tell: Callable[[RunState, str], None],
    ) -> None:
        self._resource, self._token = launch.resource, launch.token
        self._engine = engine
        self._ledger = ledger
        self._memory = memory
        self._halt = halt
        self._tell = tell
        self._calls: Calls
        """Those of the attempt that runs, and its sink."""
        self._target: Target
        self._session: TaskSession
        self._followed: set[str] = set()
        """The source partitions that this attempt goes on with behind what is in the sink."""
        self._last: frozenset[str] = frozenset()
        """The source partitions of its last batch, which its next one comes after."""
        self._sweep_at = 0.0
        """When to sweep next, on the monotonic clock."""
        connector, task = launch.resource
        self.tag = f"fairlead-{quote(connector, safe='')}-{task}-{launch.token}"
        """The tag of all Spark jobs of this task under this token."""

    def recover(self, pipeline: Pipeline, calls: Calls) -> None:
        """Begin an attempt: finish what was committed before, and remove what was not."""
        self._calls = calls
        self._target = Target(pipeline.sink)
        self._session = TaskSession(pipeline.spark_settings)
        self._followed.clear()
        self._last = frozenset()
        self._settle(pipeline)
        unpublished = self._ledger.unpublished(*self._resource)
        try:
            pipeline.acquire(self._tenure(unpublished))
        except SinkBroken as broken:
            if unpublished:
                left = describe_unpublished([each.commit for each in unpublished])
                raise SinkBroken(f"{broken}. Not published is {left}") from None
            raise
        for commit, sequence in unpublished:
            self._put_in_place(pipeline, commit, sequence)
        self.sweep(pipeline)

    def is_next(self, plan: BatchPlan[Any]) -> bool:
        """Tell whether all that comes before a batch in its source partitions is in the sink.

        Where partitions have moved between tasks, another one puts that in place: an older row of a
        key must not come after a newer one. Raises `LedgerUnavailable`.
        """
        starts = {
            identity(each.partition): each.start for each in plan.advances if each.start is not None
        }
        if unknown := starts.keys() - self._followed - self._last:
            settled = self._ledger.settled(self._resource.connector)
            if any(settled.get(partition) != starts[partition] for partition in unknown):
                return False
        self._followed.update(starts)
        return True

    def on_spark(self, job: SparkJob) -> Any:  # noqa: ANN401  # of the job
        """Run what a source asks Spark for before there is a batch; cancelled as a batch is."""
        return self._engine.run(self.tag, job, self._resource.connector)

    def stage(self, pipeline: Pipeline, plan: BatchPlan[Any], begins: Callable[[], None]) -> Commit:
        """Write a batch where no reader looks; return the commit that makes it count.

        `begins` is called once the engine runs it. Raises `BatchHalved` if its ranges are put off.
        """
        commit_id = CommitId(*self._resource, self._token, self._memory.next_batch)
        self._memory.next_batch += 1
        batch = Batch(pipeline, self._target, plan, commit_id, self._session)

        def run(spark: Any) -> Staged:  # noqa: ANN401  # this room knows no Spark
            begins()
            return batch.run(spark)

        try:
            with self._calls.batch():
                staged = self._engine.run(self.tag, run, self._resource.connector)
        except BaseException as error:
            _discard(pipeline, commit_id)
            put_off(pipeline.source, plan.ranges, error)
            raise
        if self._halt.is_cancelled:
            _discard(pipeline, commit_id)
            raise Cancelled("cancelled before its commit")
        manifest = pipeline.with_sink_type(staged.manifest)
        return Commit(commit_id, plan.advances, manifest, staged.rows_in, plan.lag, staged.skipped)

    def commit(self, pipeline: Pipeline, commit: Commit) -> int | None:
        """Make a staged batch count; return its sequence number, None: nothing to publish.

        Raises `Fenced` if the task is somebody else's by now.
        """
        with self._calls.commit():
            self._memory.unsettled = commit
            return self._settle(pipeline)

    def publish(self, pipeline: Pipeline, commit: Commit, sequence: int | None) -> None:
        """Put a batch in place that counts, unless the task is cancelled: the next owner does."""
        if self._halt.is_cancelled:
            return
        if sequence is not None:
            self._put_in_place(pipeline, commit, sequence)
        self._last = frozenset(identity(each.partition) for each in commit.advances)
        pipeline.source.acknowledge(commit.advances)

    def sweep(self, pipeline: Pipeline) -> None:
        """Remove what never counted; between batches nothing else is staged."""
        pipeline.sweep(self._resource, self._token)
        self._sweep_at = time.monotonic() + _SWEEP_S

    def sweep_if_due(self, pipeline: Pipeline) -> None:
        """Sweep again if the last time is a while ago."""
        if time.monotonic() >= self._sweep_at:
            self.sweep(pipeline)

    def _put_in_place(self, pipeline: Pipeline, commit: Commit, sequence: int) -> None:
        pipeline.publish(commit.manifest, commit.commit_id, sequence)
        self._ledger.published(commit.commit_id)

    def _tenure(self, unpublished: Sequence[Unpublished]) -> Tenure:
        progress = self._ledger.progress(*self._resource)
        last, filled = (progress.last, progress.filled) if progress else (None, None)
        waits = any(each.commit.commit_id == filled for each in unpublished)
        published = None if waits else filled
        return Tenure(self._resource, self._token, last, published, self._ledger.place)

    def _settle(self, pipeline: Pipeline) -> int | None:
        """Commit what is unsettled, until there is an answer or somebody asks for an end now.

        Then the staged files stay: the next owner learns from the log what they are.
        """
        commit, sequence = self._memory.unsettled, None
        attempts = Attempts(_COMMIT_BACKOFF)
        while commit:
            if self._halt.is_cancelled:
                raise Cancelled("the outcome of the last commit is unknown")
            try:
                sequence = self._ledger.commit(commit)
            except LedgerUnavailable as unanswered:
                self._tell(RunState.RUNNING, f"the last commit has no answer yet: {unanswered}")
                self._halt.wait_cancelled(attempts.next_pause())
                continue
            except Fenced:
                self._memory.unsettled = None
                _discard(pipeline, commit.commit_id)
                raise
            self._memory.unsettled = commit = None
        return sequence


def _discard(pipeline: Pipeline, commit_id: CommitId) -> None:
    """Remove a batch that does not count: the reason of that is what is told, whatever comes here.

    What is left is swept, by the next owner at the latest.
    """
    with suppress(Exception):
        pipeline.discard(commit_id)


def advance_offsets(offsets: dict[str, Document], commit: Commit) -> None:
    """Put into offsets, keyed by partition identity, where a commit ends."""
    for advance in commit.advances:
        if advance.end is None:
            offsets.pop(identity(advance.partition), None)
        else:
            offsets[identity(advance.partition)] = advance.end
