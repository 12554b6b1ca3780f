# pyright: basic
"""Batches that wait as prepared transactions, and batches that are put in place as they come."""

import threading
from typing import Any, LiteralString

import pyarrow as pa
import pytest

from fairlead.events.commits import CommitId
from fairlead.events.model import Token
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.connector import Delivery
from fairlead.runtime.pipeline.spi.context import ExternalAccess
from fairlead.runtime.pipeline.spi.errors import RowsRefused, SinkAway, SinkBroken
from fairlead.runtime.pipeline.spi.sink import Sink
from fairlead.runtime.pipeline.stores.postgres.sink.sink_type import PostgresSinkType
from fairlead_tests.connectors import pipes
from fairlead_tests.connectors.pipes import TASK
from fairlead_tests.connectors.publish_once import FIRST, SECOND, SinkLog, numbers
from fairlead_tests.postgres_pipes import sink_config, sink_of, tables_of
from fairlead_tests.postgres_server import PASSWORD, PATIENCE_S, Database, started


@pytest.fixture
def log() -> SinkLog:
    return SinkLog()


def prepared(database: Database, **given: str) -> Sink[Any]:
    return sink_of(database, stage_with="prepared", **given)


def waiting(database: Database) -> Any:
    ((count,),) = database.run("SELECT count(*) FROM pg_prepared_xacts")
    return count


def test_a_batch_is_in_its_table_and_seen_by_nobody_before_it_is_published(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE TABLE t (made timestamptz NOT NULL DEFAULT now(), v text, id bigint)")
    sink = prepared(database)
    log.acquire(sink)
    log.count(log.stage(sink, pa.table({"id": [1, 2], "v": ["a", None]})))
    assert (database.run("SELECT * FROM t"), waiting(database)) == ([], 1)
    log.publish(sink)
    sink.close()
    assert database.run("SELECT id, v FROM t ORDER BY id") == [(1, "a"), (2, None)]
    assert (tables_of(database), waiting(database)) == ({"t", "fairlead_published"}, 0)


@pytest.mark.parametrize("is_numeric", [False, True], ids=["copied", "cast"])
def test_what_waits_outlives_a_crash_of_the_server(is_numeric: bool) -> None:
    with started(fsync="on", full_page_writes="on") as server:
        database, log = Database(server, "postgres"), SinkLog()
        database.run("CREATE TABLE t (n bigint)")
        if is_numeric:  # which ADBC cannot write as such
            database.run("ALTER TABLE t ALTER n TYPE numeric")
        sink = prepared(database)
        log.acquire(sink)
        log.write(sink, numbers(1))
        log.count(log.stage(sink, numbers(2)))
        server.kill()
        with pytest.raises(SinkAway):
            log.publish(sink)
        server.start()
        log.publish(sink)
        sink.close()
        assert database.run("SELECT n FROM t ORDER BY n") == [(1,), (2,)]
        assert tables_of(database) == {"t", "fairlead_published"}


def test_upserts_and_deletes_wait_likewise(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (id bigint PRIMARY KEY, v text)")
    database.run("INSERT INTO t VALUES (1, 'old'), (2, 'old')")
    sink = prepared(
        database,
        insert_mode="upsert",
        pk_mode="record_value",
        pk_fields="id",
        delete_enabled="true",
    )
    log.acquire(sink)
    rows = {"id": [1, 3, 3, 2], "v": ["new", "a", "b", None], "__op": ["u", "c", "u", "d"]}
    log.count(log.stage(sink, pa.table(rows)))
    assert database.run("SELECT * FROM t ORDER BY id") == [(1, "old"), (2, "old")]
    log.publish(sink)
    sink.close()
    assert database.run("SELECT * FROM t ORDER BY id") == [(1, "new"), (3, "b")]


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE t (n bigint UNIQUE)",
        "CREATE TABLE t (n bigint UNIQUE DEFERRABLE INITIALLY DEFERRED)",
        "CREATE TABLE t (n bigint CHECK (n <> 7))",
        "CREATE TABLE k (n bigint PRIMARY KEY); INSERT INTO k VALUES (1), (2);"
        "CREATE TABLE t (n bigint REFERENCES k DEFERRABLE INITIALLY DEFERRED)",
    ],
    ids=["unique", "deferred", "check", "foreign"],
)
def test_a_row_that_a_table_refuses_is_told_before_it_counts(
    database: Database, log: SinkLog, made: LiteralString
) -> None:
    database.run(made)
    sink = prepared(database)
    log.acquire(sink)
    log.write(sink, numbers(1))
    with pytest.raises(RowsRefused, match="refused"):
        log.stage(sink, numbers(2, 7) if "7" in made or "k" in made else numbers(2, 1))
    assert waiting(database) == 0
    log.write(sink, numbers(2))
    sink.close()
    assert database.run("SELECT n FROM t ORDER BY n") == [(1,), (2,)]


