"""A connector that counts, and misbehaves in a call that a test selects."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import pyarrow as pa

from fairlead.events.commits import Advance, CommitId, Document, Manifest
from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import Plugin, Plugins
from fairlead.runtime.pipeline.spi.config import ConfigDef
from fairlead.runtime.pipeline.spi.connector import Connector, Pace, Pipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.keys.common import COMMON
from fairlead.runtime.pipeline.spi.sink import TaskOwnership
from fairlead.runtime.pipeline.spi.source import BatchPlan, Limit
from fairlead_tests.tasks.numbers import CountingSource, Hooks, LineSink, Numbers

T = TypeVar("T")

Deed = Callable[[Callable[[], Any]], Any]
"""Replaces one call, which it gets as a parameter."""

SOURCE_CALLS = ("source.plan", "source.read", "source.verify", "source.acknowledge", "source.close")
SINK_CALLS = ("sink.acquire", "sink.prepare", "sink.stage", "sink.publish", "sink.sweep")
CALLS = ("connector.pipeline", *SOURCE_CALLS, *SINK_CALLS, "sink.close")
CONNECTOR_CALLS = ("connector.start", "connector.task_configs", "connector.needs_reconfiguration")


class Deeds:
    """The misbehaviour of connectors, each in one call and once."""

    def __init__(self) -> None:
        self.of: dict[tuple[str, str], Deed] = {}
        """By the connector's name and the call."""

    def act(self, name: str, call: str, right: Callable[[], T]) -> T:
        deed = self.of.pop((name, call), None)
        return cast("T", deed(right)) if deed else right()


class WrongSource(CountingSource):
    """Counts to nine."""

    def __init__(self, name: str, deeds: Deeds) -> None:
        super().__init__(9, Hooks())
        self._name, self._deeds = name, deeds

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[range]:
        plan = super().plan
        return self._act("plan", lambda: plan(offsets, limit))

    def read(self, spark: Any, ranges: Sequence[range]) -> Any:
        del spark
        numbers = [number for each in ranges for number in each]
        table = cast("Any", pa).table({"n": numbers})
        return self._act("read", lambda: table)

    def verify(self, ranges: Sequence[range]) -> None:
        del ranges
        self._act("verify", lambda: None)

    def acknowledge(self, advances: Sequence[Advance]) -> None:
        del advances
        self._act("acknowledge", lambda: None)

    def close(self) -> None:
        self._act("close", lambda: None)

    def _act(self, call: str, right: Callable[[], T]) -> T:
        return self._deeds.act(self._name, f"source.{call}", right)


class WrongSink(LineSink):
    """Writes a file a batch, from an Arrow table."""

    takes_arrow = True

    def __init__(self, root: Path, name: str, deeds: Deeds) -> None:
        super().__init__(root, Hooks())
        self._name, self._deeds = name, deeds

    def acquire(self, ownership: TaskOwnership) -> None:
        del ownership
        self._act("acquire", lambda: None)

    def prepare(self, schema: Any) -> None:
        del schema
        self._act("prepare", lambda: None)

    def stage(self, rows: Any, commit_id: CommitId, input_bytes: int) -> Manifest:
        stage = super().stage
        return self._act("stage", lambda: stage(rows["n"].to_pylist(), commit_id, input_bytes))

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        publish = super().publish
        self._act("publish", lambda: publish(manifest, commit_id, sequence))

    def sweep(self, resource: Resource, token: Token) -> None:
        sweep = super().sweep
        self._act("sweep", lambda: sweep(resource, token))

    def close(self) -> None:
        self._act("close", lambda: None)

    def _act(self, call: str, right: Callable[[], T]) -> T:
        return self._deeds.act(self._name, f"sink.{call}", right)


class Wrong(Connector):
    """Counts to nine into the folder `root`; does wrong what `deeds` say of its name."""

    deeds: ClassVar[Deeds] = Deeds()

    @classmethod
    def config(cls) -> ConfigDef:
        return COMMON

    def start(self, context: Context, config: Mapping[str, str]) -> None:
        del context
        self._config = config
        self._act("start", lambda: None)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        del max_tasks
        return self._act("task_configs", lambda: [self._config])

    def needs_reconfiguration(self) -> bool:
        return self._act("needs_reconfiguration", lambda: False)

    def pipeline(self, context: Context, task_config: Mapping[str, str]) -> Pipeline:
        del context
        self._config = task_config
        return self._act("pipeline", self._pipeline)

    def _pipeline(self) -> Pipeline:
        name = self._config["name"]
        source = WrongSource(name, self.deeds)
        sink = WrongSink(Path(self._config["root"]), name, self.deeds)
        pace = Pace(Limit(10, 1 << 20, 10), poll_interval_s=0.05, linger_s=0)
        return Pipeline(source, (), sink, pace)

    def _act(self, call: str, right: Callable[[], T]) -> T:
        return self.deeds.act(self._config["name"], f"connector.{call}", right)


def wrong_plugins() -> Plugins:
    return Plugins((Plugin(Wrong), Plugin(Numbers)), {})


def wrong_launch(root: Path, name: str, task: int = 0, **more: str) -> Launch:
    """Return the launch of a connector of this name, or of its task, into a folder of its own."""
    folder = root / name.replace("/", "-")
    folder.mkdir(exist_ok=True)
    config = {
        "name": name,
        "connector.class": "Wrong",
        "root": str(folder),
        "task.restart.backoff.initial.ms": "10",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return Launch(Resource(name, task), Token(1, 0), config, config)
