# pyright: basic, reportAttributeAccessIssue=false
"""Merges the columns of several files whose types were inferred."""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from .json_columns import merge_columns

_LONG: Final = b"long"
"""Metadata key of a column with integers that lose digits as a DOUBLE."""
_MOST_EXACT: Final = 1 << 53


def mark_long(name: str, kind: pa.DataType, values: pa.ChunkedArray) -> pa.Field:
    """Return a column, marked if it has integers of more digits than a DOUBLE keeps."""
    ends = pc.min_max(values).as_py().values() if kind == pa.int64() == values.type else ()
    is_long = any(each is not None and abs(each) > _MOST_EXACT for each in ends)
    return pa.field(name, kind, metadata={_LONG: b""} if is_long else None)


def spelt_alike(known: pa.Schema | None, found: pa.Schema | None) -> pa.Schema | None:
    """Return found columns with the names of known ones, from which they differ in case only."""
    if known is None or found is None:
        return found
    spelt = {name.lower(): name for name in known.names}
    return pa.schema([each.with_name(spelt.get(each.name.lower(), each.name)) for each in found])


def merge_schemas(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    """Return the columns of both; integers and fractions become STRING if DOUBLE loses digits."""
    long = {each.name for each in (*known, *found) if _LONG in (each.metadata or {})}
    mixed = {each for each in long if {pa.int64(), pa.float64()} == _types_of(each, known, found)}
    both = [
        pa.schema([each.with_type(pa.string()) if each.name in mixed else each for each in schema])
        for schema in (known, found)
    ]
    merged = _united(*both)
    marked = [each.with_metadata({_LONG: b""}) if each.name in long else each for each in merged]
    return pa.schema(marked)


def _types_of(name: str, *schemas: pa.Schema) -> set[pa.DataType]:
    return {schema.field(name).type for schema in schemas if name in schema.names}


def _united(known: pa.Schema, found: pa.Schema) -> pa.Schema:
    try:
        return pa.unify_schemas([known, found], promote_options="permissive")
    except pa.ArrowException:
        return merge_columns(known, found)