@pytest.mark.parametrize("kind", ["bigint", "numeric"], ids=["copied", "cast"])
def test_a_row_may_come_before_that_of_another_table_which_it_refers_to(
    database: Database, log: SinkLog, kind: str
) -> None:
    database.run(
        "CREATE TABLE parents (n bigint PRIMARY KEY);"
        "CREATE TABLE children (n bigint REFERENCES parents DEFERRABLE INITIALLY DEFERRED)"
    )
    if kind == "numeric":  # such rows pass through a table of their own
        database.run("ALTER TABLE children ADD v numeric")
    rows = {"_topic": ["children", "parents"], "n": [1, 1]}
    sink = prepared(database, table_name_format="${topic}")
    log.acquire(sink)
    if kind == "numeric":
        database.run("ALTER TABLE parents ADD v numeric")
        rows["v"] = [2, 3]
    log.write(sink, pa.table(rows))
    sink.close()
    assert database.run("SELECT n FROM children") == [(1,)]


def test_rows_reach_what_copy_does_not_write_to(database: Database, log: SinkLog) -> None:
    database.run(
        "CREATE TABLE kept (n bigint);"
        "CREATE TABLE t (n bigint);"
        "CREATE RULE moved AS ON INSERT TO t DO INSTEAD INSERT INTO kept VALUES (new.n + 10)"
    )
    sink = prepared(database)
    log.acquire(sink)
    log.write(sink, numbers(1))
    sink.close()
    assert database.run("SELECT n FROM kept") == [(11,)]


def test_what_a_former_owner_prepares_late_keeps_nobody_waiting(
    database: Database, log: SinkLog
) -> None:
    database.run("CREATE TABLE t (n bigint)")
    zombie, successor = prepared(database), prepared(database)
    log.acquire(zombie, FIRST)
    log.acquire(successor, SECOND)
    late = CommitId(*TASK, FIRST, 5)
    with pytest.raises(SinkAway):  # its sessions were ended
        zombie.stage(numbers(9), late, 8)
    zombie.stage(numbers(9), late, 8)  # it dials again: it holds the marker of both now
    assert waiting(database) == 1
    log.write(successor, numbers(1))
    for each in (zombie, successor):
        each.close()
    assert (database.run("SELECT n FROM t"), waiting(database)) == ([(1,)], 0)


