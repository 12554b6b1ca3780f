# pyright: basic, reportAttributeAccessIssue=false
"""Answers that are tables: for Arrow, and for pandas where that is installed."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Final

import pyarrow as pa

from .....projections.explain.lists import EpochLine, EpochList
from ...replies.progress import ConnectorProgressInfo, TaskProgressInfo

_TIME: Final = pa.timestamp("ms", tz="UTC")
_TEXTS: Final = frozenset({"cause", "subject", "actor", "changed"})
_EPOCHS: Final = pa.schema(
    [
        ("time", _TIME),
        *(
            (each.name, pa.string() if each.name in _TEXTS else pa.int64())
            for each in fields(EpochLine)
            if each.name != "time_ms"
        ),
    ]
)
_COUNTS: Final = (
    "rows_in",
    "rows_out",
    "bytes_in",
    "bytes_out",
    "batches",
    "unpublished",
    "skipped",
    "dead_letters",
    "rows_per_second",
)
_TASKS: Final = pa.schema(
    [
        ("connector", pa.string()),
        ("task", pa.int64()),
        *((each, pa.int64()) for each in _COUNTS),
        *((f"lag_{each}", pa.int64()) for each in ("ranges", "bytes", "records")),
        ("last_commit", _TIME),
    ]
)


@dataclass(frozen=True, slots=True)
class EpochHistory(EpochList):
    """The last epochs of a group, as a table with one row for each."""

    def to_arrow(self) -> pa.Table:
        """Return the epochs as an Arrow table."""
        rows = [{**asdict(each), "time": each.time_ms} for each in self.epochs]
        return pa.Table.from_pylist(rows, schema=_EPOCHS)

    def to_pandas(self) -> Any:  # noqa: ANN401  # pandas may not be there
        """Return the epochs as a frame of pandas; raises `ImportError` without it."""
        return self.to_arrow().to_pandas()


class TaskTable(ConnectorProgressInfo, frozen=True):
    """The progress of a connector, as a table with one row for each task."""

    def to_arrow(self) -> pa.Table:
        """Return the counts of the tasks as an Arrow table."""
        rows = [{"connector": self.name, **_row_of(each)} for each in self.tasks]
        return pa.Table.from_pylist(rows, schema=_TASKS)

    def to_pandas(self) -> Any:  # noqa: ANN401  # as above
        """Return the counts of the tasks as a frame of pandas; raises `ImportError` without it."""
        return self.to_arrow().to_pandas()


def _row_of(task: TaskProgressInfo) -> dict[str, int | None]:
    lag = task.lag
    return {
        "task": task.id,
        **{each: getattr(task, each) for each in _COUNTS},
        "lag_ranges": lag.ranges if lag else None,
        "lag_bytes": lag.bytes if lag else None,
        "lag_records": lag.records if lag else None,
        "last_commit": task.last_commit_ms,
    }
