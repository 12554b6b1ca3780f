# pyright: basic
"""Validation and seek of a query's offsets, and the check of its config."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from pyspark.sql.pandas.types import from_arrow_schema

from .......events.commits import Document
from .....spi.config import ParsedConfig
from .....spi.context import ProbeResult, SourceColumns
from .....spi.errors import OffsetRefused
from .....spi.offsets import (
    Offsets,
    PartitionOffset,
    Seek,
    SeekEnd,
    check_members,
    seek_from_the_beginning,
)
from ...connecting import Server
from ...tables import keys
from .shape import QueryShape
from .source import PARTITION

_MEMBERS: Final[Mapping[str, Mapping[str, type]]] = {
    keys.STAMPED: {"timestamp": str},
    keys.INCREMENT: {"incrementing": int},
    keys.BOTH: {"timestamp": str, "incrementing": int},
}


def probe(server: Server, settings: ParsedConfig) -> ProbeResult:
    """Ask the server for the columns of the query; raises `ConfigInvalid`, `SourceAway`."""
    shape = QueryShape.read(server, settings)
    fields = from_arrow_schema(shape.schema).fields
    ddl = ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in fields)
    warnings = (shape.remark,) if shape.remark else ()
    return ProbeResult(warnings=warnings, columns=SourceColumns(ddl, keys.QUERY, may_grow=False))


def check(mode: str, partition: Document, offset: Document | None) -> None:
    """Raise `OffsetRefused` for an offset that the query could not resume from."""
    check_members("partition", partition, {"query": str})
    if offset is None:
        return
    done: dict[str, type] = {"done": bool} if "done" in offset else {}
    check_members("offset", offset, _MEMBERS.get(mode, {"rows": int, **done}))


def seek(mode: str, to: Seek, known: Offsets) -> Offsets:
    """Return the offset for a position; raises `OffsetRefused` if the query cannot seek to it."""
    if to is SeekEnd.EARLIEST:
        return seek_from_the_beginning(to, known)
    if mode != keys.STAMPED or not isinstance(to, datetime):
        raise OffsetRefused(
            f"to: a query is read from earliest, or with {keys.MODE}={keys.STAMPED} from a time"
        )
    since = to.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00")
    return [PartitionOffset(PARTITION, {"timestamp": since})]
