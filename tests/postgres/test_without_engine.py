# pyright: basic
"""A table of a database becomes files without an engine."""

from pathlib import Path

import pyarrow.parquet as papq
import pytest

from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.engines.engine import EngineState
from fairlead.runtime.pipeline.engines.settings import known_settings
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.postgres_pipes import source_config
from fairlead_tests.postgres_server import Database, wait_until
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import LocalEngine, Reports

SHOP = """CREATE TABLE orders (id bigserial PRIMARY KEY, item text, price numeric(10,2),
    made timestamptz DEFAULT now(), opens time, ref uuid DEFAULT gen_random_uuid(), rate float8)"""
READ = "SELECT id, item, price, made, opens::text, ref::text, rate FROM orders ORDER BY id"
MODES = {
    "table": {"mode": "xmin", "table_include_list": r"public\.orders"},
    "query": {
        "mode": "incrementing",
        "query": "SELECT * FROM orders",
        "incrementing_column_name": "id",
    },
}


@pytest.mark.parametrize("mode", MODES)
def test_a_table_is_written_to_files_while_there_is_no_engine(
    database: Database, tmp_path: Path, mode: str
) -> None:
    database.run(SHOP)
    database.run(
        "INSERT INTO orders (item, price, opens, rate) SELECT 'i' || i, i / 4.0, '23:59:59.5',"
        " 'NaN' FROM generate_series(1, 300) i"
    )
    database.run("INSERT INTO orders (item) VALUES (NULL)")
    config = source_config(database, MODES[mode]) | {"sink.path": str(tmp_path / "out")}
    engine, reports, name = LocalEngine(EngineState.DOWN), Reports(), config["name"]
    runner = Runner(
        engine, MemoryLedger(), find_plugins(), reports, spark_settings=known_settings({})
    )
    token = Token(1, 0)
    runner.start(Launch(Resource(name), token, config, config))
    made = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
    assert isinstance(made, TaskConfigsChanged)
    for task, told in enumerate(made.configs):
        runner.start(Launch(Resource(name, task), token, config, told))
    wait_until(lambda: sum(each.manifest.rows for each in reports.commits) >= 301)
    assert runner.close(60) == frozenset()
    rows = papq.read_table(tmp_path / "out").to_pylist()
    rows.sort(key=lambda each: each["id"])
    source = database.run(READ)
    names = ("id", "item", "price", "made", "ref")
    assert [tuple(each[name] for name in names) for each in rows] == [
        (*each[:4], each[5]) for each in source
    ]
    assert {str(each["opens"]) for each in rows} == {"23:59:59.500000", "None"}
    of_task = [each for each in reports.statuses if each.resource.is_task]
    assert {each.state for each in of_task} == {RunState.RUNNING}
