# pyright: basic
"""The columns of the files that a connector writes: one schema for all of them.

Readers take a folder for one table. So the first batch makes its columns, later ones are held
against them, and each file has all of them, in their order. What is not among them is refused, or
added and widened where `sink.auto.evolve` says so, by the rules that hold for sources and tables.
"""

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, MapType, StructType

from ......events.model import Resource
from ....spark.spelling import quoted
from ....spi.errors import SchemaRefused, SinkBroken
from ...evolution.rules import Difference, unite_schemas
from .. import keys
from .root import SinkLocation
from .staging import escaped, make_folder, replace_durably

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS: Final = "_fairlead/columns"
_NESTED: Final = (StructType, ArrayType, MapType)


def fitted(
    root: Path,
    place: SinkLocation,
    found: StructType,
    *,
    last: StructType | None = None,
    may_evolve: bool,
) -> StructType:
    """Return the columns of all files, now that rows of a schema come; raises `SchemaRefused`.

    `last` is what was returned for that schema last. Tasks that do it at once wait for each other.
    """
    shown = place.root
    path = root / COLUMNS / f"{escaped(Resource(place.connector))}.json"
    known = _read(path, shown)
    if known is not None and known in (found, last):
        return known
    make_folder(path.parent)
    with _locked(path.parent):
        known = _read(path, shown)
        if known is None:
            replace_durably(path, found.jsonValue())
            return found
        union = unite_schemas(known, found)
        _refuse(shown, union.differences, may_evolve=may_evolve)
        if union.differences:
            replace_durably(path, union.schema.jsonValue())
        return union.schema if union.differences else known


def aligned(frame: "DataFrame", found: StructType, columns: StructType) -> "DataFrame":
    """Return rows of a schema with the columns that all files have, in their order."""
    theirs = {each.name.lower(): each for each in found.fields}
    pairs = [(each, theirs.get(each.name.lower())) for each in columns.fields]
    is_same = [each.name for each in columns.fields] == [each.name for each in found.fields]
    if is_same and all(there and _is_as(there.dataType, each.dataType) for each, there in pairs):
        return frame
    made = []
    for each, there in pairs:
        if there is None:
            column = sf.lit(None).cast(each.dataType)
        else:
            column = frame[quoted(there.name)]
            if not _is_as(there.dataType, each.dataType):
                column = column.cast(each.dataType)
        made.append(column.alias(each.name))
    return frame.select(*made)


def _is_as(found: object, known: object) -> bool:
    """Tell whether values need no cast; what is nested stays as it is."""
    return found == known or isinstance(known, _NESTED)


def _refuse(shown: Path, found: tuple[Difference, ...], *, may_evolve: bool) -> None:
    """Raise unless files may take such differences in."""
    strange = [str(each) for each in found if each.wider is None]
    if strange:
        raise SchemaRefused(
            f"{shown} was written with other types: column {', '.join(strange)}. No type holds the "
            f"values of both: cast it by a transform, or name another {keys.SINK_PATH}"
        )
    if found and not may_evolve:
        new = ", ".join(str(each) for each in found if each.is_new)
        wide = ", ".join(str(each) for each in found if not each.is_new)
        told = (f"no column {new}" if new else "", f"a narrower column {wide}" if wide else "")
        raise SchemaRefused(
            f"the files in {shown} have {' and '.join(filter(None, told))}: set "
            f"{keys.SINK_AUTO_EVOLVE}=true, leave it out by a transform, or name another "
            f"{keys.SINK_PATH}"
        )


def _read(path: Path, shown: Path) -> StructType | None:
    try:
        return StructType.fromJson(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise SinkBroken(
            f"{shown}/{COLUMNS}/{path.name} is not readable as what fairlead writes there: remove "
            "it, and the next batch makes the columns anew"
        ) from None


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
