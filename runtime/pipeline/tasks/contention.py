"""How the tasks of one worker share its engine and the CPU time for polling their sources.

Fifty concurrent batches on two cores were slower than the same batches one after the other, so an
engine runs only a few at once. Waiting tasks get a slot in the order of waiting time multiplied by
weight: a connector with twice the weight waits half as long, and no task starves.

An engine that ends takes all batches in it along, and one of them may be the reason: a query that
needs more memory than there is. So each task that lost a batch in this way runs its next one while
none of the others does, in all workers of the node: then one ends the engine alone, and the others
get on.

A poll of a folder takes some tenths of a millisecond, whether it has ten files or a hundred
thousand. So a single task may poll some ten times a second and finds new files soon, even if
nothing wakes it up. With many tasks each polls less often, down to its poll interval. With hundreds
of them it polls later than that: their threads would take turns with the one that hears the group.

One thread ends the pauses of all, one after the other. A thread that waits for the GIL looks two
hundred times a second whether it gets it. If the process was held up for a second, hundreds of idle
tasks would be due at once, and with so many looks the thread that has the GIL would get no time any
more. So idle tasks sleep without a time limit. The thread that wakes them needs the GIL itself for
each: while it is scarce, they wake more slowly.
"""

import fcntl
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from pathlib import Path
from threading import Condition, Event, Lock, Thread
from typing import Final

from ..engines.engine import EngineDown, EngineExhaustedError, TaskError
from ..engines.failures import session_is_gone
from .restarts import Halt

_SHARE: Final = 0.0025
"""The share of a core for all polls; the poll interval limits how far they slow down."""
_LARGEST_SHARE: Final = 0.1
"""The share of a core for all polls at which they slow down beyond the poll interval."""
_MOST_INTERVALS: Final = 10
"""How many poll intervals a task waits at most: a poll may have been an expensive exception."""

_SHORTEST_S: Final = 0.02
"""The shortest pause between two polls."""

_MOST_LOSSES: Final = 3
"""How many consecutive losses of the engine during a task's batches make the task fail."""
_OUT_OF_MEMORY: Final = "OutOfMemoryError"
"""The error in the output of a JVM that ends for lack of memory."""

_LONE_POLL_S: Final = 0.1
"""How often a task that may have ended the engine checks whether another one has its batch."""

_APART_S: Final = 0.001
"""The shortest time between the ends of two pauses."""


@dataclass(eq=False, frozen=True, slots=True)
class _Waiter:
    weight: int
    since: float
    """The monotonic time when it began to wait."""
    turn: Event = field(default_factory=Event)
    """Set when it gets a slot, and when its task is asked to end."""


class EngineLosses:
    """The engine's ends while a task's batches were staged, in a row."""

    def __init__(self) -> None:
        self._count = 0

    def __bool__(self) -> bool:
        """Return whether the engine ended during the last batch: the next may end it again."""
        return self._count > 0

    @contextmanager
    def counted(self) -> Generator[Callable[[], None]]:
        """Raise `TaskError` if the engine ends during this task's batches three times in a row.

        Otherwise a query that takes all memory of a shared JVM would end it again and again, with
        the batches of all other tasks. For lack of memory it is `EngineExhaustedError`. Yields a
        function to call when the job of a batch begins; an engine that ends before that is not
        counted.
        """
        begun = Event()
        try:
            yield begun.set
        except Exception as error:
            is_lost = isinstance(error, EngineDown) or session_is_gone(error)
            if is_lost and begun.is_set():
                self._count += 1
                if self._count >= _MOST_LOSSES:
                    raise self._error(str(error)) from error
            raise
        self._count = 0

    def _error(self, why: str) -> TaskError:
        is_exhausted = _OUT_OF_MEMORY in why
        text = (
            f"the engine ended {self._count} times in a row over a batch of this task, which may"
            " take more memory than there is: raise spark.heap, lower batch.max.bytes, or change"
            f" its query{', then restart it' if is_exhausted else ''}. Nothing of the batch counts:"
            f" {why}"
        )
        return EngineExhaustedError(text) if is_exhausted else TaskError(text)


def _tell_nobody(_running: int, _waiting: int) -> None:
    """Ignore how many batches have a slot, and how many wait."""


