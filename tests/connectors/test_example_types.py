# pyright: basic
"""The installable example of a source and a sink type, as it is installed and run."""

import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as papq
import pytest

from fairlead.actors.settings import MISSING
from fairlead.events.commits import CommitId
from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.installed import INSTALLED_SINCE, InstalledClasses
from fairlead.runtime.pipeline.spi.context import Context, ExternalAccess
from fairlead.runtime.pipeline.spi.errors import OffsetRefused, PluginUnknown, SinkAway
from fairlead.runtime.pipeline.spi.offsets import SeekEnd
from fairlead.runtime.pipeline.spi.sink import Sink
from fairlead.runtime.pipeline.spi.source import Limit
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.local_assignors.packages import install_example
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

EXAMPLE = Path(__file__).parents[2] / "deploy" / "sqlite"
Config = Mapping[str, str]
Flow = Callable[[Config, int], Reports]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install the example where this process finds it."""
    site = tmp_path_factory.mktemp("site")
    install_example(site, EXAMPLE)
    sys.path.append(str(site))
    _forget()
    yield
    sys.path.remove(str(site))
    _forget()


def _forget() -> None:
    """Forget what was installed: it is looked up once in a process."""
    for types in (keys.SOURCE_TYPES, keys.SINK_TYPES):
        vars(types).pop("_points", None)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A database with a table of a thousand orders."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, item TEXT, price REAL)"
        )
        database.executemany(
            "INSERT INTO orders (item, price) VALUES (?, ?)",
            [(f"item {n}", n / 4) for n in range(1000)],
        )
    return path


@pytest.fixture
def flow(engine: Embedded, ledger: MemoryLedger) -> Flow:
    """Run a connector with its one task until so many rows are published."""

    def run(config: Config, rows: int) -> Reports:
        reports, token = Reports(), Token(len(ledger.accepted) + 1, 0)
        runner = Runner(engine, ledger, find_plugins(), reports)
        runner.start(Launch(Resource("c"), token, config, config))
        made = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
        assert isinstance(made, TaskConfigsChanged)
        runner.start(Launch(Resource("c", 0), token, config, made.configs[0]))
        try:
            reports.wait(lambda _: sum(each.manifest.rows for each in reports.commits) >= rows)
        finally:
            assert runner.close(60) == frozenset()
        return reports

    return run


def config_of(**given: str) -> dict[str, str]:
    return {"name": "c", "connector.class": "SparkPipeline", "task.restart.budget": "0"} | {
        key.replace("_", "."): value for key, value in given.items()
    }


def rows_of(path: Path, table: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as database:
        try:
            return sorted(database.execute(f"SELECT * FROM {table}").fetchall())
        except sqlite3.OperationalError:
            return []


def tables_of(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as database:
        return {name for (name,) in database.execute("SELECT name FROM sqlite_master")}


@pytest.mark.spark
@pytest.mark.usefixtures("example")
def test_rows_go_from_one_database_to_another_in_batches(
    shop: Path, tmp_path: Path, flow: Flow, ledger: MemoryLedger
) -> None:
    copy = tmp_path / "copy.db"
    config = config_of(
        source_type="sqlite",
        source_database=str(shop),
        source_table="orders",
        sink_type="sqlite",
        sink_database=str(copy),
        sink_table="orders",
        batch_max_rows="300",
    )
    flow(config, 1000)
    assert rows_of(copy, "orders") == rows_of(shop, "orders")
    assert [commit.manifest.rows for commit in ledger.accepted.values()] == [300, 300, 300, 100]
    assert tables_of(copy) == {
        "orders",
        "_fairlead_published",
        "sqlite_autoindex__fairlead_published_1",
    }


@pytest.mark.spark
@pytest.mark.usefixtures("example")
def test_a_type_of_ones_own_goes_with_those_built_in_and_with_transforms(
    shop: Path, tmp_path: Path, flow: Flow
) -> None:
    parquet = tmp_path / "parquet"
    dear = {"transforms": "dear", "transforms.dear.type": "sql"}
    query = {"transforms.dear.query": "SELECT item, price FROM input WHERE price >= 200"}
    there = config_of(
        source_type="sqlite",
        source_database=str(shop),
        source_table="orders",
        sink_format="parquet",
        sink_path=str(parquet),
    )
    flow(there | dear | query, 200)
    written = papq.read_table(next(parquet.glob("*.parquet")))
    assert sorted(written["price"].to_pylist()) == [n / 4 for n in range(800, 1000)]

    back = config_of(
        source_format="parquet",
        source_path=str(parquet),
        source_min_age_ms="0",
        sink_type="sqlite",
        sink_database=str(shop),
        sink_table="dear",
    )
    flow(back, 200)
    assert rows_of(shop, "dear") == [(f"item {n}", n / 4) for n in range(800, 1000)]


@pytest.mark.usefixtures("example")
def test_a_batch_holds_no_more_than_its_limit_in_rows_and_in_bytes(shop: Path) -> None:
    config = config_of(source_type="sqlite", source_database=str(shop), source_table="orders")
    settings = keys.task_keys_of(config).parse(
        config | {"sink.path": "/out", "sink.format": "json"}
    )
    context = Context(Resource("c", 0), print)
    source = keys.SOURCE_TYPES.find("sqlite").source(context, config, settings)
    limits = Limit(10, 1 << 20, 1), Limit(1_000, 100, 1), Limit(2_000, 1 << 20, 1)
    plans = [source.plan({}, limit) for limit in limits]
    assert [(plan.rows, plan.backlog) for plan in plans] == [(10, True), (4, True), (1_000, False)]


@pytest.mark.usefixtures("example")
def test_a_batch_is_published_once_whoever_does_it_and_what_never_counted_is_swept(
    tmp_path: Path,
) -> None:
    path = tmp_path / "sink.db"
    sink, other = sink_of(path), sink_of(path)
    first, second = (CommitId("c", 0, Token(1, 0), batch) for batch in range(2))
    left = CommitId("c", 0, Token(1, 0), 2)
    table = pa.table({"n": [1, 2]})
    sink.prepare(table.schema)
    manifest = sink.stage(table, first, 16)
    sink.publish(manifest, first, 4)
    other.publish(manifest, first, 4)
    sink.publish(sink.stage(pa.table({"n": [3]}), second, 8), second, 7)
    sink.stage(pa.table({"n": [4]}), left, 8)
    other.sweep(Resource("c", 0), Token(2, 0))
    assert rows_of(path, "t") == [(1,), (2,), (3,)]
    assert not [name for name in tables_of(path) if name.startswith("_fairlead|")]


@pytest.mark.usefixtures("example")
def test_the_table_takes_columns_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "sink.db"
    sink = sink_of(path)
    for batch, table in enumerate((pa.table({"n": [1]}), pa.table({"m": [2], "n": [3]}))):
        commit_id = CommitId("c", 0, Token(1, 0), batch)
        sink.prepare(table.schema)
        sink.publish(sink.stage(table, commit_id, 8), commit_id, batch)
    assert rows_of(path, "t") == [(1, None), (3, 2)]


@pytest.mark.usefixtures("example")
def test_a_database_that_is_locked_or_out_of_reach_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(SinkAway, match="unable to open database file"):
        sink_of(tmp_path / "none" / "sink.db").discard(CommitId("c", 0, Token(1, 0), 0))


@pytest.mark.usefixtures("example")
def test_its_offsets_are_checked_and_found_for_both_ends(shop: Path) -> None:
    config = config_of(
        source_type="sqlite", source_database=str(shop), source_table="orders", sink_path="/out"
    )
    partition = {"database": str(shop), "table": "orders"}
    latest = SparkPipeline.seek(config, ExternalAccess(), SeekEnd.LATEST, ())
    assert latest == [(partition, {"rowid": 1000})]
    assert SparkPipeline.seek(config, ExternalAccess(), SeekEnd.EARLIEST, latest) == [
        (partition, None)
    ]
    SparkPipeline.check_offset(config, *latest[0])
    with pytest.raises(OffsetRefused, match="a table keeps no times"):
        SparkPipeline.seek(config, ExternalAccess(), datetime(2026, 1, 1, tzinfo=UTC), latest)
    with pytest.raises(OffsetRefused, match="this connector reads"):
        SparkPipeline.check_offset(config, {**partition, "table": "order"}, {"rowid": 1})
    with pytest.raises(OffsetRefused, match=r"offset\.rowid must be a whole number"):
        SparkPipeline.check_offset(config, partition, {"rowid": "1"})


@pytest.mark.usefixtures("example")
def test_its_keys_are_checked_and_no_others_asked_for() -> None:
    config = config_of(source_type="sqlite", sink_type="sqlite", sink_database="x", sink_table="t")
    assert SparkPipeline.validate(config).errors == {
        "source.database": (MISSING,),
        "source.table": (MISSING,),
    }


def test_a_type_that_is_not_installed_is_refused_with_what_there_is() -> None:
    errors = SparkPipeline.validate(config_of(source_type="file", sink_type="oracle")).errors
    assert errors["source.type"] == ("no source type file is installed here: did you mean files?",)
    (told,) = errors["sink.type"]
    assert told.startswith("no sink type oracle is installed here: there are files")
    assert told.endswith(f"; {INSTALLED_SINCE}")


def sink_of(path: Path) -> Sink[Any]:
    config = config_of(sink_type="sqlite", sink_database=str(path), sink_table="t")
    settings = keys.task_keys_of({"sink.type": "sqlite"}).parse(
        config | {"source.path": "/in", "source.format": "csv"}
    )
    context = Context(Resource("c", 0), print)
    return keys.SINK_TYPES.find("sqlite").sink(context, config, settings)


def test_a_built_in_type_without_its_library_says_what_to_install() -> None:
    point = EntryPoint("x", "no_such_module:X [kafka]", "g")
    types = InstalledClasses("source type", "g", object, {}, extras=(point,))
    with pytest.raises(PluginUnknown, match=r"pip install 'fairlead-connect\[kafka\]'"):
        types.find("x")
