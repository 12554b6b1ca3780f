"""The reports of a runner to its worker: one value for each event."""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ....events.commits import Commit, Cost
from ....events.model import (
    NEVER_RESTARTED,
    NOTE,
    AutoRestart,
    ErrorClass,
    Resource,
    RunState,
    Token,
)
from ....projections.launches import Launch
from ..spi.rows import LaneCount

SPLITS_AGAIN: Final = f"{NOTE}it splits its work again: its former tasks are fenced first"
"""The reason in the status of a connector whose tasks may not begin to write (DATA_PLANE §1.11)."""
_JAVA_FRAME: Final = "\n\tat "


class Ending(Enum):
    """How a resource ended."""

    STOPPED = "stopped"
    """It was asked to stop, and finished its batch."""

    CANCELLED = "cancelled"
    """It was cancelled; its last batch counts only if it was committed before."""

    FENCED = "fenced"
    """Its token is no longer current; another worker may own the task."""


@dataclass(frozen=True, slots=True)
class Started:
    """A resource has started; it may still wait for the engine."""

    resource: Resource
    token: Token


@dataclass(frozen=True, slots=True)
class Stopped:
    """A resource has ended; none of its work runs any more."""

    resource: Resource
    token: Token
    ending: Ending


@dataclass(frozen=True, slots=True)
class Hung:
    """A cancelled resource does not end: the engine or the process must be killed."""

    resource: Resource
    token: Token


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """The new state of a resource; `trace` has the details of a failure."""

    resource: Resource
    token: Token
    state: RunState
    reason: str = ""
    trace: str = ""
    restarts: AutoRestart = NEVER_RESTARTED
    error: ErrorClass | None = None
    """The class of the error; None: there is no error, or none that a user must fix."""

    @property
    def headline(self) -> str:
        """The class of the error, if any, and the reason."""
        return f"{self.error.value}: {self.reason}" if self.error else self.reason

    @property
    def why(self) -> str:
        """The headline, then the lines of the trace that do not repeat the reason.

        A stack trace of Java is kept as it is, with its last line break, as in Connect.
        """
        if _JAVA_FRAME in self.trace:
            return f"{self.headline}\n{self.trace}"
        lines = self.trace.splitlines()
        beyond = [line for line in lines if not (line and self.reason.startswith(line))]
        return "\n".join((self.headline, *beyond)).rstrip()


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning for the connector's owner; the resource continues."""

    resource: Resource
    token: Token
    text: str


@dataclass(frozen=True, slots=True)
class TaskConfigsChanged:
    """The task configs of a connector, in the order of its tasks."""

    connector: str
    token: Token
    configs: tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class BatchDone:
    """A committed batch, and the duration of its phases."""

    commit: Commit
    began_ms: int
    """The wall clock time of the task's first poll since its start."""
    is_first: bool
    """Whether it is the first since the task's start."""
    seconds: Mapping[str, float]
    """The duration of each phase: plan, wait (for a slot on the engine), run (reading,
    transforming and staging), commit, publish."""
    restarts: AutoRestart = NEVER_RESTARTED
    """The restarts of the task before this batch."""
    ranges: int = 0
    """How many ranges of the source it has."""
    lanes: LaneCount = field(default_factory=LaneCount)

    @property
    def by_lane(self) -> Mapping[str, tuple[int, int]]:
        """The ranges and the rows that went through Arrow alone, and through Spark."""
        ranges, rows, *_ = self.lanes
        others = self.ranges - ranges, self.commit.rows_in - rows
        return {"arrow": (ranges, rows), "spark": others}


@dataclass(slots=True)
class BatchClock:
    """The duration of each phase of one batch, in seconds."""

    phases: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def phase(self, name: str) -> Generator[None]:
        """Measure a phase."""
        began = time.perf_counter()
        yield
        self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - began

    def cost(self, bytes_in: int, before: "BatchClock") -> Cost:
        """Return the cost of a batch: its phases before the commit, and the others of `before`."""
        first = (self.ms(each) for each in ("plan", "wait", "run"))
        return Cost(bytes_in, *first, *(before.ms(each) for each in ("commit", "publish")))

    def ms(self, name: str) -> int:
        """Return the duration of a phase in milliseconds; 0 if it did not run."""
        return round(self.phases.get(name, 0.0) * 1000)

    @property
    def total(self) -> float:
        """The sum of all phases, in seconds."""
        return sum(self.phases.values())

    @property
    def worked(self) -> float:
        """The total without the wait for a slot on the engine, in seconds."""
        return self.total - self.phases["wait"]


Report = Started | Stopped | Hung | StatusChanged | Warned | TaskConfigsChanged | BatchDone


class StatusReports:
    """Reports state changes and warnings of one resource under one token."""

    def __init__(
        self,
        launch: Launch,
        report: Callable[[Report], None],
        restarts: Callable[[], AutoRestart] = AutoRestart,
    ) -> None:
        """Call `report` for each change; `restarts` returns the resource's restarts so far."""
        self._of = launch.resource, launch.token
        self._report = report
        self._restarts = restarts
        self.last: tuple[RunState, str] | None = None
        """The state and reason that were reported last."""

    def report(
        self,
        state: RunState,
        reason: str = "",
        trace: str = "",
        error: ErrorClass | None = None,
    ) -> None:
        """Report a state and its reason, unless they were the last ones reported."""
        if (state, reason) != self.last:
            self.last = (state, reason)
            restarts = self._restarts()
            self._report(StatusChanged(*self._of, state, reason, trace, restarts, error))

    def warn(self, text: str) -> None:
        """Report a warning for the owner."""
        self._report(Warned(*self._of, text))


class BadRowsRemark:
    """The remark in a status about the bad rows that the task has skipped since its start.

    It changes only when their number has doubled, since each new remark is a record in the group's
    log.
    """

    def __init__(self) -> None:
        self._count = 0
        self._reported = 0
        """The number in the remark."""
        self.remark = ""
        """Empty if there were none."""

    def count(self, commit: Commit, queue: str) -> None:
        """Add the bad rows of a committed batch; `queue` names the dead letter queue, if any."""
        self._count += commit.skipped
        if self._count < max(1, 2 * self._reported):
            return
        self._reported = self._count
        rows = (
            "1 bad row was" if self._reported == 1 else f"at least {self._reported} bad rows were"
        )
        outcome = (
            f"left out since the start: they are in {queue}"
            if queue
            else "left out since the start, and dropped: errors.deadletterqueue.path, or "
            ".topic.name, keeps them"
        )
        self.remark = f"{rows} {outcome}"


class LaneRemark:
    """The remark in a status about files that Spark has read because of their texts.

    It is a note, since nothing is wrong. The source says when it changes: each new remark is a
    record in the group's log.
    """

    def __init__(self) -> None:
        self._files = 0
        self._by_spark = 0
        self.remark = ""
        """Empty if there was nothing to say."""

    def count(self, lanes: LaneCount, files: int) -> None:
        """Add a committed batch of so many files."""
        self._files += files
        self._by_spark += files - lanes.ranges
        if lanes.is_news:
            of_all = f"{NOTE}{self._by_spark} of the first {self._files} files since the start"
            were = "was" if self._by_spark == 1 else "were"
            self.remark = f"{of_all} {were} read by Spark, not by Arrow: {lanes.why_spark}"
