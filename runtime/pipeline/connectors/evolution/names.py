# pyright: basic
"""Finds columns whose names differ in case only, which Spark cannot tell apart."""

from collections.abc import Iterable, Iterator

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

Twins = tuple[str, str]
"""Two columns by their paths, the earlier one first."""


def find_twins(schema: StructType, beside: Iterable[str] = ()) -> Twins | None:
    """Return the first two columns, at any depth, that have the same name but for its case.

    `beside` are columns that rows have before those of the schema.
    """
    return next(_twins(schema, "", beside), None)


def _twins(kind: DataType, path: str, beside: Iterable[str] = ()) -> Iterator[Twins]:
    if isinstance(kind, ArrayType):
        yield from _twins(kind.elementType, path)
    elif isinstance(kind, MapType):
        yield from _twins(kind.valueType, path)
    elif isinstance(kind, StructType):
        known = {each.lower(): each for each in beside}
        for field in kind.fields:
            column = path + field.name
            if (before := known.setdefault(field.name.lower(), column)) is not column:
                yield before, column
            yield from _twins(field.dataType, f"{column}.")
