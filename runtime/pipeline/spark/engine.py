"""What tasks may ask of an engine, whichever kind runs their jobs.

An engine has one Spark driver. It starts in the background, runs jobs on the threads that
bring them, and tells three endings apart: the job's own error, a cancellation, and the loss
of the driver under it.
"""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

DEFAULT_POOL = "default"
"""Spark's own name of the pool that jobs without one are in."""


class EngineState(Enum):
    """How far an engine is from running jobs."""

    COLD = "cold"
    """Not opened yet, or closed."""

    WARMING = "warming"
    """Its driver starts, or runs its first job."""

    WARM = "warm"
    """Jobs run."""

    DOWN = "down"
    """Its driver could not start, or is gone; `open` starts a new one."""


STEPS: dict[EngineState, frozenset[EngineState]] = {
    EngineState.COLD: frozenset({EngineState.WARMING, EngineState.DOWN}),
    EngineState.WARMING: frozenset({EngineState.WARM, EngineState.DOWN, EngineState.COLD}),
    EngineState.WARM: frozenset({EngineState.DOWN, EngineState.COLD}),
    EngineState.DOWN: frozenset({EngineState.WARMING, EngineState.DOWN, EngineState.COLD}),
}
"""Where each state may go."""


class EngineDown(Exception):  # noqa: N818  # a state of the world, not a mistake
    """There is no driver to run the job: retry when the engine is warm again."""


class Cancelled(Exception):  # noqa: N818  # what the caller asked for
    """The job ended because its tag was cancelled; none of its results count."""


class TaskError(Exception):
    """The job failed inside Spark; the text is the reason without the machinery around it."""


class Engine(Protocol):
    """Runs jobs on one Spark driver; every method may be called from any thread but `open`."""

    @property
    def state(self) -> EngineState:
        """How far it is from running jobs; never blocks."""
        ...

    @property
    def detail(self) -> str:
        """Say what it is doing, or why it is down; holds no secret."""
        ...

    @property
    def pid(self) -> int | None:
        """The process id of its driver, if it has one that ends with this process."""
        ...

    def open(self) -> None:
        """Start or ask for a driver unless there is one; returns at once, warming goes on.

        Call it from the process's main thread: the driver dies with the thread that started it.
        What goes wrong is told by `state` and `detail`.
        """
        ...

    def wait_warm(self, seconds: float) -> bool:
        """Wait until jobs run, or it is plain that they will not; tell whether they do."""
        ...

    def run(self, tag: str, job: "Callable[[SparkSession], T]", pool: str = DEFAULT_POOL) -> T:
        """Run a job on the calling thread, and tag all the Spark work it starts.

        Pools get the cores in turn, whatever the size of their jobs. The session is shared by all
        jobs: a job leaves its settings as they are and gives
        views names that carry its tag. A tag holds no comma. Raises `EngineDown`, `Cancelled`,
        `TaskError` for what failed inside Spark, or the job's own exception as it is.
        """
        ...

    def cancel(self, tag: str) -> None:
        """End what runs now under a tag; returns at once.

        Those runs raise `Cancelled`, and side effects of their Python code on executors end
        within 0.2 s. Driver-side code of a job is not interrupted: it ends at its next
        Spark job. A later run under the same tag is not touched. Should cancelled work keep its
        cores for a quarter of a minute, the engine ends and is `DOWN`: Spark has no other way.
        """
        ...

    def close(self, seconds: float) -> None:
        """Let go of the driver, at the latest after so many seconds; its own one ends."""
        ...
