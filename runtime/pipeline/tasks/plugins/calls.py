"""The open calls of a plugin, and how a thread whose call is overdue is left behind.

Python cannot end a thread from outside. So a thread whose call is overdue is left behind: its slot
on the engine is released, and another thread replaces it. If the call returns after all,
`LeftBehind` ends the thread right there, before it does anything else. It cannot commit:
a commit is also a call, and a thread that was left behind cannot begin one.
"""

import logging
import sys
import time
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from threading import Condition, current_thread, get_ident
from typing import Final, ParamSpec, TypeVar

from ...spi.errors import CallTimedOut, PluginExited
from ...spi.keys import common as keys

P = ParamSpec("P")
T = TypeVar("T")

LOGGER = logging.getLogger(__name__)
_COMMIT: Final = "commit"


class StillHanging(Exception):  # noqa: N818  # names who is to blame
    """Too many threads of one resource hang in plugin calls, so it is not restarted."""


class LeftBehind(BaseException):
    """Ends a thread that was left behind and replaced by another one."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The time limits of a plugin call and of staging a batch, and the memory limit of a plan."""

    call_s: float
    batch_s: float
    memory: int
    """The most bytes of rows in a plan."""

    @staticmethod
    def of(config: Mapping[str, str]) -> "CallLimits":
        """Return a connector's limits."""
        settings = keys.running_settings(config)
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
    """The config key of the limit."""
    deadline: float
    """The monotonic time from which it is overdue."""
    thread: int


class Calls:
    """The plugin calls of one attempt of a task or a connector; usable from any thread."""

    def __init__(self, limits: CallLimits) -> None:
        self.limits = limits
        self._changed = Condition()
        """Guards the following fields; notified when a call ends."""
        self._open: list[_Call] = []
        self._is_left = False
        self._held_resources: list[ExitStack] = []
        """The resources of the attempt, such as a slot on the engine, that others may wait for."""

    def run(self, name: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a plugin; raises the plugin's `Exception`, and `PluginExited` for all else."""
        LOGGER.debug("%s calls %s", current_thread().name, name)
        with self._tracked(name, self.limits.call_s, keys.CALL_TIMEOUT_MS):
            return _call_contained(name, call, *args, **kwargs)

    def run_job(self, name: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a plugin that runs a Spark job in the call: the limit is that of a batch."""
        LOGGER.debug("%s calls %s", current_thread().name, name)
        with self._tracked(name, self.limits.batch_s, keys.BATCH_TIMEOUT_MS):
            return _call_contained(name, call, *args, **kwargs)

    def run_release(self, name: str, call: Callable[[], None]) -> None:
        """Make the closing call of an object, even on a thread that was left behind."""
        if not self._is_left:
            self.run(name, call)
            return
        with suppress(Exception):
            _call_contained(name, call)

    @contextmanager
    def batch(self) -> Generator[None]:
        """Limit the time in which a batch is staged."""
        with self._tracked("the batch", self.limits.batch_s, keys.BATCH_TIMEOUT_MS):
            yield

    @contextmanager
    def commit(self) -> Generator[None]:
        """Make the next attempt wait until a commit has its answer; it has no time limit."""
        with self._tracked(_COMMIT, float("inf"), ""):
            yield

    @contextmanager
    def holding(self, held: ExitStack) -> Generator[None]:
        """Hold a resource until the end of the block, or until the thread is left behind."""
        with self._changed:
            self._held_resources.append(held)
        try:
            yield
        finally:
            held.close()
            with self._changed:
                self._held_resources.remove(held)

    def leave(self, *, any_call: bool = False) -> CallTimedOut | None:
        """Leave the attempt behind if a call is overdue; return the error of that call.

        With `any_call` an open call need not be overdue. Commits are never left behind, and an
        attempt is left behind at most once; otherwise None is returned.
        """
        if not self._open:  # without the lock: this is asked twice a second of every resource
            return None
        now = time.monotonic()
        with self._changed:
            late = [call for call in self._open if any_call or call.deadline <= now]
            late = [call for call in late if call.name is not _COMMIT]
            if not late or self._is_left:
                return None
            self._is_left = True
            held = [*self._held_resources]
        for each in held:
            each.close()
        return _timed_out(late[-1])

    def wait_committed(self) -> None:
        """Wait until no commit is open."""
        with self._changed:
            self._changed.wait_for(lambda: all(call.name is not _COMMIT for call in self._open))

    @contextmanager
    def _tracked(self, name: str, limit_s: float, key: str) -> Generator[None]:
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


def _call_contained(name: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a plugin; `SystemExit` and the like become `PluginExited`."""
    try:
        return call(*args, **kwargs)
    except (Exception, LeftBehind):
        raise
    except BaseException as error:
        raise PluginExited(f"{name} raised {type(error).__name__}: a plugin may not") from error


def _timed_out(call: _Call) -> CallTimedOut:
    # There is no public way to get the stack of another thread.
    frames = sys._current_frames()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    frame = frames.get(call.thread)
    where = "".join(traceback.format_stack(frame)) if frame else ""
    return CallTimedOut(
        f"{call.name} did not return within {call.limit_s:g} s ({call.key}), and its thread was "
        f"left behind: it can no longer commit anything\n{where}".rstrip()
    )
