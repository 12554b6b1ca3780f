# pyright: basic
"""Rows that a worker sends to a Spark Connect server as files in a shared folder.

A few rows are sent within the plan of a query. More rows would take a hundred times their size on
the server's heap, because the server makes an object of each row and copies the objects with the
plan. PySpark's cache of local relations is no alternative: the server keeps it until the session
ends.
"""

import shutil
import threading
import weakref
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.connect.plan import LogicalPlan
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..spelling import path_to_read

_SUPPORTED: Final = (
    *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal128),
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary),
    *(pa.types.is_date32, pa.types.is_timestamp),
)


class SentRows:
    """The files that a session has written for its server.

    A file is removed when the job that sent it has ended and no frame refers to it any more.
    """

    def __init__(self, folder: Path) -> None:
        """Use a folder that belongs to this session alone; the first `send` creates it."""
        self._folder = folder
        self._serial = count()
        self._sent = threading.local()
        """For each thread the plans over the files that its current job has sent."""

    def send(
        self, table: pa.Table, parts: int, read: Callable[[str, StructType], LogicalPlan]
    ) -> LogicalPlan:
        """Write a table as `parts` row groups, and return `read` of its path and schema.

        Raises `OSError`.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{next(self._serial)}.parquet"
        rows = max(1, -(-table.num_rows // parts))
        pq.write_table(table, path, row_group_size=rows, compression="lz4")
        schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
        plan = read(path_to_read(path), schema)
        weakref.finalize(plan, path.unlink, missing_ok=True)
        self._of_this_job().append(plan)
        return plan

    def end_job(self) -> None:
        """Release the files that this thread's job has sent."""
        self._of_this_job().clear()

    def close(self) -> None:
        """Remove all files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _of_this_job(self) -> list[LogicalPlan]:
        plans: list[LogicalPlan] = self._sent.__dict__.setdefault("plans", [])
        return plans


def fits_a_file(schema: pa.Schema) -> bool:
    """Tell whether Spark reads all columns unchanged from a parquet file, by distinct names."""
    is_plain = len({name.lower() for name in schema.names}) == len(schema.names)
    return is_plain and all(map(_is_supported, schema.types))


def _is_supported(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        fields = [kind.field(number).type for number in range(kind.num_fields)]
        return bool(fields) and all(map(_is_supported, fields))
    if pa.types.is_map(kind):
        return _is_supported(kind.key_type) and _is_supported(kind.item_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _is_supported(kind.value_type)
    return any(is_it(kind) for is_it in _SUPPORTED)
