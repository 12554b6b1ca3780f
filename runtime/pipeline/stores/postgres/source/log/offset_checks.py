# pyright: basic
"""Validation and seek of offsets in mode log: of a slot, a table, or a snapshot chunk."""

from collections.abc import Callable
from typing import Any, Final

from .......events.commits import Document, Lag
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
from ...tables.catalog import TableFilter
from ...tables.session import ReadSession
from ...tables.snapshots import LogSnapshot
from .changes.positions import Position, slot_partition, table_partition
from .server.slot import READ_AGAIN, Slot

_CHUNK: Final = {"slot": str, "table": str, "chunk": int}
_STATE: Final = {"horizon": int, "file": int, "snapshot": str}


def check(partition: Document, offset: Document | None) -> None:
    """Raise `OffsetRefused` for an offset that a task in mode log could not resume from."""
    if "chunk" in partition:
        check_members("partition", partition, _CHUNK)
        if offset is not None:
            rest = {"done": bool} if "done" in offset else {"page": int}
            oid = {"oid": int} if "oid" in offset else {}
            check_members("offset", offset, {**_STATE, **rest, **oid})
            _parsed("snapshot", "740:745:741@0/16B3748", LogSnapshot.parse, offset["snapshot"])
        return
    kinds: dict[str, type] = {"slot": str, "table": str}
    check_members(
        "partition",
        partition,
        {each: kinds[each] for each in kinds if each == "slot" or each in partition},
    )
    if offset is None:
        return
    more: dict[str, type] = {"seq": int, "whole": bool, "oid": int}
    check_members(
        "offset", offset, {"lsn": str, **{each: more[each] for each in more if each in offset}}
    )
    _parsed("lsn", "0/16B3748", lambda _: Position.parse(offset), offset["lsn"])


def seek(
    session: ReadSession, slot: Slot, tables: TableFilter, to: Seek, offsets: Offsets
) -> Offsets:
    """Return the offsets for an end of the WAL; raises `OffsetRefused` for a time."""
    if to is SeekEnd.EARLIEST:
        return seek_from_the_beginning(to, offsets)
    if to is not SeekEnd.LATEST:
        raise OffsetRefused("to: the log can be read from an end of it, not from a time")
    with session.snapshot() as snapshot:
        matching = tables.find(snapshot)
    with session.server.connect() as connection:
        state = slot.read_state(connection)
    if state is None or state.is_lost:
        raise OffsetRefused(f"to: the slot {slot.name} is not there. {READ_AGAIN}")
    end = Position(state.written).document
    gone = [each for each in offsets if "chunk" in each.partition]
    return [
        *(PartitionOffset(each.partition, None) for each in gone),
        PartitionOffset(slot_partition(slot.name), end),
        *(
            PartitionOffset(
                table_partition(slot.name, each.name.key),
                {**end, "whole": True, "oid": each.oid},
            )
            for each in matching
        ),
    ]


def lag(server: Server, slot: Slot, known: Offsets) -> Lag | None:
    """Return the bytes from a slot's offset to the end of the WAL; None if either is unknown."""
    own = slot_partition(slot.name)
    begin = next((offset for partition, offset in known if partition == own), None)
    if begin is None:  # its snapshot is not read
        return None
    with server.connect() as connection:
        state = slot.read_state(connection)
    if state is None or state.is_lost:
        return None
    left = max(0, state.written - Position.parse(begin).lsn)
    return Lag(min(left, 1), left)


def _parsed(name: str, example: str, parse: Callable[[Any], object], value: object) -> None:
    try:
        parse(value)
    except ValueError:
        raise OffsetRefused(f"offset.{name} must be like {example}, not {value!r}") from None
