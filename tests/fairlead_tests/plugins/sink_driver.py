"""Drives a sink that is a plugin of Connect's, in a real plugin host, without a node."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from fairlead.events.commits import Advance, CommitId, Document, identity
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.plugins.feeds.sink_type import PluginSinkType
from fairlead.runtime.pipeline.spi.config import ConfigDef
from fairlead.runtime.pipeline.spi.context import Context, Shared
from fairlead.runtime.pipeline.spi.errors import NotReady
from fairlead.runtime.pipeline.spi.source import ArrowSource, BatchPlan, Limit
from fairlead_tests.plugins.told_sink import SINK

SECONDS = 60.0
NAME = "told"
ANY = Limit(1_000_000, 1 << 30, 1_000)
_OWN = {"is_raw", "keys", "times"}
"""What is said to the sink, and not to the plugin."""
LIST: Document = {"list": "one"}


class ListedSource(ArrowSource):
    """A source whose batches are given; its offset is how many of them were read."""

    def __init__(self, batches: Sequence[Any]) -> None:
        self.batches = batches
        self.acknowledged: list[Document | None] = []
        self.left_out: Collection[tuple[str, int]] = ()

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[Any]:
        del limit
        start = offsets.get(identity(LIST))
        at = int(str(start["at"])) if start else 0
        if at == len(self.batches):
            return BatchPlan()
        advance = Advance(LIST, start, {"at": at + 1})
        return BatchPlan((self.batches[at],), (advance,), rows=self.batches[at].num_rows)

    def leave_out(self, places: Collection[tuple[str, int]]) -> None:
        self.left_out = places

    def acknowledge(self, advances: Sequence[Advance]) -> None:
        self.acknowledged += [each.end for each in advances]


@dataclass
class Driver:
    """A task's sink and source, and a log that has what counts."""

    shared: Shared
    told_path: Path
    config: Mapping[str, str] = field(default_factory=dict[str, str])
    batches: Sequence[Any] = ()
    logged: dict[str, Document] = field(default_factory=dict[str, Document])
    rejected: int = 0
    """How many rows have become dead letters."""

    def begin(self, batches: Sequence[Any], **config: str) -> None:
        """Begin a new attempt."""
        self.batches = batches
        own = {
            "name": NAME,
            "connector.class": SINK,
            "topics": "words",
            "told": str(self.told_path),
            **{key.replace("_", "."): value for key, value in config.items() if key not in _OWN},
        }
        own = {f"sink.connect.config.{key}": each for key, each in own.items()}
        task = {f"{key.replace('config', 'task', 1)}": each for key, each in own.items()}
        task["sink.connect.task.task.class"] = f"{SINK}$ToldTask"
        beside = {"errors.tolerance": "all", "errors.deadletterqueue.path": "/x"}
        raw = {"sink.connect.is.raw": config.get("is_raw", "false")}
        context = Context(Resource(NAME, 0), lambda _: None, shared=self.shared)
        keys = {"sink.key.columns": config.get("keys", "")}
        if "times" in config:
            keys["sink.time.precision"] = config["times"]
        settings = ConfigDef((*PluginSinkType.keys(),)).parse(keys)
        self.sink = PluginSinkType.sink(context, {**own, **task, **beside, **raw}, settings)
        self.inner = ListedSource(batches)
        self.source = self.sink.paired(self.inner)

    def step(self) -> bool:
        """Run the next batch, if there is any."""
        try:
            return self.run(self.source.plan(self.logged, ANY))
        except NotReady:
            return False

    def run(self, plan: BatchPlan[Any]) -> bool:
        """Run a batch as a task does."""
        if not plan.ranges:
            return False
        table: Any = self.source.table(plan.ranges)
        if table.num_columns:
            self.sink.write(table, CommitId(NAME, 0, Token(1, 1), 0), 0)
        for each in plan.advances:
            assert self.logged.get(identity(each.partition)) == each.start
            if each.end is not None:
                self.logged[identity(each.partition)] = each.end
        self.rejected += self.sink.rejected
        self.source.acknowledge(plan.advances)
        return True

    def end(self) -> None:
        """End as a task does that is asked to."""
        self.run(self.source.conclude(self.logged))
        self.close()

    def close(self) -> None:
        """End as a task does that has failed."""
        self.source.close()
        self.sink.close()

    @property
    def told(self) -> list[str]:
        """What the plugin has written down."""
        return self.told_path.read_text().splitlines() if self.told_path.exists() else []

    @property
    def offsets(self) -> tuple[object, object]:
        """The offsets in the log: how many batches count, and that of the next record."""
        records = [each["sink_offset"] for each in self.logged.values() if "sink_offset" in each]
        return self.logged.get(identity(LIST), {}).get("at"), next(iter(records), None)

    def until(self, holds: Callable[[], object]) -> None:
        """Run batches until something holds."""
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < deadline, (self.told, self.logged)
            if not self.step():
                time.sleep(0.01)


def words(*batches: Sequence[str]) -> list[Any]:
    """Return batches of rows with a single field."""
    return [pa.table({"word": pa.array(each, pa.string())}) for each in batches]


def put(*records: tuple[int, str]) -> list[str]:
    """Return what the plugin writes down for records of words."""
    return [f"words-0@{offset} {{word={each}}}" for offset, each in records]
