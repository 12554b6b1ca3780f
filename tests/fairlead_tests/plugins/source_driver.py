"""Drives a source that is a plugin of Connect's, in a real plugin host, without a node."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from fairlead.events.commits import Document, identity
from fairlead.events.model import Resource
from fairlead.runtime.pipeline.plugins.batches.source import PluginSource
from fairlead.runtime.pipeline.plugins.host import HostLaunch, PluginHost
from fairlead.runtime.pipeline.plugins.running.hosts import HostServices, TaskHosts
from fairlead.runtime.pipeline.spi.context import Context, Shared
from fairlead.runtime.pipeline.spi.errors import NotReady, SourceAway
from fairlead.runtime.pipeline.spi.source import BatchPlan, Limit
from fairlead_tests.plugins.installed import QUICK, WORKER, installation, java_here
from fairlead_tests.plugins.replayed_source import SOURCE
from fairlead_tests.tasks.memory_ledger import MemoryLedger

SECONDS = 60.0
ANY = Limit(1_000_000, 1 << 30, 1_000)
NAME = "replay"
Line = Mapping[str, Any] | str


def written(*polls: Sequence[Line]) -> str:
    """Return the text of a file of records, some for each poll."""
    return "\n\n".join("\n".join(json.dumps(each) for each in lines) for lines in polls) + "\n"


def envelope(payload: object, **schema: Any) -> dict[str, Any]:
    """Return a value in Connect's envelope."""
    return {"schema": schema, "payload": payload}


def text(value: str) -> dict[str, Any]:
    """Return a text in Connect's envelope."""
    return envelope(value, type="string", optional=False)


@dataclass
class Driver:
    """A task's source, and a log that has what it commits."""

    shared: Shared
    ledger: MemoryLedger
    records: Path
    told_path: Path
    beside: Sequence[str] = ("topic",)
    config: Mapping[str, str] = field(default_factory=dict[str, str])
    task_class: str = f"{SOURCE}$ReplayedTask"

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin a new attempt."""
        config = self.plugin_config
        task = {**config, "task.class": self.task_class}
        self.source = PluginSource(self.context(0), config, task, self.beside)

    def context(self, task: int) -> Context:
        """Return the context of a task, or of its connector."""
        return Context(Resource(NAME, task), lambda _: None, shared=self.shared)

    @property
    def plugin_config(self) -> dict[str, str]:
        """The config of the plugin."""
        return {
            "name": NAME,
            "connector.class": SOURCE,
            "records": str(self.records),
            "told": str(self.told_path),
            **self.config,
        }

    def write(self, *polls: Sequence[Line]) -> None:
        """Write what the next polls return."""
        before = self.records.read_text() if self.records.exists() else ""
        self.records.write_text(f"{before}{written(*polls)}\n")

    @property
    def told(self) -> list[str]:
        """What the plugin has written down."""
        return self.told_path.read_text().splitlines() if self.told_path.exists() else []

    @property
    def offsets(self) -> dict[str, Document]:
        """The offsets in the log."""
        return dict(self.ledger.offsets(NAME))

    def plan(self) -> BatchPlan[Any]:
        """Return the next batch, once it is there."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                plan = self.source.plan(self.offsets, ANY)
            except NotReady:
                plan = BatchPlan()
            if plan.ranges:
                return plan
            time.sleep(0.01)
        raise AssertionError(f"no batch; told: {self.told}")

    def log(self, plan: BatchPlan[Any]) -> None:
        """Have a batch count."""
        logged = self.ledger.logged.setdefault(NAME, {})
        for each in plan.advances:
            assert logged.get(identity(each.partition)) == each.start
            if each.end is None:
                del logged[identity(each.partition)]
            else:
                logged[identity(each.partition)] = each.end

    def commit(self, plan: BatchPlan[Any]) -> list[dict[str, Any]]:
        """Have a batch count, tell the source, and return its rows."""
        self.log(plan)
        self.source.acknowledge(plan.advances)
        return rows_of(plan)

    def batch(self) -> list[dict[str, Any]]:
        """Return the rows of the next batch, which counts."""
        return self.commit(self.plan())

    @property
    def is_asked(self) -> bool:
        """Whether the host has been asked to make the task, by this call at the latest."""
        try:
            return not self.source.plan(self.offsets, ANY).ranges
        except NotReady:
            return False

    @property
    def has_ended(self) -> bool:
        """Whether the source has no host any more."""
        try:
            self.source.plan(self.offsets, ANY)
        except SourceAway:
            return True
        return False

    def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + SECONDS
        while not holds():
            assert time.monotonic() < deadline, self.told
            time.sleep(0.01)


def rows_of(plan: BatchPlan[Any]) -> list[dict[str, Any]]:
    """Return the rows of a plan."""
    (table,) = plan.ranges
    return cast("list[dict[str, Any]]", table.to_pylist())


@contextmanager
def hosts_of(
    plugins: Path, folder: Path, ledger: MemoryLedger, more: Mapping[str, str] | None = None
) -> Iterator[TaskHosts]:
    """Yield hosts that have the plugins of a folder, and more properties; end them."""
    launch = HostLaunch(installation(), java_here(), folder / "host.log", QUICK)
    properties = {**WORKER, "plugin.path": str(plugins), **(more or {})}
    services = HostServices(
        lambda listener: PluginHost(launch, properties, listener),
        "w1",
        60.0,
        lambda *_: None,
        lambda _: frozenset(),
        ledger,
        cast("Any", None),
    )
    hosts = TaskHosts(services)
    try:
        yield hosts
    finally:
        hosts.close()
