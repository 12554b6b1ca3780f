# pyright: basic
"""Finding out a schema from a sample of all files, as Spark's DDL.

Done by the connector, once, without Spark; tasks are told the result. Every file is looked
at, because the one that has `NA` in a column of numbers may be any of them.
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.json as pajson
import pyarrow.parquet as papq

from .spi import BadInput

_LEAST_SAMPLE = 64 * 1024


@dataclass(frozen=True, slots=True)
class CsvStyle:
    """How a CSV is written, as far as its types hang on it."""

    header: bool
    separator: str
    quote: str
    nulls: tuple[str, ...]


def infer(fmt: str, files: Sequence[Path], style: CsvStyle, sample_bytes: int) -> str:
    """Return the schema that all files have in common, as DDL.

    `sample_bytes` is shared out evenly; of each file at least its first 64 KiB are read.
    Raises `BadInput` naming the file that does not fit.
    """
    share = max(_LEAST_SAMPLE, sample_bytes // max(1, len(files)))
    merged: pa.Schema | None = None
    for file in files:
        found = _schema(fmt, file, style, share)
        if found is None:
            continue
        merged = found if merged is None else _merge(merged, found, file, positional=fmt == "csv")
    if merged is None or not merged.names:
        raise BadInput(f"no row to infer a schema from in {len(files)} file(s)")
    return ddl(merged)


def ddl(schema: pa.Schema) -> str:
    """Return a schema as Spark's DDL."""
    return ", ".join(f"{_quoted(field.name)} {spark_type(field.type)}" for field in schema)


def spark_type(kind: pa.DataType) -> str:  # noqa: PLR0911  # one answer per kind of type
    """Return Spark's name of an Arrow type; what Spark has no type for is a STRING."""
    if pa.types.is_struct(kind):
        inner = ", ".join(f"{_quoted(field.name)}: {spark_type(field.type)}" for field in kind)
        return f"STRUCT<{inner}>"
    if pa.types.is_map(kind):
        return f"MAP<{spark_type(kind.key_type)}, {spark_type(kind.item_type)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return "TIMESTAMP_NTZ"
    return "TIMESTAMP" if pa.types.is_timestamp(kind) else _PLAIN.get(kind, "STRING")


_PLAIN = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.uint8(): "SMALLINT",
    pa.uint16(): "INT",
    pa.uint32(): "BIGINT",
    pa.uint64(): "DECIMAL(20, 0)",
    pa.float16(): "FLOAT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.date64(): "DATE",
    pa.binary(): "BINARY",
    pa.large_binary(): "BINARY",
}


def _schema(fmt: str, file: Path, style: CsvStyle, limit: int) -> pa.Schema | None:
    try:
        if fmt == "parquet":
            return _parquet_schema(file)
        sample = _head(file, limit)
        if not sample.strip():
            return None
        return _csv_schema(sample, style) if fmt == "csv" else _json_schema(sample, limit)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file}: no {fmt} that a schema can be inferred from: {error}") from error


def _head(file: Path, limit: int) -> bytes:
    """Return the file's first whole lines, decompressed if its name says so."""
    with pa.input_stream(str(file), compression="detect") as stream:
        data: bytes = stream.read(limit)
        more = bool(stream.read(1))
    return data[: data.rfind(b"\n") + 1] if more and b"\n" in data else data


def _csv_schema(sample: bytes, style: CsvStyle) -> pa.Schema:
    table = pacsv.read_csv(
        io.BytesIO(sample),
        read_options=pacsv.ReadOptions(
            autogenerate_column_names=not style.header, block_size=len(sample) + 1
        ),
        parse_options=pacsv.ParseOptions(
            delimiter=style.separator, quote_char=style.quote, newlines_in_values=True
        ),
        convert_options=pacsv.ConvertOptions(
            null_values=["", *style.nulls], strings_can_be_null=True
        ),
    )
    names = table.schema.names if style.header else [f"_c{i}" for i in range(table.num_columns)]
    # A time without a zone is an instant in the session's zone, as Spark's own inference has it.
    kinds = (_zoned(field.type) for field in table.schema)
    return pa.schema(list(zip(names, kinds, strict=True)))


def _json_schema(sample: bytes, limit: int) -> pa.Schema:
    options = pajson.ReadOptions(block_size=max(limit, len(sample)) + 1)
    schema = pajson.read_json(io.BytesIO(sample), read_options=options).schema
    return pa.schema([field.with_type(_timeless(field.type)) for field in schema])


def _parquet_schema(file: Path) -> pa.Schema:
    opened = papq.ParquetFile(file)
    physical = {
        opened.schema.column(i).path: opened.schema.column(i).physical_type
        for i in range(len(opened.schema))
    }
    # INT96 is how Spark writes instants; Arrow shows it without the zone that it implies.
    return pa.schema(
        [
            field.with_type(pa.timestamp("us", "UTC"))
            if physical.get(field.name) == "INT96"
            else field
            for field in opened.schema_arrow
        ]
    )


def _merge(known: pa.Schema, found: pa.Schema, file: Path, *, positional: bool) -> pa.Schema:
    if positional and known.names != found.names:
        raise BadInput(
            f"{file}: its columns are {_listed(found.names)}, those of the files before it "
            f"{_listed(known.names)}: give `source.schema`, or move it away"
        )
    try:
        return pa.unify_schemas([known, found], promote_options="permissive")
    except pa.ArrowException:
        return _merge_loosely(known, found)


def _merge_loosely(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    """Unite column by column; two types that nothing spans become a string."""
    merged = {field.name: field for field in known}
    for field in found:
        before = merged.get(field.name, field)
        try:
            pair = [pa.schema([before]), pa.schema([field])]
            merged[field.name] = pa.unify_schemas(pair, promote_options="permissive").field(0)
        except pa.ArrowException:
            merged[field.name] = pa.field(field.name, pa.string())
    return pa.schema(list(merged.values()))


def _zoned(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) else kind


def _timeless(kind: pa.DataType) -> pa.DataType:
    """Return a JSON type in which what Arrow takes for a time is the string that it is."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_timeless(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_timeless(kind.value_type))
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _listed(names: Iterable[str]) -> str:
    return "(" + ", ".join(names) + ")"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
