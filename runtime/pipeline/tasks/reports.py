"""What a runner tells its worker: one value per thing that happened."""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from ....events.commits import Commit, Cost
from ....events.model import (
    NEVER_RESTARTED,
    AutoRestart,
    ErrorClass,
    Resource,
    RunState,
    Token,
)
from ....projections.launches import Launch


class Ending(Enum):
    """How a resource came to its end."""

    STOPPED = "stopped"
    """It was asked to, and finished what it had begun."""

    CANCELLED = "cancelled"
    """It was cut short: what it had begun counts only if it was committed by then."""

    FENCED = "fenced"
    """Its token is no longer current: somebody else has the task."""


@dataclass(frozen=True, slots=True)
class Started:
    """A resource begins; it may still have to wait for the engine."""

    resource: Resource
    token: Token


@dataclass(frozen=True, slots=True)
class Stopped:
    """A resource has come to its end, and nothing of it runs any more."""

    resource: Resource
    token: Token
    ending: Ending


@dataclass(frozen=True, slots=True)
class Hung:
    """A resource does not end although it was cancelled: kill the engine, or the process."""

    resource: Resource
    token: Token


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """What a resource is doing now; `trace` tells at length why, if it failed."""

    resource: Resource
    token: Token
    state: RunState
    reason: str = ""
    trace: str = ""
    restarts: AutoRestart = NEVER_RESTARTED
    error: ErrorClass | None = None
    """None: nothing is wrong, or nobody has to mend it."""

    @property
    def headline(self) -> str:
        """The reason, behind its class."""
        return f"{self.error.value}: {self.reason}" if self.error else self.reason

    @property
    def why(self) -> str:
        """The reason behind its class, and below it what the trace has beyond it."""
        lines = self.trace.splitlines()
        beyond = [line for line in lines if not (line and self.reason.startswith(line))]
        return "\n".join((self.headline, *beyond)).rstrip()


@dataclass(frozen=True, slots=True)
class Warned:
    """Something that its owner should look at, though the resource goes on."""

    resource: Resource
    token: Token
    text: str


@dataclass(frozen=True, slots=True)
class TaskConfigsChanged:
    """How a connector splits its work, in the order of its tasks."""

    connector: str
    token: Token
    configs: tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True)
class BatchDone:
    """A batch that counts, and how long it took."""

    commit: Commit
    began_ms: int
    """When the task first looked for a batch since its start, by the wall clock."""
    is_first: bool
    """Whether it is the first since the task's start."""
    seconds: Mapping[str, float]
    """How long each phase took: plan, wait (for a place on the engine), run (reading, transforming
    and staging), commit, publish."""
    restarts: AutoRestart = NEVER_RESTARTED
    """How often the task was restarted before it."""


@dataclass(slots=True)
class BatchClock:
    """How long the phases of one batch took, in seconds."""

    phases: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def phase(self, name: str) -> Generator[None]:
        """Take the time of a phase."""
        began = time.perf_counter()
        yield
        self.phases[name] = time.perf_counter() - began

    def cost(self, bytes_in: int, before: "BatchClock") -> Cost:
        """Return what a batch took until its commit, with the last phases of the one before."""
        first = (self.ms(each) for each in ("plan", "wait", "run"))
        return Cost(bytes_in, *first, *(before.ms(each) for each in ("commit", "publish")))

    def ms(self, name: str) -> int:
        """Return how long a phase took, 0 if there was none."""
        return round(self.phases.get(name, 0.0) * 1000)

    @property
    def total(self) -> float:
        """Of all phases."""
        return sum(self.phases.values())

    @property
    def worked(self) -> float:
        """Without the wait for a place on the engine."""
        return self.total - self.phases["wait"]


Report = Started | Stopped | Hung | StatusChanged | Warned | TaskConfigsChanged | BatchDone


class StatusReports:
    """The reports of one resource under one token: its state when that changes, and warnings."""

    def __init__(
        self,
        launch: Launch,
        report: Callable[[Report], None],
        restarts: Callable[[], AutoRestart] = AutoRestart,
    ) -> None:
        """Report with each state how often the resource was restarted, as `restarts` tells."""
        self._of = launch.resource, launch.token
        self._report = report
        self._restarts = restarts
        self.last: tuple[RunState, str] | None = None
        """The state and reason that were reported last."""

    def tell(
        self,
        state: RunState,
        reason: str = "",
        trace: str = "",
        error: ErrorClass | None = None,
    ) -> None:
        """Report a state with its reason, unless they are the last ones."""
        if (state, reason) != self.last:
            self.last = (state, reason)
            restarts = self._restarts()
            self._report(StatusChanged(*self._of, state, reason, trace, restarts, error))

    def warn(self, text: str) -> None:
        """Report what the owner should look at."""
        self._report(Warned(*self._of, text))


class BadRowsTold:
    """What a status says of bad rows that the task has left out since it started.

    It is told anew once they are twice as many: each remark that differs from the one before is
    written to the group's log.
    """

    def __init__(self) -> None:
        self._count = 0
        self._told = 0
        """How many the remark tells of."""
        self.remark = ""
        """Nothing if there were none."""

    def count(self, commit: Commit, queue: str) -> None:
        """Take note of a batch that counts; `queue` is where its dead letters are, if they are."""
        self._count += commit.skipped
        if self._count < max(1, 2 * self._told):
            return
        self._told = self._count
        rows = "1 bad row was" if self._told == 1 else f"at least {self._told} bad rows were"
        became = (
            f"left out since the start: they are in {queue}"
            if queue
            else "left out since the start, and dropped: errors.deadletterqueue.path, or "
            ".topic.name, keeps them"
        )
        self.remark = f"{rows} {became}"
