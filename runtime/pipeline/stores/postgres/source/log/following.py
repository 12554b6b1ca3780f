"""The tables whose changes the log reader reads: their snapshots, and where each of them is.

The log is read after the snapshots of its tables, as its changes are later. The snapshot of a table
that comes when others are read is later than a part of the log: its rows may have been in those
tables before, and the log may tell that they were deleted there. So that part of the log comes
first, and then the table is *opened* by an offset of its own. Its snapshot is read only then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .......events.commits import Document, identity
from ...names import TableName
from ...tables.chunks import ChunkState
from ...tables.shares import TableShare
from ...tables.snapshots import LogSnapshot, parse_lsn, whole_xid
from .changes.pgoutput import Change
from .changes.positions import Position, slot_partition, table_partition
from .changes.shares import FollowedTable, LogShare
from .renewal import CountingOffsets


@dataclass(frozen=True)
class Following:
    """A table, its snapshot, and the position up to which its changes are read."""

    table: FollowedTable
    snapshot: LogSnapshot | None
    """None: there is no snapshot, and all changes are read."""
    place: Position
    is_held: bool = False
    """Whether its snapshot must be read before changes that the snapshot does not have."""

    def wants(self, change: Change, next_xid: int) -> bool:
        """Return whether a change is neither read nor in the snapshot."""
        if change.position <= self.place:
            return False
        seen = self.snapshot
        return seen is None or not seen.sees(whole_xid(change.xid, next_xid))


class FollowedTables:
    """The tables of a share of the log, by their offsets."""

    def __init__(self, share: LogShare, slot: str, counting: CountingOffsets) -> None:
        self.share = share
        self.siblings = share.siblings
        """The tables of each topic."""
        self._slot = slot
        self._counting = counting
        self._snapshots: dict[TableName, LogSnapshot | None] = {}
        """The snapshot of each table."""
        self.closed: Sequence[FollowedTable] = ()
        """The tables that wait until the log is read up to their snapshots."""
        self._is_read = False
        """Whether all snapshots are read."""

    def wait(self) -> str:
        """Return what the log waits for; empty: the snapshots of open tables are published."""
        if self._is_read:
            return ""
        logged, closed = self._counting.settled(), list[FollowedTable]()
        for table in self.share.tables:
            is_read, snapshot = self._snapshot(logged, table)
            self._snapshots[table.name] = snapshot
            if not is_read and is_open(table, self._slot, logged):
                return f"the log waits until the snapshot of {table.name} is read"
            if not is_read:
                closed.append(table)
        self.closed, self._is_read = closed, not closed
        return ""

    def due(self, place: Position, held: TableName | None = None) -> Sequence[FollowedTable]:
        """Return the tables to open at a place; if one is held there, those of the next snapshot.

        Changes that a table's snapshot lacks are later than what it has, so no more is to come.
        """
        first = min((parse_lsn(each.until) for each in self.closed), default=0)
        reached = max(place.lsn, first if held in {each.name for each in self.closed} else 0)
        return [each for each in self.closed if parse_lsn(each.until) <= reached]

    def place(self, offsets: Mapping[str, Document]) -> Position:
        """Return where the log is to be read from."""
        offset = offsets.get(identity(slot_partition(self._slot)))
        if offset is not None:
            return Position.parse(offset)
        begun = [each.lsn for each in self._snapshots.values() if each is not None]
        return Position(min(begun, default=parse_lsn(self.share.begin)))

    def following(self, offsets: Mapping[str, Document]) -> Mapping[TableName, Following]:
        """Return the tables with their positions."""
        positions: dict[TableName, Following] = {}
        held = {each.name for each in self.closed}
        for table in self.share.tables:
            offset = offsets.get(identity(table_partition(self._slot, table.name.key)))
            place = Position.parse(offset) if offset else Position(0)
            snapshot = self._snapshots.get(table.name)
            positions[table.name] = Following(table, snapshot, place, table.name in held)
        return positions

    def _snapshot(
        self, logged: Mapping[str, Document], table: FollowedTable
    ) -> tuple[bool, LogSnapshot | None]:
        """Return whether a table's snapshot is published, and the snapshot."""
        begun, partition = table.begun, table_partition(self._slot, table.name.key)
        if _is_whole(logged.get(identity(partition))):
            return True, None
        for number in range(table.chunks):
            offset = logged.get(identity({**partition, "chunk": number}))
            state = ChunkState.parse(offset) if offset else None
            begun = LogSnapshot.parse(state.snapshot) if state and state.snapshot else begun
            if state is None or not state.is_done:
                return False, begun
        return True, begun


def is_open(table: FollowedTable | TableShare, slot: str, logged: Mapping[str, Document]) -> bool:
    """Return whether the snapshot of a table may be read."""
    partition = table_partition(slot, table.name.key)
    offset = logged.get(identity(partition))
    if not table.until or _is_whole(offset):
        return True
    if any(identity({**partition, "chunk": at}) in logged for at in range(table.chunks)):
        return True
    begun = LogSnapshot.parse(table.snapshot)
    return offset is not None and Position.parse(offset).lsn >= begun.lsn


def opened(table: FollowedTable, place: Position) -> Position:
    """Return the position by which a table is opened: it has no changes up to there."""
    return max(place, Position(LogSnapshot.parse(table.snapshot).lsn))


def _is_whole(offset: Document | None) -> bool:
    """Return whether a user has set the position of a table, so that its snapshot is skipped."""
    return bool(offset and offset.get("whole"))
