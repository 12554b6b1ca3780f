# pyright: basic
"""The rows of a worker on their way to a server: as files of a folder that both see.

A few rows go within the plan of a query. More of them would take a hundred times their size of a
server's heap, since it makes an object of each and copies these with the plan; and what PySpark
would leave there beforehand, the server keeps until the session ends.
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

_PLAIN: Final = (
    *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal128),
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary),
    *(pa.types.is_date32, pa.types.is_timestamp),
)


class SentRows:
    """Files that a session has written for its server, each as long as somebody may read it.

    That is until the job that sent it is over, and nobody holds a frame over it any more.
    """

    def __init__(self, folder: Path) -> None:
        """Take a folder that is this session's alone; it is made with the first file."""
        self._folder = folder
        self._serial = count()
        self._sent = threading.local()
        """The plans over the files that a thread's job has sent."""

    def send(
        self, table: pa.Table, parts: int, read: Callable[[str, StructType], LogicalPlan]
    ) -> LogicalPlan:
        """Write a table, for so many tasks, and return what `read` makes of its path and schema.

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
        """Let go of what the job of this thread has sent."""
        self._of_this_job().clear()

    def close(self) -> None:
        """Remove all files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _of_this_job(self) -> list[LogicalPlan]:
        plans: list[LogicalPlan] = self._sent.__dict__.setdefault("plans", [])
        return plans


def fits_a_file(schema: pa.Schema) -> bool:
    """Tell whether Spark reads all columns from a file as they are, each by its name."""
    is_plain = len({name.lower() for name in schema.names}) == len(schema.names)
    return is_plain and all(map(_fits, schema.types))


def _fits(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        fields = [kind.field(number).type for number in range(kind.num_fields)]
        return bool(fields) and all(map(_fits, fields))
    if pa.types.is_map(kind):
        return _fits(kind.key_type) and _fits(kind.item_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _fits(kind.value_type)
    return any(is_it(kind) for is_it in _PLAIN)
