"""A connector of a test: what it reads, where it writes, and whether each row came out once."""

import contextlib
from collections.abc import Generator, Mapping
from pathlib import Path

from fairlead.runtime.demo.output import Format
from fairlead.runtime.demo.verdict import judge
from fairlead.runtime.pipeline.connectors.files.sink.staging import STAGING
from fairlead_tests.chaos.crew import Crew
from fairlead_tests.chaos.feed import Feed
from fairlead_tests.chaos.lookout import Lookout

CSV_SCHEMA = "id BIGINT, amount BIGINT"


class Line:
    """A connector that reads a feed; its output has the rows of the feed, in another form."""

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
        """Read and write in this folder, from one form to another; `config` goes over ours."""
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
        """Feed, and create the connector."""
        self.feed.start()
        node.put(self.name, self.config)

    def finish(self, node: Crew) -> None:
        """Feed no more, and wait until all that was fed is to be seen."""
        self.feed.stop()
        node.reads_all(self.name, self.feed.files)

    @property
    def staging(self) -> Path:
        """Where batches lie that are not published."""
        return self.output / STAGING

    def staged(self) -> list[Path]:
        """What lies there now."""
        return [*self.staging.glob("*")]

    def wrong(self, read: set[str] | None = None) -> list[object]:
        """All that is wrong with the output of the files that were read, by default of all."""
        checks = judge(self.feed.expected(read), self.output, self.form).checks
        return [*(check for check in checks if not check.ok), *self.staged()]


@contextlib.contextmanager
def flowing(node: Crew, *lines: Line) -> Generator[Lookout]:
    """Have lines flow for a while, and see that each file of theirs is whole as long as it is seen.

    Afterwards the crew has no work of theirs, and nothing is left of what was staged.
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
