# pyright: basic
"""The one schema of all files that a connector writes, since readers take a folder for one table.

The first batch sets the columns; each later file has all of them, in the same order. New columns
and wider types are refused, or with `sink.auto.evolve` added to the schema (`evolution.rules`).
"""

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructType,
)

from ......events.model import Resource
from ....batches.frames import arrow_schema_of
from ....engines.spelling import quoted
from ....formats.evolution.names import find_duplicates, flaw_of_duplicates
from ....formats.evolution.rules import Difference, unite_schemas
from ....spi.errors import SchemaRefused, SinkBroken
from ....spi.rows import ArrowSchema
from ...staging import escape_name, make_folder
from .. import keys
from ..sink_folder.root import SinkLocation
from ..sink_folder.staging import replace_durably

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS: Final = "_fairlead/columns"
_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
"""Types of whole numbers, the narrowest first."""
_NESTED: Final = (StructType, ArrayType, MapType)


def reconcile_columns(
    root: Path,
    place: SinkLocation,
    incoming: StructType,
    *,
    last: StructType | None = None,
    may_evolve: bool,
    folder: str = "",
) -> StructType:
    """Return the schema of all files, extended for rows of schema `incoming` if it may be.

    `last` is the last result for them. With a `folder` the files are those of that folder in the
    root. Concurrent tasks are serialised by a lock. Raises `SchemaRefused`.
    """
    shown = place.root / folder
    parts = (place.connector, folder) if folder else (place.connector,)
    file = "/".join(escape_name(Resource(each)) for each in parts)
    path = root / COLUMNS / f"{file}.json"
    recorded = _read(path, place.root / COLUMNS / f"{file}.json")
    if recorded is not None and recorded in (incoming, last):
        return recorded
    if duplicates := find_duplicates(incoming):
        raise SchemaRefused(flaw_of_duplicates(duplicates))
    make_folder(path.parent)
    with _locked(path.parent):
        recorded = _read(path, place.root / COLUMNS / f"{file}.json")
        if recorded is None:
            replace_durably(path, incoming.jsonValue())
            return incoming
        union = unite_schemas(recorded, incoming)
        _refuse(shown, union.differences, may_evolve=may_evolve)
        if union.differences:
            replace_durably(path, union.schema.jsonValue())
        return union.schema if union.differences else recorded


def align_columns(frame: "DataFrame", incoming: StructType, columns: StructType) -> "DataFrame":
    """Return rows with the columns that all files have, in their order."""
    if are_aligned(incoming, columns):
        return frame
    theirs = {each.name.lower(): each for each in incoming.fields}
    aligned = []
    for each in columns.fields:
        there = theirs.get(each.name.lower())
        if there is None:
            column = sf.lit(None).cast(each.dataType)
        else:
            column = frame[quoted(there.name)]
            if not _is_as(there.dataType, each.dataType):
                column = column.cast(each.dataType)
        aligned.append(column.alias(each.name))
    return frame.select(*aligned)


def columns_by_arrow(incoming: StructType, columns: StructType) -> ArrowSchema | None:
    """Return the columns of all files, if Arrow casts rows to them as Spark does; None: it may not.

    What the rows lack is null.
    """
    theirs = {each.name.lower(): each.dataType for each in incoming.fields}
    pairs = [(theirs.get(each.name.lower()), each.dataType) for each in columns.fields]
    is_alike = all(one is None or one == each or _widens_alike(one, each) for one, each in pairs)
    return arrow_schema_of(columns) if is_alike else None


def _widens_alike(one: object, other: object) -> bool:
    """Return whether Arrow and Spark cast all values of a type alike, and without loss."""
    kinds = type(one), type(other)
    is_whole = all(each in _WHOLE for each in kinds)
    is_wider = is_whole and _WHOLE.index(kinds[0]) < _WHOLE.index(kinds[1])
    return is_wider or kinds == (FloatType, DoubleType)


def are_aligned(incoming: StructType, columns: StructType) -> bool:
    """Return whether rows have the columns of all files already."""
    pairs = zip(incoming.fields, columns.fields, strict=False)
    is_same = incoming.names == columns.names
    return is_same and all(_is_as(one.dataType, each.dataType) for one, each in pairs)


def _is_as(found: object, known: object) -> bool:
    """Return whether a column needs no cast; nested columns are not cast."""
    return found == known or isinstance(known, _NESTED)


def _refuse(shown: Path, differences: tuple[Difference, ...], *, may_evolve: bool) -> None:
    """Raise `SchemaRefused` if the schema of the files must not change so."""
    incompatible = [str(each) for each in differences if each.wider is None]
    if incompatible:
        raise SchemaRefused(
            f"{shown} was written with other types: column {', '.join(incompatible)}. No type "
            f"holds the values of both: cast it by a transform, or set another {keys.SINK_PATH}"
        )
    if differences and not may_evolve:
        new = ", ".join(str(each) for each in differences if each.is_new)
        wide = ", ".join(str(each) for each in differences if not each.is_new)
        reasons = (f"no column {new}" if new else "", f"a narrower column {wide}" if wide else "")
        raise SchemaRefused(
            f"the files in {shown} have {' and '.join(filter(None, reasons))}: set "
            f"{keys.SINK_AUTO_EVOLVE}=true, remove it by a transform, or set another "
            f"{keys.SINK_PATH}"
        )


def _read(path: Path, shown: Path) -> StructType | None:
    try:
        return StructType.fromJson(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise SinkBroken(
            f"{shown} is corrupt: remove it, and the next batch sets the columns again"
        ) from None


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
