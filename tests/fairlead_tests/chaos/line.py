"""A pipeline under test: its input, its output, and the check that each row occurs once."""

import contextlib
from collections.abc import Generator, Mapping
from pathlib import Path

from fairlead.runtime.demo.output import Format
from fairlead.runtime.demo.verdict import judge
from fairlead.runtime.pipeline.stores.files.sink_folder.staging import STAGING
from fairlead_tests.chaos.crew import Crew
from fairlead_tests.chaos.feed import Feed
from fairlead_tests.chaos.lookout import Lookout

CSV_SCHEMA = "id BIGINT, amount BIGINT"


class Line:
    """A connector that reads a feed, and writes the same rows in another format."""

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        tasks: int,
        forms: tuple[str, Format] = ("csv", "parquet"),
        seed: int = 1,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Use this folder and these formats; `config` overrides the default config."""
        self.name = name
        self.form: Format = forms[1]
        self.feed = Feed(folder / f"in-{name}", forms[0], seed)
        self.output = folder / f"out-{name}"
        self.config = {
            "connector.class": "SparkPipeline",
            "tasks.max": str(tasks),
            "source.format": forms[0],
            "source.path": str(self.feed.folder),
            "source.min.age.ms": "0",
            "sink.format": forms[1],
            "sink.path": str(self.output),
            **({"source.schema": CSV_SCHEMA} if forms[0] == "csv" else {}),
            **(config or {}),
        }

    def begin(self, node: Crew) -> None:
        """Start the feed, and create the connector."""
        self.feed.start()
        node.put(self.name, self.config)

    def finish(self, node: Crew) -> None:
        """Stop the feed, and wait until all rows are published."""
        self.feed.stop()
        node.reads_all(self.name, self.feed.files)

    @property
    def staging(self) -> Path:
        """Return the folder of staged batches."""
        return self.output / STAGING

    def staged(self) -> list[Path]:
        """Return the staged files."""
        return [*self.staging.glob("*")]

    def wrong(self, read: set[str] | None = None) -> list[object]:
        """Return all errors in the output of the files that were read, by default of all."""
        checks = judge(self.feed.expected(read), self.output, self.form).checks
        return [*(check for check in checks if not check.ok), *self.staged()]


@contextlib.contextmanager
def flowing(node: Crew, *lines: Line) -> Generator[Lookout]:
    """Run pipelines in the context, and check that each visible output file is complete.

    Afterwards the connectors are deleted, and no staged file may be left.
    """
    lookout = Lookout(*(each.output for each in lines))
    try:
        for each in lines:
            each.begin(node)
        yield lookout
        node.remove(*(each.name for each in lines))
        node.eventually(lambda: not any(each.staged() for each in lines), "all is swept")
    finally:
        lookout.stop()
        for each in lines:
            each.feed.stop()
    assert (lookout.broken, lookout.changed()) == ([], [])
