# pyright: basic
"""A server that hangs is told from one that is at work for long, without waiting for either."""

import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fairlead.runtime.pipeline.stores.postgres import hang_detection
from fairlead.runtime.pipeline.stores.postgres.connecting import Server, is_away
from fairlead_tests.postgres_pipes import source_config
from fairlead_tests.postgres_server import Database, wait_until

Ask = Callable[[str], list[Any]]


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hang_detection, "PATIENCE_S", 0.3)
    monkeypatch.setattr(hang_detection, "_PROBE_S", 2)  # the least that libpq has
    monkeypatch.setattr(hang_detection, "_OVERDUE_S", 0.5)


@pytest.fixture(params=["psycopg", "adbc"])
def ask(request: pytest.FixtureRequest, reached: Server) -> Iterator[Ask]:
    """Return what asks a server by a connection of either library."""
    is_adbc = request.param == "adbc"
    connection: Any = reached.connect_adbc(autocommit=True) if is_adbc else reached.connect()

    def of(query: str) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(query)
            found: list[Any] = cursor.fetchall()
            return found

    yield of
    connection.close()


@pytest.fixture
def reached(database: Database) -> Server:
    return Server.of("source", source_config(database, {"query_timeout_ms": "1000"}))


@contextmanager
def stopped(*pids: int) -> Generator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_a_session_whose_process_is_stopped_is_given_up(ask: Ask) -> None:
    ((pid,),) = ask("SELECT pg_backend_pid()")
    with stopped(pid):
        with pytest.raises(Exception, match=f"as idle: the server's process {pid} hangs") as told:
            ask("SELECT 1")
        assert is_away(told.value)
        with pytest.raises(Exception, match=r"hangs|the connection is closed"):
            ask("SELECT 1")


def test_a_server_that_takes_no_connection_is_given_up(database: Database, ask: Ask) -> None:
    ((pid,),) = ask("SELECT pg_backend_pid()")
    ((parent,),) = ask("SELECT pg_read_file('postmaster.pid', 0, 20)")
    told = "none to a new connection for 2 s: the server hangs"
    with stopped(int(parent.split()[0]), pid), pytest.raises(Exception, match=told):
        ask("SELECT 1")
    assert database.run("SELECT 1") == [(1,)]


def test_a_statement_that_takes_long_is_waited_for(ask: Ask) -> None:
    assert ask("SELECT 7 FROM pg_sleep(0.9)") == [(7,)]


def test_a_process_that_is_stopped_within_a_statement_is_given_up_after_its_timeout(
    ask: Ask,
) -> None:
    ((pid,),) = ask("SELECT pg_backend_pid()")
    stop = threading.Timer(0.2, os.kill, (pid, signal.SIGSTOP))
    stop.start()
    begun = time.monotonic()
    try:
        with pytest.raises(Exception, match=r"longer than query\.timeout.ms allows: the server's"):
            ask("SELECT pg_sleep(9)")
        assert time.monotonic() - begun >= 1.5
    finally:
        os.kill(pid, signal.SIGCONT)


def test_no_thread_is_left_of_sessions_that_are_closed(reached: Server) -> None:
    before = {*threading.enumerate()}
    for _ in range(3):
        reached.connect_adbc().close()
    wait_until(lambda: before >= {*threading.enumerate()})
