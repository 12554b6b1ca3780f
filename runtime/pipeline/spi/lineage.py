"""What a task's rows come from and go to, and who is told of it.

Datasets are named as OpenLineage names them: a namespace that says which system, and a name in it.
"""

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from ....events.commits import Commit
from .rows import ArrowTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RunEnd(Enum):
    """How an attempt of a task ended, in OpenLineage's words."""

    COMPLETE = "COMPLETE"
    """It was asked to."""
    ABORT = "ABORT"
    """It is tried again, or goes on elsewhere."""
    FAIL = "FAIL"


class Dataset(NamedTuple):
    """A folder, a table, a topic."""

    namespace: str
    """Where it is: `file`, `postgres://host:5432`, `kafka://host:9092`."""
    name: str


def dataset_of_path(path: str) -> Dataset:
    """Return a folder, by a path or a URL."""
    parts = urlsplit(path)
    if len(parts.scheme) < 2:  # noqa: PLR2004  # none, or a drive's letter
        return Dataset("file", path)
    if parts.scheme == "file":
        return Dataset("file", parts.path)
    return Dataset(f"{parts.scheme}://{parts.netloc}", parts.path)


class Lineage:
    """Takes what an attempt of a task does, from its thread; as it is here nobody is told."""

    def columns(self, before: "DataFrame | ArrowTable", after: "DataFrame | ArrowTable") -> None:
        """See the rows of a batch before its transforms and after them; only the first counts."""

    def batch(self, commit: Commit) -> None:
        """Learn of a batch that counts and is in place."""

    def end(self, outcome: "RunEnd", reason: str = "") -> None:
        """Learn how the attempt ended, and why."""


UNTOLD = Lineage()
