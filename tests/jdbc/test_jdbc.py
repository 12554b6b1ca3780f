# pyright: basic
"""Databases by a JDBC driver: Derby, which is in Spark, and PostgreSQL, whose jar is fetched."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from fairlead.events.commits import Document, identity
from fairlead.events.model import ErrorClass, Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors import pipeline_keys
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.connectors.sample import read_sample
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import Engine
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.connector import Delivery
from fairlead.runtime.pipeline.spi.context import AccessLimits, Context, ExternalAccess, SparkJob
from fairlead.runtime.pipeline.spi.errors import BadInput, OffsetRefused
from fairlead.runtime.pipeline.spi.source import Limit
from fairlead.runtime.pipeline.stores.jdbc.connecting import why_away
from fairlead.runtime.pipeline.stores.jdbc.source import JdbcSource, TableRange
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.java_peer import NoPeer, kafka_jars
from fairlead_tests.postgres_server import PASSWORD, NoServer, PostgresServer, started, wait_until
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

Rows = list[tuple[Any, ...]]


class Derby:
    """A database in the memory of the engine's JVM."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.url = f"jdbc:derby:memory:{name}"
        self._engine = engine
        self._begun = False

    def run(self, *statements: str) -> Rows:
        """Run statements, and return the rows of the last one, if it has any."""

        def ask(spark: Any) -> Rows:
            spark._jvm.java.lang.System.setProperty("derby.stream.error.file", "/dev/null")
            url = self.url if self._begun else f"{self.url};create=true"
            connection = spark._jvm.java.sql.DriverManager.getConnection(url)
            try:
                made = connection.createStatement()
                for each in statements:
                    has_rows = made.execute(each)
                return _rows(made.getResultSet()) if has_rows else []
            finally:
                connection.close()

        found = self._engine.run("derby", ask)
        self._begun = True
        return found


def _rows(result: Any) -> Rows:
    found, width = [], result.getMetaData().getColumnCount()
    while result.next():
        found.append(tuple(result.getObject(at + 1) for at in range(width)))
    return found


@pytest.fixture
def derby(engine: Embedded) -> Derby:
    return Derby(engine, f"shop{uuid4().hex}")


def config_of(database: Derby, **given: str) -> dict[str, str]:
    return {
        "name": "orders",
        "connector.class": "SparkPipeline",
        "source.type": "jdbc",
        "source.connection.url": database.url,
        "source.mode": "incrementing",
        "source.incrementing.column.name": "id",
        "source.table.whitelist": "orders",
        "source.table.poll.interval.ms": "100",
        "sink.type": "jdbc",
        "sink.connection.url": database.url,
        "sink.table.name.format": "copied",
        "poll.interval.ms": "20",
        **{key.replace("_", "."): value for key, value in given.items()},
    }


Begin = Callable[..., tuple[Runner, Reports]]


@pytest.fixture
def begin(engine: Embedded) -> Iterator[Begin]:
    """Return what runs a connector and its first task, by a ledger that is kept."""
    made: list[Runner] = []

    def begin(
        config: Mapping[str, str], ledger: MemoryLedger, turn: int = 1, on: Engine = engine
    ) -> tuple[Runner, Reports]:
        reports, token = Reports(), Token(turn, 0)
        reach = AccessLimits(jdbc=("jdbc:derby:memory:", "jdbc:postgresql://127.0.0.1:"))
        runner = Runner(on, ledger, find_plugins(), reports, reach=reach)
        made.append(runner)
        runner.start(Launch(Resource("orders"), token, config, config))
        split = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
        assert isinstance(split, TaskConfigsChanged)
        runner.start(Launch(Resource("orders", 0), token, config, split.configs[0]))
        return runner, reports

    yield begin
    for each in made:
        each.close(60)


def values(count: int, begin: int = 1) -> str:
    rows = ",".join(f"({number},'item {number}')" for number in range(begin, begin + count))
    return f"INSERT INTO orders VALUES {rows}"