def test_a_second_attempt_at_a_batch_replaces_the_first(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (n bigint)")
    sink = prepared(database)
    log.acquire(sink)
    commit_id, _ = log.stage(sink, numbers(8))
    log.count((commit_id, sink.stage(numbers(9), commit_id, 8)))
    assert waiting(database) == 1
    log.publish(sink)
    sink.close()
    assert database.run("SELECT n FROM t") == [(9,)]


def test_a_batch_that_somebody_rolled_back_is_told(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (n bigint)")
    sink = prepared(database)
    log.acquire(sink)
    staged = log.stage(sink, numbers(9))
    sink.discard(staged[0])
    log.count(staged)
    with pytest.raises(SinkBroken, match=r"its prepared transaction fairlead_.* is not in test"):
        log.publish(sink)
    sink.close()


def test_a_batch_behind_its_marker_is_not_prepared(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (n bigint)")
    sink = prepared(database)
    log.acquire(sink)
    log.write(sink, numbers(1))
    with pytest.raises(SinkBroken, match="another writes as this task"):
        sink.stage(numbers(2), CommitId(*TASK, FIRST, 0), 8)
    sink.close()
    assert (database.run("SELECT n FROM t"), waiting(database)) == ([(1,)], 0)


def test_many_may_publish_a_batch_at_once(database: Database, log: SinkLog) -> None:
    database.run("CREATE TABLE t (n bigint)")
    sinks = [prepared(database) for _ in range(4)]
    log.acquire(sinks[0])
    commit_id, manifest = log.stage(sinks[0], numbers(*range(1000)))
    begun, refused = threading.Barrier(4), list[Exception]()

    def publish(sink: Sink[Any]) -> None:
        begun.wait(PATIENCE_S)
        try:
            sink.publish(manifest, commit_id, 0)
        except SinkAway as busy:  # another is at it; the task tries again
            refused.append(busy)
            sink.publish(manifest, commit_id, 0)

    threads = [threading.Thread(target=publish, args=(sink,)) for sink in sinks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    for sink in sinks:
        sink.close()
    assert len(database.run("SELECT n FROM t")) == 1000
    assert all("publishes" in str(each) for each in refused)


def test_a_server_that_prepares_nothing_is_told_at_validation() -> None:
    with started(max_prepared_transactions="0") as server:
        database = Database(server, "postgres")
        config = sink_config(database, stage_with="prepared")
        look = PostgresSinkType.probe(config, ExternalAccess())
        assert "max_prepared_transactions of the server is 0" in look.errors["sink.stage.with"]
    assert PASSWORD not in str(look)


def test_fewer_than_tasks_may_be_prepared_is_told(database: Database) -> None:
    config = {**sink_config(database, stage_with="prepared"), "tasks.max": "21"}
    look = PostgresSinkType.probe(config, ExternalAccess())
    assert (look.errors, len(look.warnings)) == ({}, 1)
    assert "is 20, and there may be 21 tasks" in look.warnings[0]


AT_LEAST = {"delivery.guarantee": "at-least-once"}


@pytest.fixture
def hasty(database: Database) -> Any:
    return pipes.sink_of({**sink_config(database), **AT_LEAST})


def test_a_sink_that_is_at_least_once_writes_at_once(
    database: Database, log: SinkLog, hasty: Sink[Any]
) -> None:
    database.run("CREATE TABLE t (n bigint)")
    log.acquire(hasty)
    assert hasty.writes_at_once
    manifest = hasty.write(numbers(1, 2), CommitId(*TASK, FIRST, 0), 16)
    assert (manifest.rows, manifest.files, manifest.is_empty) == (2, 0, True)
    assert database.run("SELECT n FROM t ORDER BY n") == [(1,), (2,)]
    with pytest.raises(RowsRefused, match="invalid input syntax for type bigint"):
        hasty.write(pa.table({"n": [[1]]}), CommitId(*TASK, FIRST, 1), 16)
    hasty.close()
    assert database.run("SELECT n FROM t ORDER BY n") == [(1,), (2,)]
    assert tables_of(database) == {"t", "fairlead_published"}


def test_it_publishes_what_waits_since_it_was_exactly_once(
    database: Database, log: SinkLog, hasty: Sink[Any]
) -> None:
    database.run("CREATE TABLE t (n bigint)")
    before = sink_of(database)
    log.acquire(before)
    log.count(log.stage(before, numbers(9)))
    before.close()
    log.acquire(hasty, Token(3, 0))
    hasty.close()
    assert database.run("SELECT n FROM t") == [(9,)]


def test_what_it_promises_is_told_with_its_reason(database: Database) -> None:
    config = {**sink_config(database), **AT_LEAST}
    assert SparkPipeline.validate(config).errors == {}
    promise = SparkPipeline.delivery_of(config)
    assert promise.delivery is Delivery.AT_LEAST_ONCE
    assert "delivery.guarantee=at-least-once" in promise.why[0]
    files = {key: value for key, value in config.items() if not key.startswith("sink.")}
    saved_nothing = SparkPipeline.delivery_of({**files, "sink.path": "/tmp/x"})
    assert saved_nothing.delivery is Delivery.EXACTLY_ONCE
