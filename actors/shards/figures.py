"""The work of a coordinator's process in figures, in a file that others read at any time.

No log has them, and a scrape waits for no actor: so the process adds them up in a small file that
is mapped into its memory. It has one number of eight bytes after another, at places that are the
same in all processes of a node, and each is written at once: a reader sees no half of one. What
begins anew after a crash goes on with the file of its predecessor, so counters only rise; a node
begins with an empty folder. On a full disk the figures stay in memory, where nobody reads them.
"""

import mmap
import os
import time
from bisect import bisect_left
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from struct import unpack
from typing import Final

from ..messages.commands import AddressedReply, Traffic
from ..messages.errors import SUCCESS, Error

SUFFIX: Final = ".figures"
BOUNDS: Final = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    5.0,
)
"""The upper bounds of durations, in seconds; what is longer has a place of its own."""


class WorkPhase(Enum):
    """A step of the work of a coordinator, in their order."""

    QUEUE = "queue"
    """It has arrived, and waits for its decision."""
    DECIDE = "decide"
    """It is decided, together with all that arrived by then."""
    APPEND = "append"
    """An append of what was decided to one of the two logs, until it is durable."""
    ANSWER = "answer"
    """The answers that are due are sent."""


class Figure(Enum):
    """The single numbers, in the order of their places."""

    STARTED_AT = "when it was opened, in seconds since 1970"
    LOAD_SECONDS = "how long it took to rebuild its groups from the logs"
    BUSY_SECONDS = "for how long it has worked, and not waited for anything to arrive"
    REQUESTS = "the requests that it has decided"
    HELD_UP_SECONDS = "for how long it was itself held up by the machine"
    EXPIRED_OFFSETS = "the offsets that have expired"
    DELETED_OFFSETS = "the offsets that were deleted, the expired ones among them"


_PER_PHASE: Final = len(BOUNDS) + 2
"""A count by bound, one without a bound, and the sum of the seconds."""
_PHASE_AT: Final = {phase: n * _PER_PHASE for n, phase in enumerate(WorkPhase)}
_FIGURES_AT: Final = len(WorkPhase) * _PER_PHASE
_FIGURE_AT: Final = {figure: _FIGURES_AT + n for n, figure in enumerate(Figure)}
_ERRORS_AT: Final = _FIGURES_AT + len(Figure)
_ERROR_AT: Final = {error: _ERRORS_AT + n for n, error in enumerate(Error)}
_WORDS: Final = _ERRORS_AT + len(Error)
_WORD_BYTES: Final = 8


class FiguresFile:
    """Adds up the work of one process; only that process writes its file."""

    def __init__(self, file: Path | None = None) -> None:
        """Continue a file, or make it; without one the figures are in memory only."""
        self._words = _map(file) if file else _in_memory()
        now = self.traffic
        self._base = now.expired_offsets, now.deleted_offsets
        """The counts of earlier processes; this one begins with nothing."""

    def begin(self, load_seconds: float) -> None:
        """Record that the groups are rebuilt, and how long that took."""
        self._words[_FIGURE_AT[Figure.STARTED_AT]] = time.time()
        self._words[_FIGURE_AT[Figure.LOAD_SECONDS]] = load_seconds

    def observe(self, phase: WorkPhase, seconds: float, times: int = 1) -> None:
        """Count a duration, or as many that are alike."""
        at, words = _PHASE_AT[phase], self._words
        words[at + bisect_left(BOUNDS, seconds)] += times
        words[at + _PER_PHASE - 1] += seconds * times

    def add(self, figure: Figure, amount: float) -> None:
        """Add to a number."""
        self._words[_FIGURE_AT[figure]] += amount

    @contextmanager
    def working(self) -> Generator[None]:
        """Count the time of a context as work; what is nested counts once."""
        at, began = _FIGURE_AT[Figure.BUSY_SECONDS], time.perf_counter()
        before = self._words[at]
        try:
            yield
        finally:
            self._words[at] = before + time.perf_counter() - began

    def count_answers(self, answers: Iterable[AddressedReply]) -> None:
        """Count the refusals among answers, by error."""
        for answer in answers:
            error = getattr(answer.reply, "error", Error.NONE)
            if error not in SUCCESS:
                self._words[_ERROR_AT[error]] += 1

    @property
    def traffic(self) -> Traffic:
        """The offsets that all processes of these groups have counted."""
        expired, deleted = (
            self._words[_FIGURE_AT[each]]
            for each in (Figure.EXPIRED_OFFSETS, Figure.DELETED_OFFSETS)
        )
        return Traffic(0, 0, int(expired), int(deleted))

    def set_traffic(self, traffic: Traffic) -> None:
        """Record what this process has counted of offsets since its start."""
        expired, deleted = self._base
        self._words[_FIGURE_AT[Figure.EXPIRED_OFFSETS]] = expired + traffic.expired_offsets
        self._words[_FIGURE_AT[Figure.DELETED_OFFSETS]] = deleted + traffic.deleted_offsets


def _in_memory() -> "memoryview[float]":
    return memoryview(bytearray(_WORDS * _WORD_BYTES)).cast("d")


def _map(file: Path) -> "memoryview[float]":
    """Map a file of figures; one of another size is of another release, and begins anew."""
    size = _WORDS * _WORD_BYTES
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return _in_memory()
    try:
        if os.fstat(descriptor).st_size != size:
            os.ftruncate(descriptor, 0)
        os.posix_fallocate(descriptor, 0, size)  # a write to a hole of a full disk is a SIGBUS
        return memoryview(mmap.mmap(descriptor, size)).cast("d")
    except OSError:
        return _in_memory()
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class FiguresRead:
    """The figures of a coordinator's process as of one moment."""

    durations: Mapping[WorkPhase, tuple[Sequence[float], float]]
    """By phase the counts by `BOUNDS`, with one more for what is longer, and the sum in seconds."""
    figures: Mapping[Figure, float]
    refusals: Mapping[Error, float]
    """How often an error was answered; those that never were are left out."""


def read_figures(file: Path) -> FiguresRead | None:
    """Return the figures in a file; None if there are none, or of another release."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    if len(content) != _WORDS * _WORD_BYTES:
        return None
    words = unpack(f"{_WORDS}d", content)
    return FiguresRead(
        {
            phase: (words[at : at + _PER_PHASE - 1], words[at + _PER_PHASE - 1])
            for phase, at in _PHASE_AT.items()
        },
        {figure: words[at] for figure, at in _FIGURE_AT.items()},
        {error: words[at] for error, at in _ERROR_AT.items() if words[at]},
    )
