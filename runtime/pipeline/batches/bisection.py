# pyright: basic, reportAttributeAccessIssue=false
"""The rows of a batch that a transform or a sink fails for, found by bisection.

Neither names these rows: a job of Spark's ends at the first one, and so does a database's
COPY. So parts of the batch are tried until those that fail are of one row each. A part that does
not fail is not tried again: one bad row among a million costs twenty attempts.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa

from ..engines.failures import failure_text
from ..spi.errors import BadInput, RowsRefused
from ..spi.rows import RECORD_PLACE, ArrowTable, Rejects
from .row_files import file_of_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OF_ROWS: Final = re.compile(r"SQLSTATE: (?:22\w{3}|38000|39000|P0001)")
"""The end of an error that the values of a row caused, by the SQL standard's classes."""
_SQLSTATE: Final = re.compile(r"\s*SQLSTATE: \w+")
_KEY: Final = "_key"
_FILE: Final = "__fairlead_file"


def failing_rows(
    table: ArrowTable,
    attempt: Callable[[ArrowTable], object],
    reason_of: Callable[[Exception], str | None],
    most: int,
) -> dict[int, str]:
    """Bisect a table for the rows that an attempt fails for; return their reasons by row number.

    Row numbers begin at 0. The attempt has failed for the whole table. `reason_of` returns None for
    an error that is no row's fault, which is raised. Raises `BadInput` for more than `most` rows.
    """
    reasons: dict[int, str] = {}
    waiting = _halves(0, table.num_rows) if table.num_rows > 1 else [(0, 1)]
    while waiting:
        start, count = waiting.pop()
        try:
            attempt(_slice(table, start, count))
        except Exception as error:
            reason = reason_of(error)
            if reason is None:
                raise
            if count > 1:
                waiting += _halves(start, count)
                continue
            reasons[start] = reason
            if len(reasons) > most:
                raise BadInput(
                    f"more than errors.bisect.max={most} rows of a batch are refused: {reason}. "
                    "Nothing of the batch counts; mend the source, or raise errors.bisect.max"
                ) from error
    return reasons


def refusal_of_sink(error: Exception) -> str | None:
    """Return why a sink refuses rows; None for any other error."""
    return str(error) if isinstance(error, RowsRefused) else None


def failure_of_row(error: Exception) -> str | None:
    """Return the text of a Spark job's error if the values of a row caused it, else None."""
    text = failure_text(error)
    cause: object = error
    while text is not None and cause is not None:
        if _OF_ROWS.search(f"{getattr(cause, '_desc', None) or cause}"):
            return _SQLSTATE.sub("", text).strip()
        cause = getattr(cause, "_cause", None)
    return None


def without(table: ArrowTable, rows: Mapping[int, str]) -> ArrowTable:
    """Return a table without some of its rows."""
    kept = [number not in rows for number in range(table.num_rows)]
    return cast("ArrowTable", cast("Any", table).filter(pa.array(kept, pa.bool_())))


def with_files(frame: "DataFrame") -> "DataFrame":
    """Add the file of each row as a column, for `without_files`."""
    return frame.select("*", file_of_row().alias(_FILE))


def without_files(table: ArrowTable) -> tuple[ArrowTable, ArrowTable | None]:
    """Split off the column of files; a file is null if it is unknown.

    The files stay in Arrow, since few rows need theirs.
    """
    rows: Any = table
    if _FILE not in rows.schema.names:
        return table, None
    return rows.drop_columns([_FILE]), rows.select([_FILE])


def as_rejects(
    spark: "SparkSession",
    table: ArrowTable,
    rows: Mapping[int, str],
    hide: Callable[[str], str],
    files: ArrowTable | None = None,
) -> Rejects:
    """Make rejects of some rows of a table, each with its reason.

    `hide` takes secrets out of reasons, as an error of Spark's quotes the query. Their position
    is that of their record, where they have one, else their number in the batch, with their file
    if `files` has it.
    """
    at = pa.array(sorted(rows), pa.int64())
    taken = cast("Any", table).take(at).to_pylist()
    of_rows = (
        cast("Any", files)[_FILE].take(at).to_pylist() if files is not None else [None] * len(taken)
    )
    places = [*map(_position, taken, sorted(rows), of_rows)]
    letters = {
        "position": pa.array(
            [list(each.items()) for each in places], pa.map_(pa.string(), pa.string())
        ),
        "reason": pa.array([hide(rows[number]) for number in sorted(rows)], pa.string()),
        "raw": pa.array([json.dumps(row, default=_plain) for row in taken], pa.string()),
        "format": pa.array(["row"] * len(taken), pa.string()),
    }
    keys = [row.get(_KEY) for row in taken]
    if all(isinstance(each, str | bytes | None) for each in keys):
        letters["key"] = pa.array(keys).cast(pa.binary())
    frame = spark.createDataFrame(cast("Any", pa.table(letters)))
    return Rejects(frame, lambda: len(rows))


def _position(row: Mapping[str, object], number: int, file: str | None) -> dict[str, str]:
    if all(column in row for column in RECORD_PLACE.values()):
        return {name: str(row[column]) for name, column in RECORD_PLACE.items()}
    place = {"row": f"{number + 1} of the batch"}
    return {"file": file, **place} if file else place


def _plain(value: object) -> str:
    """Return a value that JSON has no word for as a text that Spark reads as that value."""
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _halves(start: int, count: int) -> list[tuple[int, int]]:
    half = count // 2
    return [(start + half, count - half), (start, half)]


def _slice(table: ArrowTable, start: int, count: int) -> ArrowTable:
    # A copy: PySpark takes no part of a column of lists among which nulls are.
    rows = pa.array(range(start, start + count), pa.int64())
    return cast("ArrowTable", cast("Any", table).take(rows))
