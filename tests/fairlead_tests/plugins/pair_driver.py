"""Drives a source and a sink that both are plugins of Connect's, in a real host, without a node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead.events.commits import Document, identity
from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors import pipeline_keys
from fairlead.runtime.pipeline.connectors.plugin_pipeline import as_pipeline
from fairlead.runtime.pipeline.plugins.batches.source_type import PluginSourceType
from fairlead.runtime.pipeline.plugins.feeds.sink_type import PluginSinkType
from fairlead.runtime.pipeline.spi.config import strip_prefix
from fairlead.runtime.pipeline.spi.context import Context
from fairlead_tests.plugins import sink_driver
from fairlead_tests.plugins.replayed_source import SOURCE
from fairlead_tests.plugins.source_driver import Line, written
from fairlead_tests.plugins.told_sink import SINK
from fairlead_tests.tasks.memory_ledger import MemoryLedger

NAME = "pair"


@dataclass
class PairDriver(sink_driver.Driver):
    """A task between two plugins, and a log that has what counts."""

    ledger: MemoryLedger = field(default_factory=MemoryLedger)

    def __post_init__(self) -> None:
        self.ledger.logged[NAME] = self.logged

    @property
    def records(self) -> Path:
        """The file of records that the source sends."""
        return self.told_path.with_name("records")

    def write(self, *polls: Sequence[Line]) -> None:
        """Write what the next polls return."""
        before = self.records.read_text() if self.records.exists() else ""
        self.records.write_text(f"{before}{written(*polls)}\n")

    def start(self, **config: str) -> None:
        """Begin a new attempt; the keys of the sink begin with `sink_`."""
        given: Mapping[str, str] = {
            "name": NAME,
            "connector.class": SOURCE,
            "records": str(self.records),
            "told": str(self.heard_path),
            "errors.tolerance": "all",
            "errors.deadletterqueue.path": "/x",
            "sink.type": "connect",
            "sink.connector.class": SINK,
            "sink.told": str(self.told_path),
            **{key.replace("_", "."): value for key, value in config.items()},
        }
        made = as_pipeline(given)
        of_source = strip_prefix("source.connect.config.", made)
        of_sink = strip_prefix("sink.connect.config.", made)
        source = {**of_source, "task.class": f"{SOURCE}$ReplayedTask"}
        sink = {**of_sink, "task.class": f"{SINK}$ToldTask"}
        made |= {f"source.connect.task.{key}": value for key, value in source.items()}
        made |= {f"sink.connect.task.{key}": value for key, value in sink.items()}
        context = Context(Resource(NAME, 0), lambda _: None, shared=self.shared)
        settings = pipeline_keys.task_keys_of(made).parse(made)
        self.sink = PluginSinkType.sink(context, made, settings)
        self.source = self.sink.paired(PluginSourceType.source(context, made, settings))

    @property
    def heard_path(self) -> Path:
        """The file that the source writes down what it hears in."""
        return self.told_path.with_name("heard")

    @property
    def heard(self) -> list[str]:
        """What the source has written down."""
        return self.heard_path.read_text().splitlines() if self.heard_path.exists() else []

    @property
    def at(self) -> object:
        """The offset of the source in the log."""
        logged: Document = self.logged.get(identity({"file": "one"}), {})
        return logged.get("at")


def word(value: str, **more: Any) -> dict[str, Any]:
    """Return a record with a text."""
    schema = {"type": "string", "optional": False}
    return {"topic": "words", "value": {"schema": schema, "payload": value}, **more}
