"""Validation and seek of the offsets of tables and snapshot chunks."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from .......events.commits import Document
from .....spi.config import ParsedConfig
from .....spi.errors import OffsetRefused
from .....spi.offsets import (
    Offsets,
    PartitionOffset,
    Seek,
    SeekEnd,
    check_members,
    seek_from_the_beginning,
)
from .. import keys
from ..catalog import FoundTable, TableFilter, TableShape
from ..columns import TypeMapping
from ..cursors import TimeCursor, cursor_of
from ..session import DatabaseSnapshot
from ..windows import TablePosition

_CHUNK: Final = {"horizon": int, "file": int}
_WHOLE: Final[Mapping[str, type]] = {"horizon": int}
_MORE: Final[Mapping[str, type]] = {
    "until": int,
    "at": str,
    "whole": bool,
    "begin": int,
    "file": int,
    "oid": int,
    "timeline": int,
}


def check(config: Mapping[str, str], partition: Document, offset: Document | None) -> None:
    """Raise `OffsetRefused` for an invalid offset of a table or a chunk."""
    if "chunk" in partition:
        check_members("partition", partition, {"table": str, "chunk": int})
        if offset is not None:
            rest = {"done": bool} if "done" in offset else {"page": int}
            oid = {"oid": int} if "oid" in offset else {}
            check_members("offset", offset, {**_CHUNK, **rest, **oid})
        return
    check_members("partition", partition, {"table": str})
    if offset is None:
        return
    mode = config.get(keys.MODE)
    kind = int if mode == keys.INCREMENT else str
    has_cursor = mode not in {keys.XMIN, keys.BULK}
    given = {name: _MORE[name] for name in offset if name in _MORE}
    cursors = {name: kind for name in ("cursor", "highest") if has_cursor and name in offset}
    check_members("offset", offset, {**_WHOLE, **given, **cursors})
    if has_cursor and kind is str:
        _check_time(offset.get("cursor"))


def seek(snapshot: DatabaseSnapshot, settings: ParsedConfig, to: Seek, offsets: Offsets) -> Offsets:
    """Return the offsets of all tables for a position; raises `OffsetRefused`."""
    if to is SeekEnd.EARLIEST:
        return seek_from_the_beginning(to, offsets)
    tables = TableFilter.of(settings).find(snapshot)
    followed = [{"table": each.name.key} for each in tables]
    gone = [PartitionOffset(each.partition, None) for each in offsets if "chunk" in each.partition]
    places = [_place(snapshot, settings, each, to) for each in tables]
    return [
        *gone,
        *(PartitionOffset(at, place.document) for at, place in zip(followed, places, strict=True)),
    ]


def _place(
    snapshot: DatabaseSnapshot, settings: ParsedConfig, table: FoundTable, to: Seek
) -> TablePosition:
    shape = TableShape.read(snapshot, table.name, TypeMapping.of(settings))
    cursor = cursor_of(settings, table.name, shape)
    if to is SeekEnd.LATEST:
        highest = cursor.highest_in(snapshot, table.name)
        seen = snapshot.horizon()
        place = TablePosition.at_horizon(seen.lo, highest, None, table.oid)
        return place._replace(timeline=seen.timeline)
    if not isinstance(cursor, TimeCursor) or not isinstance(to, datetime):
        raise OffsetRefused(
            f"to: only {keys.MODE}={keys.STAMPED} and {keys.BOTH} know times: give an end"
        )
    since = to.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00")
    return TablePosition.at_horizon(0, since, None, table.oid)


def _check_time(value: object) -> None:
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise OffsetRefused(
                f"offset.cursor must be a time, 2026-01-31 12:00:00+00, not {value!r}"
            ) from None
