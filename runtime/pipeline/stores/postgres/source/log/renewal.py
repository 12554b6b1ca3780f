# pyright: basic
"""New snapshots after a lost slot, or of a replaced table: which offsets are still valid.

With `snapshot.mode=when_needed` a slot that was dropped, invalidated or advanced is created again,
and snapshots begin again. Older offsets refer to WAL that is gone; they stay in the offset log
until they change, but are ignored. So are the offsets of a table that was dropped and made anew.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .......events.commits import Document, identity
from .....spi.errors import NotReady
from .....spi.source import BatchPlan, Limit
from ...dotted import by_present_names, with_logged_starts
from ...tables.shares import TableShare
from ...tables.snapshots import LogSnapshot, parse_lsn
from .changes.positions import slot_partition
from .changes.shares import FollowedTable
from .server.slot import READ_AGAIN, SlotGone


@dataclass(frozen=True)
class CountingOffsets:
    """Filters the valid offsets of a connector, for its tasks."""

    since: str
    """Offsets from this LSN on are valid; empty: all."""
    tables: Sequence[FollowedTable | TableShare]
    """The tables, with their present oids and snapshots."""
    renews: bool
    """Whether the connector takes new snapshots by itself if the slot, or a table, is gone."""
    logged_as_settled: Callable[[], Mapping[str, Document]]
    """Reads the published offsets of all tasks from the offset log."""

    def settled(self) -> Mapping[str, Document]:
        """Return the published offsets that are valid."""
        return self._valid(self.logged_as_settled())

    def plan(
        self,
        fetch: Callable[[Mapping[str, Document], Limit], BatchPlan[pa.Table]],
        offsets: Mapping[str, Document],
        limit: Limit,
    ) -> BatchPlan[pa.Table]:
        """Plan from the valid offsets; advances start at the logged ones, valid or not.

        Raises `NotReady` if the slot is gone and the connector takes new snapshots.
        """
        try:
            plan = fetch(self._valid(offsets), limit)
        except SlotGone as gone:
            if not self.renews:
                raise
            told = str(gone).removesuffix(READ_AGAIN)
            raise NotReady(f"{told}The connector has the tables read again") from None
        return with_logged_starts(plan, offsets)

    def _valid(self, offsets: Mapping[str, Document]) -> Mapping[str, Document]:
        valid = by_present_names(offsets_since(offsets, self.since), self.tables)
        return offsets_of(valid, self.tables) if self.renews else valid


def offsets_of(
    offsets: Mapping[str, Document], tables: Sequence[FollowedTable | TableShare]
) -> Mapping[str, Document]:
    """Return the offsets without those of tables that had another oid.

    Offsets of earlier releases have no oid: those of chunks count if their snapshot is that of the
    table, those of a table that is read from its latest change unless it was made anew since.
    """
    present = {repr(each.name.key): each for each in tables}

    def is_of(partition: str, offset: Document) -> bool:
        table = present.get(partition.partition("table=")[2])
        if table is None or not table.oid:
            return True
        if table.until and offset.get("snapshot", table.snapshot) != table.snapshot:
            return False  # it was not followed for a time
        if "oid" in offset:
            return offset["oid"] == table.oid
        if offset.get("whole"):
            return not table.is_renewed
        return offset.get("snapshot", table.snapshot) == table.snapshot

    return {each: offset for each, offset in offsets.items() if is_of(each, offset)}


def offsets_since(offsets: Mapping[str, Document], since: str) -> Mapping[str, Document]:
    """Return the offsets from an LSN on; empty: all."""
    if not since:
        return offsets
    least = parse_lsn(since)
    return {each: offset for each, offset in offsets.items() if _lsn_of(offset) >= least}


def is_overtaken(offsets: Mapping[str, Document], slot: str, confirmed: int) -> bool:
    """Return whether a slot was advanced beyond the position that was read."""
    offset = offsets.get(identity(slot_partition(slot)))
    read = [offset] if offset else [each for each in offsets.values() if "snapshot" in each]
    return any(_lsn_of(each) < confirmed for each in read)


def _lsn_of(offset: Document) -> int:
    get: Any = offset.get
    snapshot = get("snapshot")
    return LogSnapshot.parse(snapshot).lsn if snapshot else parse_lsn(str(get("lsn")))
