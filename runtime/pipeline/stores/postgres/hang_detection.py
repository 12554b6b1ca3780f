# pyright: basic
"""Detection of hanging PostgreSQL servers and sessions, for psycopg and ADBC connections.

A stopped server process, or a frozen machine, keeps its connections: its kernel still acknowledges
packets, so neither keepalives nor `tcp_user_timeout` help, and its own `statement_timeout` does not
run. A client timeout cannot tell a hang from a long statement. So a waiting client probes the
server by a new connection:

    no answer                                                the server hangs
    the session is idle since before the request             its backend process hangs
    its statement runs long after `query.timeout.ms`         likewise
    otherwise                                                it is working: wait

A hanging session is abandoned like a lost connection, and its task retries (`Away`). The server may
still execute its statement later: the next owner terminates such sessions by application name.
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
"""How long to wait before the first probe; the interval doubles after each probe."""
_LONGEST_S: Final = 60.0
_PROBE_S: Final = 10
"""The timeout of a probe's connection."""
_OVERDUE_S: Final = 15.0
_PROBE_NAME: Final = "fairlead looks whether the server answers"
_STATE: Final = """
SELECT state LIKE 'idle%%', extract(epoch FROM clock_timestamp() - state_change)::float8,
    extract(epoch FROM clock_timestamp() - query_start)::float8
FROM pg_stat_activity WHERE pid = %s"""


@dataclass
class Watch:
    """Probes one session; `timeout_s` is its statement timeout."""

    conninfo: str
    timeout_s: float
    pid: int = 0
    """The pid of its backend process; 0: unknown yet."""

    def waits(self) -> Generator[float, None, str]:
        """Yield how long to wait before each probe; return the reason when the session hangs."""
        asked, pause_s, told = time.monotonic(), PATIENCE_S, ""
        while not told:
            yield pause_s
            told = self._silent_for(time.monotonic() - asked)
            pause_s = min(2 * pause_s, _LONGEST_S)
        return told

    def _silent_for(self, waited_s: float) -> str:
        """Probe a session; return why it hangs, empty if it does not."""
        begun = f"no answer for {waited_s:.0f} s"
        own = make_conninfo(self.conninfo, application_name=_PROBE_NAME, connect_timeout=_PROBE_S)
        try:
            with psycopg.connect(own, autocommit=True) as probe:
                row = probe.execute(_STATE, (self.pid,)).fetchone()
        except psycopg.errors.ConnectionTimeout:
            return f"{begun}, and none to a new connection for {_PROBE_S} s: the server hangs"
        except psycopg.Error:
            return ""  # the server answers, or its connections fail by themselves
        is_idle, unchanged_s, worked_s = row or (False, 0.0, 0.0)
        hangs = f"the server's process {self.pid} hangs, or is stopped"
        if is_idle and unchanged_s is not None and unchanged_s >= waited_s:
            return f"{begun}, while the session counts as idle: {hangs}"
        limit_s = self.timeout_s + _OVERDUE_S
        if row and not is_idle and waited_s >= limit_s and (worked_s or 0.0) >= limit_s:
            return f"{begun}, which is longer than query.timeout.ms allows: {hangs}"
        return ""


class WatchedConnection(psycopg.Connection[Any]):
    """A psycopg connection that is closed when its session hangs."""

    watch: Watch | None = None

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as psycopg's own
        """Wait for a psycopg generator, with probes of the session."""
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
    """A thread for the calls of one ADBC session, which have no timeouts.

    A hanging call is abandoned with its thread, which closes the session if the call returns.
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._silence = ""
        """Why the session hangs; empty: it does not."""
        self._calls = SimpleQueue[Callable[[], None] | None]()
        Thread(target=self._work, name="postgres-calls", daemon=True).start()

    def run(self, call: Callable[..., T], *args: object, **kwargs: object) -> T:
        """Call in the thread; raises as the call does, or `adbc.OperationalError` if it hangs."""
        if self._silence:
            raise self._in_vain()
        done = Future[T]()
        self._calls.put(lambda: _make(done, call, args, kwargs))
        waits = self.watch.waits()
        while True:
            try:
                pause_s = next(waits)
            except StopIteration as told:
                self._silence = told.value
                raise self._in_vain() from None
            try:
                return done.result(pause_s)
            except TimeoutError:
                if done.done():
                    return done.result()

    def close(self, close: Callable[[], None]) -> None:
        """Call a `close` method; does not wait if the session hangs."""
        if self._silence:
            self._calls.put(lambda: _make(Future(), close, (), {}))
        else:
            self.run(close)

    def end(self) -> None:
        """End the thread after its pending calls."""
        self._calls.put(None)

    def _in_vain(self) -> Exception:
        error: Exception = adbc.OperationalError(self._silence, status_code=AdbcStatusCode.TIMEOUT)
        return error

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()


class WatchedAdbc:
    """A proxy of an ADBC connection or cursor that makes its calls in a `CallThread`."""

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
        """Close a cursor, or a session with its thread."""
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
    except BaseException as error:  # noqa: BLE001  # raised by `done.result()`
        done.set_exception(error)
    else:
        done.set_result(made)
