"""Reads the output of Spark without Spark: directories of files, with `column=value` in paths.

Names that begin with `_` or `.` are ignored, as in Spark: staging, markers, checksums. All other
files must be complete; invalid ones are reported, not skipped.
"""
# pyright: basic

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import csv, json, parquet

Format = Literal["parquet", "csv", "json"]

_NULL_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"
_LINES = "the last line has no end: the file was cut short"


@dataclass(frozen=True, slots=True, eq=False)
class OutputRows:
    """The rows of all readable files, and the unreadable files."""

    rows: pa.Table
    unreadable: tuple[str, ...]
    """The unreadable files, each by its path below the output, with its error."""


def visible_files(root: Path) -> Iterator[Path]:
    """Yield every file below `root` that Spark would read as output."""
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not _hidden(name))
        yield from (Path(directory, name) for name in sorted(files) if not _hidden(name))


def read_output(root: Path, schema: pa.Schema, file_format: Format = "parquet") -> OutputRows:
    """Return the columns of `schema` from all visible files below `root`, cast to its types.

    A column may be in the files or in their paths. CSV needs a header; empty and `NA` are null.
    """
    empty = schema.empty_table()
    read = [_attempt(root, path, schema, file_format) for path in visible_files(root)]
    return OutputRows(
        pa.concat_tables([empty, *(part for part in read if isinstance(part, pa.Table))]),
        unreadable=tuple(part for part in read if isinstance(part, str)),
    )


def _hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _attempt(root: Path, path: Path, schema: pa.Schema, file_format: Format) -> pa.Table | str:
    within = path.relative_to(root)
    try:
        _refuse_foreign(path, file_format)
        return _read(path, _partition(within), schema, file_format)
    except (OSError, ValueError, pa.ArrowException) as error:
        return f"{within}: {_reason(error)}"


def _read(
    path: Path, partition: dict[str, str | None], schema: pa.Schema, file_format: Format
) -> pa.Table:
    inside = pa.schema([field for field in schema if field.name not in partition])
    table = _READERS[file_format](path, inside)
    for name, value in partition.items():
        if name in schema.names:
            column = pa.repeat(pa.scalar(value, pa.string()), table.num_rows)
            table = table.append_column(name, column)
    table = table.select(schema.names)
    return table if table.schema.types == schema.types else table.cast(schema)


def _read_parquet(path: Path, schema: pa.Schema) -> pa.Table:
    # An output is thousands of small files: threads and read-ahead cost more than they save.
    with path.open("rb") as opened, parquet.ParquetFile(opened, pre_buffer=False) as file:
        _refuse_lack(schema, file.schema_arrow.names)
        return file.read(schema.names, use_threads=False)


def _read_csv(path: Path, schema: pa.Schema) -> pa.Table:
    _refuse_cut(path)
    texts = {field.name: field.type for field in schema if pa.types.is_string(field.type)}
    options = csv.ConvertOptions(
        column_types=texts, null_values=["", "NA"], strings_can_be_null=True
    )
    table = csv.read_csv(path, convert_options=options)
    _refuse_lack(schema, table.column_names)
    return table.select(schema.names)


def _read_json(path: Path, schema: pa.Schema) -> pa.Table:
    _refuse_cut(path)
    if path.stat().st_size == 0:
        return schema.empty_table()
    # The types are given, since a field that is null in all rows of a file is not in that file.
    options = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return json.read_json(path, parse_options=options)


_READERS: Final[dict[Format, Callable[[Path, pa.Schema], pa.Table]]] = {
    "parquet": _read_parquet,
    "csv": _read_csv,
    "json": _read_json,
}


def _partition(within: Path) -> dict[str, str | None]:
    pairs = (part.split("=", 1) for part in within.parts[:-1] if "=" in part)
    return {
        unquote(name): None if value == _NULL_PARTITION else unquote(value) for name, value in pairs
    }


def _refuse_foreign(path: Path, file_format: Format) -> None:
    if path.suffix != f".{file_format}":
        raise ValueError(f"a visible file that is not named as {file_format}")


def _refuse_lack(schema: pa.Schema, names: list[str]) -> None:
    lacking = [name for name in schema.names if name not in names]
    if lacking:
        raise ValueError(f"has no column {', '.join(lacking)}")


def _refuse_cut(path: Path) -> None:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            raise ValueError(_LINES)


def _reason(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