@pytest.mark.spark
def test_rows_are_copied_in_bounded_batches_and_followed_by_who_comes_after(
    derby: Derby, begin: Begin
) -> None:
    made = "(id int PRIMARY KEY, item varchar(20))"
    derby.run(f"CREATE TABLE orders {made}", f"CREATE TABLE copied {made}", values(300, begin=1000))
    ledger = MemoryLedger()

    def is_copied(last: int) -> bool:
        offsets = ledger.offsets("orders")
        if offsets.get(identity({"table": "orders"})) != {"incrementing": last}:
            return False  # which costs less than to ask the database
        there = derby.run("SELECT id, item FROM orders ORDER BY id")
        return derby.run("SELECT id, item FROM copied ORDER BY id") == there

    last = 1299
    for turn in (1, 2):
        runner, _ = begin(config_of(derby, batch_max_rows="100"), ledger, turn)
        wait_until(partial(is_copied, last))
        derby.run(values(50, begin=turn * 1_000_000))  # far behind what is there
        last = turn * 1_000_000 + 49
        wait_until(partial(is_copied, last))
        assert runner.close(60) == frozenset()
    assert [each.batch for each in ledger.accepted] == [0, 1, 2, 3, 0]
    assert ledger.offsets("orders")[identity({"table": "orders"})] == {"incrementing": 2_000_049}


@pytest.mark.spark
def test_a_range_is_wide_where_numbers_are_sparse_and_narrow_before_dense_ones(
    derby: Derby, engine: Embedded
) -> None:
    derby.run("CREATE TABLE orders (id bigint PRIMARY KEY)")
    sparse = [number * 1_000_000_000 for number in range(1, 19)]
    dense = range(sparse[-1] + 1, sparse[-1] + 41)
    derby.run("INSERT INTO orders VALUES " + ",".join(f"({each})" for each in (*sparse, *dense)))
    on_spark = partial(engine.run, "test")
    source = JdbcSource({"url": derby.url}, {"orders": "orders"}, "id", "", 60, on_spark)
    offsets: dict[str, Document] = {}
    found = []
    while (plan := source.plan(offsets, Limit(20, 1 << 20, 1))).ranges:
        (advance,), (part,) = plan.advances, plan.ranges
        offsets[identity(advance.partition)] = advance.end or {}
        query = f"SELECT COUNT(*) FROM orders WHERE id > {part.above} AND id <= {part.last}"
        assert derby.run(query) == [(part.rows,)]
        found.append(part.rows)
    assert found == [6, 6, 2, 2, 1, 20, 20, 1]


@pytest.mark.spark
def test_rows_are_not_counted_where_numbers_go_on_without_a_gap(
    derby: Derby, engine: Embedded
) -> None:
    derby.run("CREATE TABLE orders (id bigint PRIMARY KEY)")
    numbers = (*range(1, 61), *range(100, 141))
    derby.run("INSERT INTO orders VALUES " + ",".join(f"({each})" for each in numbers))
    asked: list[SparkJob] = []

    def on_spark(job: SparkJob) -> Any:
        asked.append(job)
        return engine.run("test", job)

    source = JdbcSource({"url": derby.url}, {"orders": "orders"}, "id", "", 60, on_spark)
    offsets: dict[str, Document] = {}
    found = []
    while (plan := source.plan(offsets, Limit(20, 1 << 20, 1))).ranges:
        (advance,), (part,) = plan.advances, plan.ranges
        offsets[identity(advance.partition)] = advance.end or {}
        found.append((part.last, len(asked)))
        asked.clear()
    assert found == [(20, 2), (40, 1), (60, 1), (119, 2), (139, 1), (140, 1)]


@pytest.mark.spark
def test_a_query_is_read_once_into_a_table_that_is_made(derby: Derby, begin: Begin) -> None:
    derby.run("CREATE TABLE orders (id int, item varchar(20))", values(5))
    config = config_of(
        derby,
        source_mode="bulk",
        source_query="SELECT item, id * 2 AS twice FROM orders WHERE id > 2",
        sink_auto_create="true",
    )
    for key in ("source.table.whitelist", "source.incrementing.column.name"):
        del config[key]
    runner, reports = begin(config, MemoryLedger())
    reports.wait_batches(1)
    runner.close(60)
    found = derby.run("SELECT CAST(item AS varchar(20)), twice FROM copied ORDER BY twice")
    assert found == [("item 3", 6), ("item 4", 8), ("item 5", 10)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("given", "told", "error"),
    [
        ({}, "there is no table copied", ErrorClass.INPUT),
        ({"source_table_whitelist": "absent_orders"}, "absent_orders", None),
        (
            {"sink_auto_create": "true", "sink_connection_driver": "com.mysql.cj.jdbc.Driver"},
            "no driver",
            None,
        ),
        (
            {
                "sink_auto_create": "true",
                "transforms": "q",
                "transforms_q_type": "sql",
                "transforms_q_query": "SELECT id AS _id FROM input",
            },
            "no column is left for it, as all names begin with _",
            ErrorClass.INPUT,
        ),
    ],
    ids=["no target", "no source", "no driver", "no column"],
)
def test_what_cannot_work_is_told(
    derby: Derby, begin: Begin, given: dict[str, str], told: str, error: ErrorClass | None
) -> None:
    derby.run("CREATE TABLE orders (id int, item varchar(20))", values(1))
    config = config_of(derby, task_restart_budget="0", **given)
    _, reports = begin(config, MemoryLedger())
    status = reports.wait_status(state=RunState.FAILED)
    assert told in status.reason.lower()
    assert error in {None, status.error}


