# pyright: basic
"""Finds columns whose names differ in case only, which Spark cannot tell apart."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

Duplicates = tuple[str, str]
"""Two columns by their paths, the earlier one first."""
_WORD: Final = re.compile(r"`(?:[^`]|``)+`|\w+")


def find_duplicates(schema: StructType, beside: Iterable[str] = ()) -> Duplicates | None:
    """Return the first two columns, at any depth, that have the same name but for its case.

    `beside` are columns that rows have before those of the schema.
    """
    return next(_duplicates(schema, "", beside), None)


def flaw_of_duplicates(duplicates: Duplicates) -> str:
    """Return the error of columns that differ in case only, for a sink that ignores case."""
    return (
        f"columns `{duplicates[0]}` and `{duplicates[1]}` differ in case only, and the sink cannot"
        " have both: rename one of them by a transform, or leave it out"
    )


def may_have_duplicates(ddl: str) -> bool:
    """Return, without Spark, whether names in a DDL may be equal but for case; types count too."""
    words = {each.strip("`") for each in _WORD.findall(ddl)}
    return len({each.lower() for each in words}) < len(words)


def _duplicates(kind: DataType, path: str, beside: Iterable[str] = ()) -> Iterator[Duplicates]:
    if isinstance(kind, ArrayType):
        yield from _duplicates(kind.elementType, path)
    elif isinstance(kind, MapType):
        yield from _duplicates(kind.valueType, path)
    elif isinstance(kind, StructType):
        known = {each.lower(): each for each in beside}
        for field in kind.fields:
            column = path + field.name
            if (before := known.setdefault(field.name.lower(), column)) is not column:
                yield before, column
            yield from _duplicates(field.dataType, f"{column}.")
