"""The calls that a plugin has not returned from, and what becomes of one that takes too long.

A thread in Python cannot be ended from outside. So a thread whose call is overdue is left behind:
what it held is given back, another thread goes on in its place, and should the call return after
all, `LeftBehind` ends the thread at that very point, before it does anything more. It cannot
commit: a commit is a call, too, which a thread that was left behind cannot enter.
"""

import sys
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from threading import Condition, get_ident
from typing import Final, ParamSpec, TypeVar

from ...connectors import common_keys as keys
from ...spi.errors import CallTimedOut, PluginExited

P = ParamSpec("P")
T = TypeVar("T")

_COMMIT: Final = "commit"


class StillHanging(Exception):  # noqa: N818  # names who is to blame
    """Too many threads of one resource hang in calls for another one to be risked."""


class LeftBehind(BaseException):
    """Ends a thread in whose place another one has gone on."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How long a call of a plugin may take, and how long a batch until it is staged."""

    call_s: float
    batch_s: float
    memory: int
    """How many bytes of rows a plan may hold."""

    @staticmethod
    def of(config: Mapping[str, str]) -> "CallLimits":
        """Return a connector's limits."""
        settings = keys.common_settings(config)
        return CallLimits(
            settings.number(keys.CALL_TIMEOUT_MS) / 1000,
            settings.number(keys.BATCH_TIMEOUT_MS) / 1000,
            settings.number(keys.TASK_MEMORY),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    name: str
    limit_s: float
    key: str
    """What to raise for it to have more time."""
    by: float
    """When it is overdue, in seconds on the monotonic clock."""
    thread: int


class Calls:
    """The calls of one attempt of a task or a connector; usable from any thread."""

    def __init__(self, limits: CallLimits) -> None:
        self.limits = limits
        self._changed = Condition()
        """Guards all of this, and is notified when a call ends."""
        self._open: list[_Call] = []
        self._is_left = False
        self._held: list[ExitStack] = []
        """What its threads hold, and others may wait for."""

    def run(self, name: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make a call of a plugin, which may raise any `Exception` and nothing else."""
        with self._entered(name, self.limits.call_s, keys.CALL_TIMEOUT_MS):
            return _contained(name, call, *args, **kwargs)

    def run_job(self, name: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Make a call that a Spark job is run in: it may take as long as its batch."""
        with self._entered(name, self.limits.batch_s, keys.BATCH_TIMEOUT_MS):
            return _contained(name, call, *args, **kwargs)

    def run_last(self, name: str, call: Callable[[], None]) -> None:
        """Make the last call of an object, which a thread that was left behind makes as well."""
        if not self._is_left:
            self.run(name, call)
            return
        with suppress(Exception):
            _contained(name, call)

    @contextmanager
    def batch(self) -> Generator[None]:
        """Bound how long a batch takes until it is staged."""
        with self._entered("the batch", self.limits.batch_s, keys.BATCH_TIMEOUT_MS):
            yield

    @contextmanager
    def commit(self) -> Generator[None]:
        """Keep the next attempt waiting until a commit has its answer; it takes what it takes."""
        with self._entered(_COMMIT, float("inf"), ""):
            yield

    @contextmanager
    def holding(self, held: ExitStack) -> Generator[None]:
        """Hold what others may wait for, until the end or until the thread is left behind."""
        with self._changed:
            self._held.append(held)
        try:
            yield
        finally:
            held.close()
            with self._changed:
                self._held.remove(held)

    def leave(self, *, any_call: bool = False) -> CallTimedOut | None:
        """Leave the attempt behind, and tell of its overdue call; None: there is none.

        Any call will do if it is to end anyway. An attempt is left behind once.
        """
        now = time.monotonic()
        with self._changed:
            late = [call for call in self._open if any_call or call.by <= now]
            late = [call for call in late if call.name is not _COMMIT]
            if not late or self._is_left:
                return None
            self._is_left = True
            held = [*self._held]
        for each in held:
            each.close()
        return _timed_out(late[-1])

    def wait_committed(self) -> None:
        """Wait until no commit is under way."""
        with self._changed:
            self._changed.wait_for(lambda: all(call.name is not _COMMIT for call in self._open))

    @contextmanager
    def _entered(self, name: str, limit_s: float, key: str) -> Generator[None]:
        call = _Call(name, limit_s, key, time.monotonic() + limit_s, get_ident())
        with self._changed:
            if self._is_left:
                raise LeftBehind
            self._open.append(call)
        try:
            yield
        finally:
            with self._changed:
                self._open.remove(call)
                self._changed.notify_all()
                is_left = self._is_left
            if is_left:
                raise LeftBehind


def _contained(name: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a plugin; what would end its thread or the process is an error of the plugin."""
    try:
        return call(*args, **kwargs)
    except (Exception, LeftBehind):
        raise
    except BaseException as error:
        raise PluginExited(f"{name} raised {type(error).__name__}: a plugin may not") from error


def _timed_out(call: _Call) -> CallTimedOut:
    # Nothing else tells where a thread is.
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    frame = frames.get(call.thread)
    where = "".join(traceback.format_stack(frame)) if frame else ""
    return CallTimedOut(
        f"{call.name} did not return within {call.limit_s:g} s ({call.key}), and its thread was "
        f"left behind: nothing of what it does counts any more\n{where}".rstrip()
    )
