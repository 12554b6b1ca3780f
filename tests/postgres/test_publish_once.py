# pyright: basic
"""A batch that counts is in the table once, wherever its owner died and whoever goes on."""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from fairlead.events.commits import CommitId
from fairlead.runtime.pipeline.connectors.postgres.sink import publishing
from fairlead.runtime.pipeline.spi.errors import SinkAway, SinkBroken
from fairlead.runtime.pipeline.spi.sink import Sink, Tenure
from fairlead_tests.postgres_pipes import FIRST, SECOND, TASK, SinkLog, sink_of, tables_of
from fairlead_tests.postgres_server import PATIENCE_S, Database, started

POINTS = ("before it is staged", "staged", "committed", "while it is published", "not yet told")


class Died(Exception):  # noqa: N818  # what is the case
    """An owner was stopped at its point."""


class Owner:
    """A task's owner that writes two batches, and stops at a point of the second for good.

    `wake` has it go on, as a process does that was stopped and is continued.
    """

    def __init__(self, database: Database, log: SinkLog, point: str) -> None:
        self.sink = sink_of(database)
        self._log = log
        self._point = point
        self.stopped, self._go_on = threading.Event(), threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.stopped.wait(PATIENCE_S), self.error

    def wake(self) -> None:
        self._go_on.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001
            self.error = error

    def _work(self) -> None:
        log, sink = self._log, self.sink
        log.acquire(sink, FIRST)
        log.write(sink, pa.table({"n": [1, 2]}))
        rows = pa.table({"n": [3, 4]})
        self._pause(0)
        staged = log.stage(sink, rows)
        self._pause(1)
        if log.token != FIRST:
            raise Died  # the log does not take it: the token is not current
        log.count(staged)
        self._pause(2)
        commit_id, manifest = staged
        if self._point == POINTS[3]:
            self._halve(sink)
        sink.publish(manifest, commit_id, 1)
        self._pause(4)
        if log.waiting:
            log.published = commit_id
            log.waiting.clear()

    def _pause(self, point: int) -> None:
        if self._point == POINTS[point]:
            self.stopped.set()
            assert self._go_on.wait(PATIENCE_S)

    def _halve(self, sink: Any) -> None:
        """Have it stop inside its transaction, with the marker moved."""
        connection, pause = sink._connection, self._pause
        execute = connection.execute

        def stopping(statement: Any, *given: Any) -> Any:
            done = execute(statement, *given)
            if "INSERT INTO" in str(statement) and "AS m" in str(statement):
                pause(3)
            return done

        connection.execute = stopping


@pytest.fixture
def log(database: Database) -> SinkLog:
    database.run("CREATE TABLE t (n bigint)")
    return SinkLog()


def succeed(database: Database, log: SinkLog) -> Sink[Any]:
    """Take the task over: finish what counts, read again what does not, and go on."""
    sink = sink_of(database)
    was_counted = log.last is not None and log.last.batch == 1
    log.acquire(sink, SECOND)
    if not was_counted:
        log.write(sink, pa.table({"n": [3, 4]}))
    log.write(sink, pa.table({"n": [5]}))
    return sink


def numbers(database: Database) -> list[int]:
    return [n for (n,) in database.run("SELECT n FROM t ORDER BY n")]


@pytest.mark.parametrize("wakes", [False, True], ids=["lost", "zombie"])
@pytest.mark.parametrize("point", POINTS)
def test_a_successor_finishes_what_counts_and_no_more(
    database: Database, log: SinkLog, point: str, wakes: bool
) -> None:
    owner = Owner(database, log, point)
    successor = succeed(database, log)
    if wakes:
        owner.wake()
    successor.sweep(TASK, SECOND)
    assert numbers(database) == [1, 2, 3, 4, 5]
    assert tables_of(database) == {"t", "fairlead_published"}
    owner.wake()
    for sink in (owner.sink, successor):
        sink.close()


@pytest.mark.parametrize("is_marked", [True, False])
def test_the_marker_is_what_keeps_a_batch_from_being_doubled(
    database: Database, log: SinkLog, monkeypatch: pytest.MonkeyPatch, is_marked: bool
) -> None:
    if not is_marked:
        monkeypatch.setattr(publishing.Marker, "move", lambda *_: True)
    # Else the staging table would be missing the second time, which is told.
    monkeypatch.setattr(psycopg.Connection, "execute", _without_drops(psycopg.Connection.execute))
    sink = sink_of(database)
    log.acquire(sink)
    commit_id, manifest = log.stage(sink, pa.table({"n": [9]}))
    for _ in range(2):
        sink.publish(manifest, commit_id, 7)
    sink.close()
    assert numbers(database) == ([9] if is_marked else [9, 9])


