# pyright: basic
"""Records become files without an engine; those that need Spark wait for one."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as papq
import pytest

from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.engines.engine import EngineState
from fairlead.runtime.pipeline.engines.settings import known_settings
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.kafka.pipes import source_config, until
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import LocalEngine, Reports

TASK = Resource("orders", 0)
METADATA = "topic,partition,offset,key,timestamp"
TOKEN = Token(1, 0)
PLAIN_JSON = {f"{each}_converter_schemas_enable": "false" for each in ("value", "key")}


class Copying:
    """A connector from a topic into files, over an engine that is not there."""

    def __init__(self, topics: Topics, topic: str, out: Path, **given: str) -> None:
        self.engine, self.reports = LocalEngine(EngineState.DOWN), Reports()
        self.config = source_config(topics.bootstrap, topics=topic, **given)
        self.config |= {"sink.path": str(out), "errors.tolerance": "all", "linger.ms": "0"}
        self._out = out
        self.runner = Runner(
            self.engine,
            MemoryLedger(),
            find_plugins(),
            self.reports,
            spark_settings=known_settings({}),
        )
        self.runner.start(Launch(Resource(TASK.connector), TOKEN, self.config, self.config))
        made = self.reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
        assert isinstance(made, TaskConfigsChanged)
        self.runner.start(Launch(TASK, TOKEN, self.config, made.configs[0]))

    def wait_rows(self, rows: int) -> list[dict[str, Any]]:
        """Return the rows of all files once there are so many."""
        counted = lambda: sum(each.manifest.rows for each in self.reports.commits)  # noqa: E731
        until(counted, lambda found: found >= rows)
        found: list[dict[str, Any]] = papq.read_table(self._out).to_pylist()
        return found


@pytest.mark.parametrize("kind", ["string", "bytes"])
def test_texts_and_bytes_are_copied_while_there_is_no_engine(
    topics: Topics, topic: str, tmp_path: Path, kind: str
) -> None:
    values: list[Any] = [*(f"é{number}" for number in range(1_000)), "", None]
    topics.write(topic, values, key=b"k")
    copying = Copying(
        topics, topic, tmp_path / "out", value_converter=kind, metadata_columns=METADATA
    )
    rows = copying.wait_rows(len(values))
    assert copying.runner.close(60) == frozenset()
    rows.sort(key=lambda each: each["_offset"])
    as_read = [each.encode() if kind == "bytes" and each is not None else each for each in values]
    assert [each["_value"] for each in rows] == as_read
    assert {(each["_topic"], each["_partition"], each["_key"]) for each in rows} == {
        (topic, 0, "k")
    }
    of_task = [each for each in copying.reports.statuses if each.resource == TASK]
    assert {each.state for each in of_task} == {RunState.RUNNING}
    assert {each.lanes.rows for each in copying.reports.batches} == {
        each.commit.rows_in for each in copying.reports.batches
    }


@pytest.mark.parametrize(
    "given",
    [
        {"value_converter": "json", **PLAIN_JSON, "schema": "a INT"},
        {"key_converter": "json", **PLAIN_JSON, "metadata_columns": "key", "key_schema": "a INT"},
    ],
    ids=["values", "keys"],
)
def test_json_waits_for_the_engine(
    topics: Topics, topic: str, tmp_path: Path, given: dict[str, str]
) -> None:
    topics.write(topic, ['{"a": 1}'], key=b'{"a": 1}')
    copying = Copying(topics, topic, tmp_path / "out", **given)
    copying.reports.wait_status("waiting for the engine", state=RunState.UNASSIGNED)
    assert copying.runner.close(60) == frozenset()
    assert copying.reports.batches == []


def test_a_column_that_only_spark_writes_alike_waits_for_the_engine_with_its_batch(
    topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.write(topic, ["x"], headers={"h": b"1"})
    copying = Copying(topics, topic, tmp_path / "out", metadata_columns="headers")
    copying.reports.wait_status("waiting for the engine", state=RunState.RESTARTING)
    assert copying.runner.close(60) == frozenset()
    assert copying.reports.batches == []
