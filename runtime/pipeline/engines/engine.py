"""The interface of an engine, which runs the Spark jobs of tasks.

An engine has one Spark driver. It starts in the background, runs jobs on the callers' threads, and
distinguishes three kinds of failure: the job's own error, a cancellation, and the loss of the
driver.
"""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")


class JvmHeap(NamedTuple):
    """The heap of a JVM, in bytes, and for how long it has collected garbage since its start."""

    used: int
    committed: int
    max: int
    gc_ms: int


DEFAULT_POOL = "default"
"""Spark's name of the pool for jobs without a pool."""


class EngineState(Enum):
    """The state of an engine's driver."""

    COLD = "cold"
    """Not opened yet, or closed."""

    WARMING = "warming"
    """Its driver is starting, or runs its first job."""

    WARM = "warm"
    """It can run jobs."""

    DOWN = "down"
    """Its driver could not start, or is gone; `open` starts a new one."""


STEPS: dict[EngineState, frozenset[EngineState]] = {
    EngineState.COLD: frozenset({EngineState.WARMING, EngineState.DOWN}),
    EngineState.WARMING: frozenset({EngineState.WARM, EngineState.DOWN, EngineState.COLD}),
    EngineState.WARM: frozenset({EngineState.DOWN, EngineState.COLD}),
    EngineState.DOWN: frozenset({EngineState.WARMING, EngineState.DOWN, EngineState.COLD}),
}
"""The allowed transitions from each state."""


class EngineDown(Exception):  # noqa: N818  # a state of the world, not a mistake
    """There is no driver for the job: retry when the engine is warm again."""


class Cancelled(Exception):  # noqa: N818  # what the caller asked for
    """The job ended because its tag was cancelled; none of its results count."""


class TaskError(Exception):
    """The job failed inside Spark; the text is the reason, without stack traces."""


class EngineExhaustedError(TaskError):
    """The engine has no memory for the job, and ends with each try: all others lose theirs."""


class Engine(Protocol):
    """Runs jobs on one Spark driver; all methods but `open` may be called from any thread."""

    @property
    def state(self) -> EngineState:
        """The state of the driver; never blocks."""
        ...

    @property
    def is_wanted(self) -> bool:
        """Whether it was waited for, or asked to run a job, in any state."""
        ...

    @property
    def detail(self) -> str:
        """The engine's activity, or why it is down, for users; has no secrets."""
        ...

    @property
    def pid(self) -> int | None:
        """The process id of its driver; None if there is none that ends with this process."""
        ...

    @property
    def heap(self) -> JvmHeap | None:
        """The heap of its own driver, some seconds old; None: it is not known."""
        ...

    def open(self) -> None:
        """Start or request a driver unless there is one; returns at once, while it warms up.

        Call it on the process's main thread: the driver dies with the thread that started it.
        Errors appear in `state` and `detail`.
        """
        ...

    def wait_warm(self, seconds: float) -> bool:
        """Wait until the engine is warm or its start has failed; return whether it is warm."""
        ...

    def run(self, tag: str, job: "Callable[[SparkSession], T]", pool: str = DEFAULT_POOL) -> T:
        """Run a job on the calling thread, and tag all its Spark jobs.

        Pools share the cores fairly, whatever the size of their jobs. All jobs share the session:
        a job must not change settings, and the names of its views must contain its tag. A tag has
        no comma. Raises `EngineDown`, `Cancelled`, `TaskError` for an error inside Spark, or the
        job's own exception.
        """
        ...

    def cancel(self, tag: str) -> None:
        """Cancel the running jobs of a tag; returns at once.

        These runs raise `Cancelled`. Their Python code on executors ends within about 2 s, since
        Spark looks at that interval whether code that yields no rows is to end. Code of a job on
        the driver is not interrupted: it ends at its next Spark job. A later run with the
        same tag is not affected. If cancelled jobs keep their cores for 15 s, the engine ends its
        driver and is `DOWN`, since Spark has no other way to stop them.
        """
        ...

    def close(self, seconds: float) -> None:
        """Release the driver within the given time; a driver of its own ends."""
        ...
