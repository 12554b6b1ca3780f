# pyright: basic
"""A batch that counts is in the table once, wherever its owner died and whoever goes on."""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from fairlead.events.commits import CommitId
from fairlead.events.model import Token
from fairlead.runtime.pipeline.spi.errors import SinkAway, SinkBroken
from fairlead.runtime.pipeline.spi.sink import Sink, TaskOwnership
from fairlead.runtime.pipeline.stores.postgres.sink import publishing
from fairlead_tests.connectors.pipes import TASK
from fairlead_tests.connectors.publish_once import (
    FIRST,
    POINTS,
    SECOND,
    Owner,
    SinkLog,
    numbers,
    succeed,
)
from fairlead_tests.postgres_pipes import sink_of, tables_of
from fairlead_tests.postgres_server import PATIENCE_S, Database, started, wait_until


def halve(sink: Any, pause: Callable[[], None]) -> None:
    """Have a sink pause inside its transaction, with the marker moved, or before it ends."""
    connection = sink._connection
    execute = connection.execute

    def pausing(statement: Any, *given: Any) -> Any:
        if "COMMIT PREPARED" in str(statement):
            pause()
        done = execute(statement, *given)
        if "INSERT INTO" in str(statement) and "AS m" in str(statement):
            pause()
        return done

    connection.execute = pausing


@pytest.fixture
def log(database: Database) -> SinkLog:
    database.run("CREATE TABLE t (n bigint)")
    return SinkLog()


def values(database: Database) -> list[int]:
    return [n for (n,) in database.run("SELECT n FROM t ORDER BY n")]


def prepared_in(database: Database) -> list[tuple[str]]:
    return database.run("SELECT gid FROM pg_prepared_xacts")


@pytest.mark.parametrize("wakes", [False, True], ids=["lost", "zombie"])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("way", ["table", "prepared"])
def test_a_successor_finishes_what_counts_and_no_more(
    database: Database, log: SinkLog, way: str, point: str, wakes: bool
) -> None:
    owner = Owner(sink_of(database, stage_with=way), log, point, halve)
    # Whoever comes after may stage otherwise.
    other = "prepared" if way == "table" else "table"
    successor = succeed(sink_of(database, stage_with=way if wakes else other), log)
    if wakes:
        owner.wake()
    successor.sweep(TASK, SECOND)
    assert values(database) == [1, 2, 3, 4, 5]
    assert tables_of(database) == {"t", "fairlead_published"}
    assert prepared_in(database) == []
    owner.end()
    successor.close()


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
    commit_id, manifest = log.stage(sink, numbers(9))
    for _ in range(2):
        sink.publish(manifest, commit_id, 7)
    sink.close()
    assert values(database) == ([9] if is_marked else [9, 9])


def test_a_batch_whose_staging_is_gone_is_told(database: Database, log: SinkLog) -> None:
    sink = sink_of(database)
    log.acquire(sink)
    staged = log.stage(sink, numbers(9))
    sink.discard(staged[0])
    log.count(staged)
    with pytest.raises(SinkBroken, match=r"where rows for public\.t were staged, is not in test"):
        log.publish(sink)
    sink.close()


def test_a_batch_that_waits_for_the_database_of_an_earlier_config_waits_there(
    database: Database, log: SinkLog
) -> None:
    former = sink_of(database)
    log.acquire(former)
    log.count(log.stage(former, numbers(9)))
    former.close()
    other = database.server.empty("other")
    moved = sink_of(other)
    with pytest.raises(SinkBroken, match=r"is not in other.*go back to the one before"):
        log.acquire(moved, SECOND)
    moved.close()
    former = sink_of(database)
    log.acquire(former, Token(3, 0))
    assert values(database) == [9]
    former.close()


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
    staged = log.stage(sinks[0], numbers(*range(1000)))
    started = threading.Barrier(4)

    def publish(sink: Sink[Any]) -> None:
        started.wait(PATIENCE_S)
        sink.publish(staged[1], staged[0], 0)

    threads = [threading.Thread(target=publish, args=(sink,)) for sink in sinks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert values(database) == list(range(1000))
    for sink in sinks:
        sink.close()


def test_one_task_at_a_time_makes_the_marker(database: Database, log: SinkLog) -> None:
    sink = sink_of(database)
    with database.session() as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('fairlead_published', 0))")
        acquiring = threading.Thread(target=log.acquire, args=(sink,))
        acquiring.start()
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_until(lambda: database.run(waits) == [(1,)] or not acquiring.is_alive())
        assert tables_of(database) == {"t"}
        other.commit()
    acquiring.join(PATIENCE_S)
    sink.close()
    assert tables_of(database) == {"t", "fairlead_published"}


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
    log.stage(sink, numbers(1))
    log.token = SECOND
    kept = log.stage(sink, numbers(2))
    sink.sweep(TASK, FIRST)
    log.count(kept)
    log.publish(sink)
    discarded, _ = log.stage(sink, numbers(3))
    sink.discard(discarded)
    sink.close()
    assert values(database) == [2]
    assert tables_of(database) == {"t", "fairlead_published"}


def test_a_log_that_is_older_than_its_sink_writes_nothing(database: Database, log: SinkLog) -> None:
    sink = sink_of(database)
    log.acquire(sink)
    log.write(sink, numbers(1))
    for last in (None, CommitId(*TASK, FIRST, -1)):
        with pytest.raises(SinkBroken, match="is newer than this log: it has orders-0 up"):
            sink.acquire(TaskOwnership(TASK, FIRST, last, last))
    sink.close()


def test_a_sink_that_is_older_than_its_log_is_told_with_the_remedy(
    database: Database, log: SinkLog
) -> None:
    sink = sink_of(database)
    log.acquire(sink)
    log.write(sink, numbers(1))
    known = CommitId(*TASK, FIRST, 5)
    with pytest.raises(SinkBroken, match=r"is older than this log: batch 5 of token 1-0") as told:
        sink.acquire(TaskOwnership(TASK, SECOND, known, known))
    remedy = str(told.value).rpartition("to continue without it, ")[2]
    with database.server.connected(database.name) as connection:
        assert connection.execute(remedy.encode()).rowcount == 1
    sink.acquire(TaskOwnership(TASK, SECOND, known, known))
    sink.close()


@pytest.mark.usefixtures("server")  # which says why there is none
def test_what_counts_outlives_a_crash_of_the_server() -> None:
    with started(fsync="on", full_page_writes="on") as server:
        database, log = Database(server, "postgres"), SinkLog()
        database.run("CREATE TABLE t (n bigint)")
        sink = sink_of(database)
        log.acquire(sink)
        log.write(sink, numbers(1))
        log.count(log.stage(sink, numbers(2)))
        server.kill()
        with pytest.raises(SinkAway):
            log.publish(sink)
        server.start()
        log.publish(sink)  # the same sink goes on, and any other would
        sink.close()
        assert values(database) == [1, 2]
        assert tables_of(database) == {"t", "fairlead_published"}


def test_a_batch_that_the_table_refuses_in_the_end_waits_and_is_told(
    database: Database, log: SinkLog
) -> None:
    database.run("ALTER TABLE t ADD UNIQUE (n)")
    sink = sink_of(database)
    log.acquire(sink)
    log.count(log.stage(sink, numbers(1, 2)))
    database.run("INSERT INTO t VALUES (2)")
    with pytest.raises(SinkBroken, match=r"duplicate key.*Key \(n\)=\(2\) already exists"):
        log.publish(sink)
    assert values(database) == [2]
    database.run("DELETE FROM t")
    log.publish(sink)
    sink.close()
    assert values(database) == [1, 2]