@pytest.mark.spark
def test_a_sample_has_the_first_rows_of_a_table(derby: Derby, engine: Embedded) -> None:
    derby.run("CREATE TABLE orders (id INT, item VARCHAR(20))", values(100))
    limits, run = AccessLimits(jdbc=("jdbc:derby:memory:",)), partial(engine.run, "sample")
    for mode in ("incrementing", "bulk"):
        config = config_of(derby, source_mode=mode)
        sample = read_sample(config, Context(Resource("sample"), print, reach=limits), run)
        assert [(each.name, each.type) for each in sample.before.columns] == [
            ("ID", "int"),
            ("ITEM", "string"),
            ("_topic", "string"),
        ]
        assert sample.before.rows == [[str(n), f"item {n}", "orders"] for n in range(1, 11)]
    with pytest.raises(ConfigInvalid, match=r"jdbc\.allow"):
        read_sample(config, Context(Resource("sample"), print), run)


def test_only_what_the_operator_allows_is_reached() -> None:
    reach = AccessLimits(jdbc=("jdbc:mysql://db:3306/",))
    assert reach.flaw_in_jdbc("jdbc:mysql://db:3306/shop") is None
    for url in ("jdbc:mysql://db:3306/shop?allowLoadLocalInfile=true", "jdbc:mysql://db:3306/a;b"):
        assert "more behind" in str(reach.flaw_in_jdbc(url))
    assert "is jdbc:mysql" in str(reach.flaw_in_jdbc("jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'x'"))
    assert "is empty" in str(AccessLimits().flaw_in_jdbc("jdbc:mysql://db:3306/shop"))


def test_flaws_are_found_before_a_connector_is_made() -> None:
    database = Derby.__new__(Derby)
    database.url = "jdbc:derby:memory:x"
    sound = config_of(database)
    assert SparkPipeline.validate(sound).errors == {}
    found = SparkPipeline.probe(sound, ExternalAccess())
    assert set(found.errors) == {"source.connection.url", "sink.connection.url"}
    for more, key in (
        ({"source.query": "SELECT 1"}, "source.table.whitelist"),
        ({"source.mode": "bulk"}, "source.incrementing.column.name"),
        ({"sink.table.name.format": "${topic}"}, "sink.table.name.format"),
        ({"sink.connection.url": "jdbc:x://h/d?password=p"}, "sink.connection.url"),
        ({"source.connection.url": "postgresql://h/d"}, "source.connection.url"),
        ({"source.connection.driver": "javax.swing.JFrame"}, "source.connection.driver"),
        ({"sink.connection.driver": "org.h2.Driver2"}, "sink.connection.driver"),
    ):
        assert list(SparkPipeline.validate({**sound, **more}).errors) == [key]
    promise = SparkPipeline.delivery_of(sound)
    assert (promise.delivery, len(promise.why)) == (Delivery.BEST_EFFORT, 2)
    SparkPipeline.check_offset(sound, {"table": "orders"}, {"incrementing": 7})
    with pytest.raises(OffsetRefused, match="incrementing"):
        SparkPipeline.check_offset(sound, {"table": "orders"}, {"done": True})
    SparkPipeline.check_offset(sound, {"table": "former"}, None)
    with pytest.raises(OffsetRefused, match=r"partition\.table: this connector reads orders"):
        SparkPipeline.check_offset(sound, {"table": "order"}, {"incrementing": 7})


