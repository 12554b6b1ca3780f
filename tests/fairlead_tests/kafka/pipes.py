# pyright: basic
"""Creates Kafka sources and sinks as a task does, and drives them like one."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from fairlead.events.commits import Document
from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.source import BatchPlan, Limit, Source
from fairlead.runtime.pipeline.spi.types import SourceType
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.connectors.pipes import TASK, config_from, config_to, source_of, take
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

PATIENCE_S = 120.0
LIMIT = Limit(1_000, 1 << 20, 1)


def source_config(bootstrap: str, **given: str) -> dict[str, str]:
    """Return the config of a source of topics; keys without `source.`, with `_` for dots."""
    return config_from("kafka", given, bootstrap_servers=bootstrap)


def sink_config(bootstrap: str, staging: object, **given: str) -> dict[str, str]:
    """Return the config of a sink of topics; keys without `sink.`, with `_` for dots."""
    return config_to("kafka", given, bootstrap_servers=bootstrap, staging_path=str(staging))


def source_type(
    config: dict[str, str], split: tuple[dict[str, str], ...] = (), logged: Any = dict
) -> SourceType:
    """Return the connector's part of a config."""
    assert SparkPipeline.validate(config).errors == {}
    context = Context(Resource(TASK.connector), print, split, logged_offsets=logged)
    return keys.SOURCE_TYPES.find("kafka")(context, config, keys.keys_of(config).parse(config))


class Reading:
    """A task's source with its offsets, through several restarts of the task."""

    def __init__(self, config: dict[str, str], offsets: dict[str, Document] | None = None) -> None:
        self.config = config
        self.offsets = {} if offsets is None else offsets
        self.warnings: list[str] = []
        self.advances: list[Any] = []
        self.split: tuple[dict[str, str], ...] = ()
        self.source = self._made()

    def again(self) -> None:
        """Restart the task."""
        self.source.close()
        self.source = self._made()

    def plan(self, limit: Limit = LIMIT) -> BatchPlan[Any]:
        """Plan until there is a batch."""
        found: BatchPlan[Any] = until(
            lambda: self.source.plan(self.offsets, limit), lambda plan: plan.ranges
        )
        return found

    def take(self, plan: BatchPlan[Any], spark: Any = None) -> Any:
        """Read and commit a batch."""
        return take(self.source, plan, self.offsets, spark)

    def read(self, rows: int, limit: Limit = LIMIT) -> pa.Table:
        """Read batch after batch until there are so many rows."""
        found = [self.take(self.plan(limit))]
        while sum(each.num_rows for each in found) < rows:
            found.append(self.take(self.plan(limit)))
        return pa.concat_tables(found)

    def looks_in_vain(self, times: int = 20) -> bool:
        """Return whether so many plans find no batch."""
        for _ in range(times):
            if self.source.plan(self.offsets, LIMIT).ranges:
                return False
            time.sleep(0.05)
        return True

    def _made(self) -> Source[Any]:
        (share,) = source_type(self.config, self.split, lambda: self.offsets).split(1)
        self.split = ({**self.config, **share},)
        return source_of(self.split[0], TASK, self.warnings.append)


def until(look: Callable[[], Any], fits: Callable[[Any], Any]) -> Any:
    """Poll until a condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not fits(seen := look()):
        assert time.monotonic() < deadline, seen
        time.sleep(0.02)
    return seen


def envelope(fields: list[dict[str, Any]], payload: Any) -> str:
    """Return a struct in Connect's envelope."""
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload})


def run_connector(
    engine: Embedded, ledger: MemoryLedger, config: Mapping[str, str], rows: int
) -> None:
    """Run a connector with two tasks until so many rows are published."""
    reports, token, name = Reports(), Token(1, 0), config["name"]
    config = {**config, "tasks.max": "2"}
    runner = Runner(engine, ledger, find_plugins(), reports)
    runner.start(Launch(Resource(name), token, config, config))
    made = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
    assert isinstance(made, TaskConfigsChanged)
    for task, task_config in enumerate(made.configs):
        runner.start(Launch(Resource(name, task), token, config, task_config))
    try:
        reports.wait(lambda _: sum(each.manifest.rows for each in reports.commits) >= rows)
    finally:
        assert runner.close(60) == frozenset()
