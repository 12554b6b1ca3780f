# pyright: basic
"""Finds columns whose names differ in case only, which Spark cannot tell apart."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

Twins = tuple[str, str]
"""Two columns by their paths, the earlier one first."""
_WORD: Final = re.compile(r"`(?:[^`]|``)+`|\w+")


def find_twins(schema: StructType, beside: Iterable[str] = ()) -> Twins | None:
    """Return the first two columns, at any depth, that have the same name but for its case.

    `beside` are columns that rows have before those of the schema.
    """
    return next(_twins(schema, "", beside), None)


def flaw_of_twins(twins: Twins) -> str:
    """Return the words for such columns before a sink that ignores case."""
    return (
        f"columns `{twins[0]}` and `{twins[1]}` differ in case only, and the sink cannot have "
        "both: rename one of them by a transform, or leave it out"
    )


def may_have_twins(ddl: str) -> bool:
    """Tell, without Spark, whether a schema in DDL may have such columns; types count as well."""
    words = {each.strip("`") for each in _WORD.findall(ddl)}
    return len({each.lower() for each in words}) < len(words)


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