@pytest.mark.parametrize(
    ("tables", "tasks", "shares"),
    [
        ("a,b,c", 2, [["a", "c"], ["b"]]),
        ("a,b,c", 9, [["a"], ["b"], ["c"]]),
        ("a,b,c", 1, [["a", "b", "c"]]),
        ("", 3, [["query"]]),
    ],
)
def test_each_table_has_one_task_and_no_task_is_without_a_table(
    tables: str, tasks: int, shares: list[list[str]]
) -> None:
    database = Derby.__new__(Derby)
    database.url = "jdbc:derby:memory:x"
    given = {"source.table.whitelist": tables} if tables else {"source.query": "SELECT 1"}
    config = {**config_of(database), "source.table.whitelist": "", **given}
    kind = pipeline_keys.SOURCE_TYPES.find("jdbc")
    settings = pipeline_keys.keys_of(config).parse(config)
    made = kind(Context(Resource("shop"), print), config, settings).split(tasks)
    assert [json.loads(share) for each in made for share in each.values()] == shares


@pytest.mark.parametrize(
    "text",
    [
        "Connection to 127.0.0.1:1 refused. Check that the hostname and port are correct",
        "Communications link failure",
        "FATAL: the database system is shutting down",
        "FATAL: sorry, too many clients already",
        "This connection has been closed.",
    ],
)
def test_a_database_that_is_away_is_waited_for(text: str) -> None:
    assert why_away(RuntimeError(text)) == text
    assert why_away(RuntimeError("division by zero")) == ""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    try:
        with started() as server:
            yield server
    except NoServer as reason:
        pytest.skip(f"PostgreSQL cannot be had: {reason}")


@pytest.mark.spark
@pytest.mark.soak
def test_a_real_server_that_goes_and_comes_back_loses_no_row(
    server: PostgresServer, begin: Begin, tmp_path: Path
) -> None:
    try:
        (jar,) = kafka_jars(tmp_path, ["org.postgresql:postgresql:42.7.4"], "")
    except NoPeer as reason:
        pytest.skip(f"its driver cannot be had: {reason}")
    database = server.empty("shop")
    database.run("CREATE TABLE orders (id bigserial PRIMARY KEY, item text)")
    database.run("CREATE TABLE copied (id bigint, item text)")
    database.run("INSERT INTO orders (item) SELECT 'i' || i FROM generate_series(1, 1000) i")
    conf = {"spark.driver.extraClassPath": jar}
    engine = Embedded(tmp_path / "engine", cores=2, conf=conf)
    engine.open()
    try:
        assert engine.wait_warm(120), engine.detail
        config = config_of(Derby(engine, ""), batch_max_rows="300")
        for end in ("source", "sink"):
            config[f"{end}.connection.url"] = f"jdbc:postgresql://127.0.0.1:{server.port}/shop"
            config[f"{end}.connection.user"] = "postgres"
            config[f"{end}.connection.password"] = PASSWORD
        _, reports = begin(config, MemoryLedger(), on=engine)

        def is_copied(count: int) -> bool:
            return database.run("SELECT count(DISTINCT id) FROM copied") == [(count,)]

        wait_until(lambda: is_copied(1000))
        server.stop()
        waits = reports.wait_status("waiting for the source")
        assert waits.state is RunState.RUNNING
        server.start()
        database.run("INSERT INTO orders (item) VALUES ('last')")
        wait_until(lambda: is_copied(1001))
    finally:
        engine.close(20)


@pytest.mark.parametrize("value", ["a", "5", 1.5, float("nan"), b"1"])
def test_a_column_that_holds_no_whole_numbers_is_told(value: Any) -> None:
    source = JdbcSource({}, {"t": "t"}, "id", "", 0.0, lambda _: (value, value))
    with pytest.raises(BadInput, match=r"t: id has .*: it must hold whole numbers"):
        source.plan({}, Limit(10, 1 << 20, 1))


@pytest.mark.parametrize("column", ["_topic", "_TOPIC"])
def test_a_column_whose_values_would_be_lost_is_refused(column: str) -> None:
    frame = SimpleNamespace(columns=["ID", column])
    reader = SimpleNamespace(options=lambda **_: SimpleNamespace(load=lambda: frame))
    spark: Any = SimpleNamespace(read=SimpleNamespace(format=lambda _: reader))
    source = JdbcSource({}, {"t": "t"}, "", "", 0.0, lambda _: None)
    with pytest.raises(BadInput, match=f"t has a column {column}, by which rows tell their topic"):
        source.read(spark, [TableRange("t")])