class BatchSlots:
    """A semaphore for the batches on one engine, and the age of those that are open.

    Each method may be called from any thread.
    """

    def __init__(
        self, most: int, lone: Path | None = None, tell: Callable[[int, int], None] | None = None
    ) -> None:
        """Create `most` slots; workers that share an engine have the same lock file `lone`.

        `tell` is called with the number of batches that have a slot, and of those that wait for
        one, when they change.
        """
        self._most = most
        self._tell = tell or _tell_nobody
        self._lone = lone
        """Locked by the one of those that may have ended the engine; None: they need no lock."""
        self._lock = Lock()
        """Guards the following fields."""
        self._free = most
        """The number of free slots."""
        self._waiting: list[_Waiter] = []
        """The tasks that wait for a slot, oldest first; while there are any, no slot is free."""
        self._open: dict[object, float] = {}
        """When each open batch was planned, by the monotonic clock, oldest first."""

    def open_batch(self) -> ExitStack:
        """Count a batch as open, with a slot or without, until the result is closed."""
        batch, opened = object(), ExitStack()
        with self._lock:
            self._open[batch] = time.monotonic()
        opened.callback(self._close_batch, batch)
        return opened

    @property
    def oldest_batch_s(self) -> float:
        """For how long the oldest open batch has been open, in seconds; 0: none is open."""
        with self._lock:
            return time.monotonic() - next(iter(self._open.values())) if self._open else 0.0

    def _close_batch(self, batch: object) -> None:
        with self._lock:
            del self._open[batch]

    def acquire(self, weight: int, halt: Halt, losses: EngineLosses | None = None) -> ExitStack:
        """Wait for a slot, or until the task is asked to end; closing the result frees the slot.

        Of the tasks that have lost the engine, one at a time gets a slot.
        """
        held = ExitStack()
        if losses and self._lone is not None:
            lone = held.enter_context(self._lone.open("ab"))
            while not (_locks(lone.fileno()) or halt.is_draining):
                halt.wait(_LONE_POLL_S)
        held.enter_context(self._acquire(weight, halt))
        return held

    def _acquire(self, weight: int, halt: Halt) -> ExitStack:
        with self._lock:
            if self._free:
                self._free -= 1
                self._tell_load()
                return self._held_slot()
            waiter = _Waiter(weight, time.monotonic())
            self._waiting.append(waiter)
            self._tell_load()
        halt.wait_for(waiter.turn)
        with self._lock:
            if waiter not in self._waiting:
                return self._held_slot()
            self._waiting.remove(waiter)
            self._tell_load()
            return ExitStack()

    def _held_slot(self) -> ExitStack:
        slot = ExitStack()
        slot.callback(self._release)
        return slot

    def _release(self) -> None:
        with self._lock:
            if not self._waiting:
                self._free += 1
                self._tell_load()
                return
            now = time.monotonic()
            first = max(self._waiting, key=lambda each: (now - each.since) * each.weight)
            self._waiting.remove(first)
            self._tell_load()
            first.turn.set()

    def _tell_load(self) -> None:
        self._tell(self._most - self._free, len(self._waiting))


def _locks(descriptor: int) -> bool:
    """Lock a file unless somebody else has locked it; the system unlocks it as it is closed."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(order=True, slots=True)
class _Pause:
    until: float
    """The monotonic time of its end."""
    number: int
    """Orders pauses with the same end."""
    wake: Event = field(compare=False)
    is_over: bool = field(default=False, compare=False)


class IdlePauses:
    """The pauses between the polls of all tasks of one worker; usable from any thread."""

    def __init__(self) -> None:
        self._changed = Condition()
        """Guards the following fields; notified when there is a new first pause."""
        self._tasks = 0
        """The number of running tasks."""
        self._waiting: list[_Pause] = []
        """A heap: the pause that ends first is first."""
        self._numbers = count()
        self._has_thread = False
        """Whether the thread that ends them runs; it does while there are any."""

    def register(self) -> ExitStack:
        """Count a task as polling until the result is closed."""
        with self._changed:
            self._tasks += 1
        counted = ExitStack()
        counted.callback(self._unregister)
        return counted

    def after(self, poll_s: float, longest_s: float) -> float:
        """Return the pause in seconds after a poll that took `poll_s` seconds of CPU time."""
        all_s = self._tasks * poll_s
        pause_s = min(longest_s, max(_SHORTEST_S, all_s / _SHARE))
        return max(pause_s, min(_MOST_INTERVALS * longest_s, all_s / _LARGEST_SHARE))

    def sleep(self, halt: Halt, wake: Event, seconds: float) -> None:
        """Sleep until an event is set; after so many seconds, or soon after that, it is set here.

        A request to end, before or while it sleeps, ends the sleep.
        """
        with self._changed:
            pause = _Pause(time.monotonic() + seconds, next(self._numbers), wake)
            heappush(self._waiting, pause)
            if not self._has_thread:
                self._has_thread = True
                Thread(target=self._end_all, name="idle-pauses", daemon=True).start()
            elif self._waiting[0] is pause:
                self._changed.notify()
        halt.wait_for(wake)
        with self._changed:
            if not pause.is_over:
                self._waiting.remove(pause)
                heapify(self._waiting)

    def _end_all(self) -> None:
        """End each pause in time, until there are none."""
        while (pause := self._take_first()) is not None:
            pause.wake.set()
            time.sleep(_APART_S)

    def _take_first(self) -> _Pause | None:
        """Wait for the end of the first pause, and remove it; None: there are none."""
        with self._changed:
            while self._waiting:
                left_s = self._waiting[0].until - time.monotonic()
                if left_s <= 0:
                    pause = heappop(self._waiting)
                    pause.is_over = True
                    return pause
                self._changed.wait(left_s)
            self._has_thread = False
            return None

    def _unregister(self) -> None:
        with self._changed:
            self._tasks -= 1
