"""How fast rows go from one table of PostgreSQL to another, and how soon a new one is there.

`python tests/benchmarks/bench_postgres.py` prints JSON lines, one per measure: a table of a million
rows, copied by one task, beside COPY out of the one table and into the other by psycopg, and beside
plain Spark JDBC, whose driver comes from Maven Central; the time
from a row's commit to the moment at which it is seen in the other table, by a cursor and by the
server's log; and what one large transaction's way through the log takes. Rows pass through the
task's loop with a log in memory; no Spark runs, since there is no transform.
"""

import time
from collections.abc import Generator
from contextlib import contextmanager

from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.benchmarks.figures import median, tell
from fairlead_tests.benchmarks.spark_jdbc import NoDriver, copy_seconds
from fairlead_tests.postgres_pipes import sink_config, source_config
from fairlead_tests.postgres_server import Database, started, wait_until
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import LocalEngine, Reports

ROWS = 1_000_000
TRICKLE = 60
LOGGED = 50_000


def main() -> None:
    """Measure with a server that flushes what it commits."""
    with started(fsync="on", max_wal_size="4GB") as server:
        database = server.empty("bench")
        bulk(database)
        trickle(database, mode="incrementing", measure="postgres_commit_to_visible_p50")
        trickle(database, mode="log", measure="postgres_log_commit_to_visible_p50")
        backlog(database)


def bulk(database: Database) -> None:
    """Copy a table of a million rows of five columns."""
    database.run(
        "CREATE TABLE src AS SELECT i::bigint AS id, 'name ' || i AS name,"
        " i / 7.0::float8 AS share, now() + i * interval '1 s' AS at, i % 2 = 0 AS even"
        " FROM generate_series(1, 1000000) i"
    )
    for name in ("ours", "theirs"):
        with database.server.connected(database.name) as session:
            session.execute(f"CREATE TABLE {name} (LIKE src)".encode())
    database.run("VACUUM ANALYZE src")
    began = time.perf_counter()
    with database.session() as reader, database.session() as writer:
        with (
            reader.cursor().copy("COPY src TO STDOUT (FORMAT binary)") as out,
            writer.cursor().copy("COPY theirs FROM STDIN (FORMAT binary)") as into,
        ):
            for block in out:
                into.write(block)
        writer.commit()
    peer = ROWS / (time.perf_counter() - began)
    began = time.perf_counter()
    with running(database, mode="xmin", table="src", to="ours") as reports:
        wait_until(lambda: sum(each.manifest.rows for each in reports.commits) >= ROWS)
        taken = time.perf_counter() - began
    assert database.run("SELECT count(*), count(DISTINCT id) FROM ours") == [(ROWS, ROWS)]
    tell(
        "postgres_to_postgres",
        ROWS / taken,
        "rows/s",
        peer="COPY to COPY, one transaction",
        peer_value=peer,
        conditions=f"{ROWS} rows of 5 columns, 1 task, {len(reports.commits)} batches, fsync on",
    )
    beside_spark(database, ROWS / taken)


def beside_spark(database: Database, rate: float) -> None:
    """Copy the same table by plain Spark JDBC, which promises nothing when it dies."""
    peer = "Spark JDBC, local[2], 2 partitions, reWriteBatchedInserts"
    try:
        peer_rate = ROWS / copy_seconds(database, "src", "by_spark", ROWS)
    except NoDriver as reason:
        tell("postgres_to_postgres_spark_jdbc", rate, "rows/s", conditions=f"no peer: {reason}")
        return
    assert database.run("SELECT count(*) FROM by_spark") == [(ROWS,)]
    conditions = f"{ROWS} rows of 5 columns, 1 task"
    tell(
        "postgres_to_postgres_spark_jdbc",
        rate,
        "rows/s",
        peer=peer,
        peer_value=peer_rate,
        conditions=conditions,
    )


def trickle(database: Database, *, mode: str, measure: str) -> None:
    """Add rows one by one, each some time after the one before was seen."""
    database.run("DROP TABLE IF EXISTS news, seen, fairlead_published")
    database.run("CREATE TABLE news (id bigserial PRIMARY KEY, v text)")
    database.run("CREATE TABLE seen (id bigint PRIMARY KEY, v text)")
    taken: list[float] = []
    with (
        running(database, mode=mode, table="news", to="seen"),
        database.server.connected(database.name) as session,
    ):
        for number in range(1, TRICKLE + 1):
            time.sleep(0.05 + 0.002 * (number % 10))
            session.execute("INSERT INTO news (v) VALUES ('x')")
            began = time.perf_counter()
            seen = "SELECT 1 FROM seen WHERE id = %s"
            while not session.execute(seen, (number,)).fetchone():
                time.sleep(0.001)
            taken.append(1000 * (time.perf_counter() - began))
    conditions = f"{TRICKLE} rows, poll.interval.ms=20, linger.ms=0, fsync on"
    tell(measure, median(taken), "ms", conditions=f"mode {mode}, {conditions}")


def backlog(database: Database) -> None:
    """Read what one transaction wrote, out of the log, into a table with a key."""
    database.run("DROP TABLE IF EXISTS fairlead_published")  # of a log that is gone
    database.run("CREATE TABLE done (LIKE src)")
    database.run("ALTER TABLE done ADD PRIMARY KEY (id)")
    database.run("CREATE TABLE copied (LIKE done INCLUDING ALL)")
    with running(database, mode="log", table="done", to="copied") as reports:
        wait_until(lambda: len(reports.commits) > 0)  # the snapshot of nothing
        database.run("INSERT INTO done SELECT * FROM src LIMIT 50000")
        began = time.perf_counter()
        wait_until(lambda: sum(each.manifest.rows for each in reports.commits) >= LOGGED)
        taken = time.perf_counter() - began
    assert database.run("SELECT count(*) FROM copied") == [(LOGGED,)]
    conditions = f"{LOGGED} rows of 5 columns of one transaction, upsert, 1 task, fsync on"
    tell("postgres_log_to_postgres", LOGGED / taken, "rows/s", conditions=conditions)


@contextmanager
def running(database: Database, *, mode: str, table: str, to: str) -> Generator[Reports]:
    """Run a connector from a table to another with one task; yield what is reported."""
    given = {"mode": mode, "table_include_list": rf"public\.{table}"}
    if mode == "incrementing":
        given["incrementing_column_name"] = "id"
    source = source_config(database, given)
    upsert = {"insert_mode": "upsert", "pk_mode": "record_value", "delete_enabled": "true"}
    sink = sink_config(database, table_name_format=to, **(upsert if mode == "log" else {}))
    config = {
        **{key: each for key, each in source.items() if not key.startswith("sink.")},
        **{key: each for key, each in sink.items() if key.startswith("sink.")},
        "poll.interval.ms": "20",
        "linger.ms": "0",
    }
    reports = Reports()
    runner = Runner(LocalEngine(), MemoryLedger(), find_plugins(), reports)
    runner.start(Launch(Resource("orders"), Token(1, 0), config, config))
    made = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
    assert isinstance(made, TaskConfigsChanged)
    runner.start(Launch(Resource("orders", 0), Token(1, 0), config, made.configs[0]))
    try:
        yield reports
    finally:
        assert runner.close(60) == frozenset()


if __name__ == "__main__":
    main()
