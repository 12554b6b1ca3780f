# pyright: basic
"""How long an answer of a server is waited for, and when it is known that none will come.

A server that is stopped, or a machine that is frozen, keeps its connections: its kernel still
acknowledges what it is sent, so that neither keepalives nor `tcp_user_timeout` tell, and its own
`statement_timeout` stands still as well. Nor can a limit tell it from one that works for long at a
statement. So who has waited for a while looks, by a connection made for it:

    nobody answers there                                     the server hangs
    its session is idle since before it was asked            what serves the session hangs
    its statement goes on long after `query.timeout.ms`      likewise
    anything else                                            it is at work, and is waited for

What hangs is given up as a lost connection is, and its task waits (`Away`). What it had been asked
may still be done, once it goes on: whoever comes after ends such sessions by their name.
"""

import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar

import adbc_driver_postgresql.dbapi as adbc
import psycopg
from adbc_driver_manager import AdbcStatusCode
from psycopg.conninfo import make_conninfo

T = TypeVar("T")

PATIENCE_S: Final = 10.0
"""How long an answer is waited for before the first look; each look after it is twice as late."""
_LONGEST_S: Final = 60.0
_PROBE_S: Final = 10
"""How long a new connection may take to come about."""
_OVERDUE_S: Final = 15.0
_PROBE_NAME: Final = "fairlead looks whether the server answers"
_STATE: Final = """
SELECT state LIKE 'idle%%', extract(epoch FROM clock_timestamp() - state_change)::float8,
    extract(epoch FROM clock_timestamp() - query_start)::float8
FROM pg_stat_activity WHERE pid = %s"""


@dataclass
class Watch:
    """Looks after one session; `timeout_s` is how long the server may work at one statement."""

    conninfo: str
    timeout_s: float
    pid: int = 0
    """The process of the server that serves it; 0: not known yet."""

    def waits(self) -> Generator[float, None, str]:
        """Yield how long to wait for an answer, again and again; return why none will come."""
        asked, pause_s, told = time.monotonic(), PATIENCE_S, ""
        while not told:
            yield pause_s
            told = self._silent_for(time.monotonic() - asked)
            pause_s = min(2 * pause_s, _LONGEST_S)
        return told

    def _silent_for(self, waited_s: float) -> str:
        """Look at a session that has waited for so long; return why it is in vain, "" if not."""
        begun = f"no answer for {waited_s:.0f} s"
        own = make_conninfo(self.conninfo, application_name=_PROBE_NAME, connect_timeout=_PROBE_S)
        try:
            with psycopg.connect(own, autocommit=True) as probe:
                row = probe.execute(_STATE, (self.pid,)).fetchone()
        except psycopg.errors.ConnectionTimeout:
            return f"{begun}, and none to a new connection for {_PROBE_S} s: the server hangs"
        except psycopg.Error:
            return ""  # it answers, or its connections end by themselves
        is_idle, unchanged_s, worked_s = row or (False, 0.0, 0.0)
        hangs = f"the server's process {self.pid} hangs, or is stopped"
        if is_idle and unchanged_s is not None and unchanged_s >= waited_s:
            return f"{begun}, while the session counts as idle: {hangs}"
        limit_s = self.timeout_s + _OVERDUE_S
        if row and not is_idle and waited_s >= limit_s and (worked_s or 0.0) >= limit_s:
            return f"{begun}, which is longer than query.timeout.ms allows: {hangs}"
        return ""


class WatchedConnection(psycopg.Connection[Any]):
    """A connection of psycopg that is lost when no answer will come."""

    watch: Watch | None = None

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as psycopg's own
        """Wait for what a generator of psycopg's waits for, as long as that is not in vain."""
        if self.watch is not None:
            gen = self._watched(gen, self.watch)
        return super().wait(gen, *args, **kwargs)

    def _watched(self, gen: Any, watch: Watch) -> Any:  # noqa: ANN401
        waits = watch.waits()
        look_at = time.monotonic() + next(waits)
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    waits = watch.waits()
                    look_at = time.monotonic() + next(waits)
                elif time.monotonic() >= look_at:
                    look_at = time.monotonic() + self._next_pause(waits)
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _next_pause(self, waits: Generator[float, None, str]) -> float:
        try:
            return next(waits)
        except StopIteration as told:
            self.close()
            raise psycopg.OperationalError(told.value) from None


class CallThread:
    """A thread that makes the calls of one session of ADBC: none of them has a limit of its own.

    One that is in vain is left behind with its thread, which ends the session should it come back.
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._told = ""
        """Why the calls are in vain."""
        self._calls = SimpleQueue[Callable[[], None] | None]()
        Thread(target=self._work, name="postgres-calls", daemon=True).start()

    def run(self, call: Callable[..., T], *args: object, **kwargs: object) -> T:
        """Call; raises what it raises, and `adbc.OperationalError` if it is in vain."""
        if self._told:
            raise self._in_vain()
        done = Future[T]()
        self._calls.put(lambda: _make(done, call, args, kwargs))
        waits = self.watch.waits()
        while True:
            try:
                pause_s = next(waits)
            except StopIteration as told:
                self._told = told.value
                raise self._in_vain() from None
            try:
                return done.result(pause_s)
            except TimeoutError:
                if done.done():
                    return done.result()

    def close(self, close: Callable[[], None]) -> None:
        """Close something of the session; nobody waits for what is in vain."""
        if self._told:
            self._calls.put(lambda: _make(Future(), close, (), {}))
        else:
            self.run(close)

    def end(self) -> None:
        """End the thread, once it comes back."""
        self._calls.put(None)

    def _in_vain(self) -> Exception:
        error: Exception = adbc.OperationalError(self._told, status_code=AdbcStatusCode.TIMEOUT)
        return error

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


class WatchedAdbc:
    """A connection of ADBC, or a cursor of it, whose calls are made by a `CallThread`."""

    def __init__(self, of: Any, thread: CallThread) -> None:  # noqa: ANN401
        self._of = of
        self._thread = thread

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # as ADBC has it
        found = getattr(self._of, name)
        if not callable(found):
            return found

        def call(*args: object, **kwargs: object) -> object:
            made = self._thread.run(found, *args, **kwargs)
            return WatchedAdbc(made, self._thread) if isinstance(made, adbc.Cursor) else made

        return call

    def close(self) -> None:
        """End a session, with its thread, or a cursor."""
        try:
            self._thread.close(self._of.close)
        finally:
            if isinstance(self._of, adbc.Connection):
                self._thread.end()

    def __enter__(self) -> "WatchedAdbc":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _make(
    done: "Future[T]", call: Callable[..., T], args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    try:
        made = call(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001  # it is raised where it is waited for
        done.set_exception(error)
    else:
        done.set_result(made)