def test_a_batch_whose_staging_is_gone_is_told(database: Database, log: SinkLog) -> None:
    sink = sink_of(database)
    log.acquire(sink)
    staged = log.stage(sink, pa.table({"n": [9]}))
    sink.discard(staged[0])
    log.count(staged)
    with pytest.raises(SinkBroken, match=r"where rows for public\.t were staged, is not in test"):
        log.publish(sink)
    sink.close()


def _without_drops(execute: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: Any, statement: Any, *given: Any, **more: Any) -> Any:
        is_drop = hasattr(statement, "as_string") and statement.as_string().startswith("DROP")
        if is_drop:
            return None
        return execute(self, statement, *given, **more)

    return run


def test_any_number_may_publish_at_once(database: Database, log: SinkLog) -> None:
    sinks = [sink_of(database) for _ in range(4)]
    log.acquire(sinks[0])
    staged = log.stage(sinks[0], pa.table({"n": list(range(1000))}))
    started = threading.Barrier(4)

    def publish(sink: Sink[Any]) -> None:
        started.wait(PATIENCE_S)
        sink.publish(staged[1], staged[0], 0)

    threads = [threading.Thread(target=publish, args=(sink,)) for sink in sinks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert numbers(database) == list(range(1000))
    for sink in sinks:
        sink.close()


def test_a_new_owner_ends_the_sessions_of_the_one_before(database: Database, log: SinkLog) -> None:
    before, other = sink_of(database), sink_of(database, insert_mode="insert")
    log.acquire(before)
    log.acquire(other, SECOND)
    with pytest.raises(SinkAway, match="terminating connection"):
        before.sweep(TASK, FIRST)
    other.close()


def test_what_never_counted_is_swept_and_what_others_stage_stays(
    database: Database, log: SinkLog
) -> None:
    sink = sink_of(database)
    log.acquire(sink)
    log.stage(sink, pa.table({"n": [1]}))
    log.token = SECOND
    kept = log.stage(sink, pa.table({"n": [2]}))
    sink.sweep(TASK, FIRST)
    log.count(kept)
    log.publish(sink)
    discarded, _ = log.stage(sink, pa.table({"n": [3]}))
    sink.discard(discarded)
    sink.close()
    assert numbers(database) == [2]
    assert tables_of(database) == {"t", "fairlead_published"}


def test_a_log_that_is_older_than_its_sink_writes_nothing(database: Database, log: SinkLog) -> None:
    sink = sink_of(database)
    log.acquire(sink)
    log.write(sink, pa.table({"n": [1]}))
    for last in (None, CommitId(*TASK, FIRST, -1)):
        with pytest.raises(SinkBroken, match="is newer than this log: orders-0 was"):
            sink.acquire(Tenure(TASK, FIRST, last, last))
    sink.close()


def test_a_sink_that_is_older_than_its_log_is_told_with_the_remedy(
    database: Database, log: SinkLog
) -> None:
    sink = sink_of(database)
    log.acquire(sink)
    log.write(sink, pa.table({"n": [1]}))
    known = CommitId(*TASK, FIRST, 5)
    with pytest.raises(SinkBroken, match=r"is older than this log: batch 5 of token 1\.0") as told:
        sink.acquire(Tenure(TASK, SECOND, known, known))
    remedy = str(told.value).rpartition("to go on without, ")[2]
    with database.server.connected(database.name) as connection:
        assert connection.execute(remedy.encode()).rowcount == 1
    sink.acquire(Tenure(TASK, SECOND, known, known))
    sink.close()


@pytest.mark.usefixtures("server")  # which says why there is none
def test_what_counts_outlives_a_crash_of_the_server() -> None:
    with started(fsync="on", full_page_writes="on") as server:
        database, log = Database(server, "postgres"), SinkLog()
        database.run("CREATE TABLE t (n bigint)")
        sink = sink_of(database)
        log.acquire(sink)
        log.write(sink, pa.table({"n": [1]}))
        log.count(log.stage(sink, pa.table({"n": [2]})))
        server.kill()
        with pytest.raises(SinkAway):
            log.publish(sink)
        server.start()
        log.publish(sink)  # the same sink goes on, and any other would
        sink.close()
        assert numbers(database) == [1, 2]
        assert tables_of(database) == {"t", "fairlead_published"}


def test_a_batch_that_the_table_refuses_in_the_end_waits_and_is_told(
    database: Database, log: SinkLog
) -> None:
    database.run("ALTER TABLE t ADD UNIQUE (n)")
    database.run("INSERT INTO t VALUES (2)")
    sink = sink_of(database)
    log.acquire(sink)
    with pytest.raises(SinkBroken, match=r"duplicate key.*Key \(n\)=\(2\) already exists"):
        log.write(sink, pa.table({"n": [1, 2]}))
    assert numbers(database) == [2]
    database.run("DELETE FROM t")
    log.publish(sink)
    sink.close()
    assert numbers(database) == [1, 2]
