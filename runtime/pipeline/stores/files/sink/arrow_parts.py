# pyright: basic, reportAttributeAccessIssue=false
"""Writes the parts of a batch with Arrow: in tasks of Spark, or a table in this process.

The files are those that Spark writes with the settings in `writing`. A task of Spark may be run
again, and a former attempt may leave a file behind, or write one later. So tasks write to a folder
of their own, and the parts whose names they return are moved from there to the batch.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as papq

from ....engines.executors.arrow_job import OtherPython, Work, forbid_arrow, run_job
from ....spi.rows import ArrowSchema, ArrowTable, PartedRows, Unproved
from ..sink_folder.staging import ATTEMPTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROW_GROUP: Final = 64 << 20
"""The bytes of a row group in memory, about."""
_READ, _WRITTEN = "read", "written"
"""What failed in a task."""


class WrittenPart(NamedTuple):
    """A file that a task has written, and synced."""

    name: str
    rows: int
    bytes: int


def write_parts(
    spark: "SparkSession",
    rows: PartedRows,
    schema: ArrowSchema,
    count: int,
    folder: Path,
    first: int = 0,
) -> list[WrittenPart]:
    """Write rows in up to `count` parts to an existing folder, each in a task of one Spark job.

    The files have the columns of `schema`, and numbers from `first` on. Raises `Unproved` if the
    rows could not be read so, and `OSError` if they could not be written.
    """
    attempts = folder / ATTEMPTS
    attempts.mkdir(exist_ok=True)
    works = [
        partial(write_part, each, number, str(attempts), schema)
        for number, each in enumerate(rows.parts(count), first)
    ]
    written: list[WrittenPart] = []
    for failed, text, number, size in _run(spark, works):
        if failed == _READ:
            raise Unproved(text)
        if failed == _WRITTEN:
            raise OSError(number, os.strerror(number), text) if number else OSError(text)
        written.append(WrittenPart(text, number, size))
    for each in written:
        with suppress(FileNotFoundError):  # what is not there, the sink misses
            (attempts / each.name).rename(folder / each.name)
    shutil.rmtree(attempts, ignore_errors=True)
    return written


def _run(spark: "SparkSession", works: Sequence[Work]) -> list[list[Any]]:
    try:
        return run_job(spark, works)
    except OtherPython as other:
        forbid_arrow(spark, str(other))
        raise Unproved(str(other)) from other


def write_table(
    table: ArrowTable, schema: ArrowSchema, count: int, folder: Path, first: int = 0
) -> list[WrittenPart]:
    """Write a table in up to `count` parts to an existing folder; raises `OSError`.

    The files have numbers from `first` on.
    """
    rows = max(1, -(-table.num_rows // count))
    written: list[WrittenPart] = []
    for part, start in enumerate(range(0, table.num_rows, rows), first):
        read = partial(iter, [cast("Any", table).slice(start, rows)])
        failed, text, number, size = write_part(read, part, str(folder), schema)
        if failed:
            raise OSError(number, os.strerror(number), text) if number else OSError(text)
        written.append(WrittenPart(text, number, size))
    return written


def write_part(
    read: Callable[[], Iterator[Any]], number: int, folder: str, schema: ArrowSchema
) -> tuple[str, str, int, int]:
    """Write what `read` yields to a file; needs Arrow alone, since it runs on executors.

    Returns an empty text, the file's name, its rows and its bytes; or what failed, why or where,
    and the error number.
    """
    name = f"part-{number:05d}-{uuid4()}-c000.snappy.parquet"
    path = f"{folder}/{name}"
    rows = 0
    tables = read()
    try:
        with papq.ParquetWriter(
            path,
            schema,
            compression="snappy",
            store_decimal_as_integer=True,
            store_schema=False,
        ) as writer:
            held: list[Any] = []
            while True:
                try:
                    table = next(tables, None)
                except (pa.ArrowException, OSError) as error:
                    return _READ, f"{type(error).__name__}: {error}"[:500], 0, 0
                if not Path(path).exists():  # the batch was given up, and its folder removed
                    return _WRITTEN, path, errno.ENOENT, 0
                if table is not None:
                    held.append(aligned(table, schema))
                    rows += table.num_rows
                if held and (table is None or sum(each.nbytes for each in held) >= _ROW_GROUP):
                    whole = pa.concat_tables(held)
                    writer.write_table(whole, row_group_size=whole.num_rows or None)
                    held = []
                if table is None:
                    break
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
            size = os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
    except OSError as error:
        return _WRITTEN, path if error.errno else str(error), error.errno or 0, 0
    return "", name, rows, size


def aligned(table: pa.Table, schema: ArrowSchema) -> pa.Table:
    """Return rows with the columns of a schema, which may be more, or wider."""
    if table.schema == schema:
        return table
    names = {name.lower(): name for name in table.schema.names}
    columns = [
        table.column(names[field.name.lower()]).cast(field.type)
        if field.name.lower() in names
        else pa.nulls(table.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
