"""The datasets that a task reads and writes, and the interface that reports them.

Datasets have OpenLineage's names: a namespace for the system, and a name in it.
"""

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from ....events.commits import Commit
from .rows import ArrowTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RunEnd(Enum):
    """The final state of a task's attempt, as OpenLineage's event type."""

    COMPLETE = "COMPLETE"
    """A user stopped it."""
    ABORT = "ABORT"
    """It will be retried, or the task moved to another worker."""
    FAIL = "FAIL"


class Dataset(NamedTuple):
    """A folder, a table, a topic."""

    namespace: str
    """The system: `file`, `postgres://host:5432`, `kafka://host:9092`."""
    name: str


def dataset_of_path(path: str) -> Dataset:
    """Return the dataset of a folder, given as a path or a URL."""
    parts = urlsplit(path)
    if len(parts.scheme) < 2:  # noqa: PLR2004  # none, or a drive's letter
        return Dataset("file", path)
    if parts.scheme == "file":
        return Dataset("file", parts.path)
    return Dataset(f"{parts.scheme}://{parts.netloc}", parts.path)


class Lineage:
    """Reports the lineage of one attempt of a task; this base class reports nothing.

    All methods are called from the task's thread.
    """

    def columns(self, before: "DataFrame | ArrowTable", after: "DataFrame | ArrowTable") -> None:
        """Note a batch's columns before and after the transforms; later batches are ignored."""

    def batch(self, commit: Commit) -> None:
        """Note a batch that is committed and published."""

    def end(self, outcome: "RunEnd", reason: str = "") -> None:
        """Report the end of the attempt."""


NO_LINEAGE = Lineage()
