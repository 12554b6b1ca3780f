"""The tables whose changes the log reader reads: their snapshots, and where each of them is."""

from collections.abc import Mapping
from dataclasses import dataclass

from .......events.commits import Document, identity
from ...names import TableName
from ...tables.chunks import ChunkState
from ...tables.snapshots import LogSnapshot, parse_lsn, whole_xid
from .pgoutput import Change
from .positions import Position, slot_partition, table_partition
from .renewal import CountingOffsets
from .shares import FollowedTable, LogShare


@dataclass(frozen=True)
class Following:
    """A table, its snapshot, and the position up to which its changes are read."""

    table: FollowedTable
    snapshot: LogSnapshot | None
    """None: there is no snapshot, and all changes are read."""
    place: Position

    def wants(self, change: Change, next_xid: int) -> bool:
        """Tell whether a change is neither read nor in the snapshot."""
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
        self._snapshots: dict[TableName, LogSnapshot | None] | None = None
        """The snapshot of each table; None: not all snapshots are read."""

    def wait(self) -> str:
        """Return what the log waits for; empty: the whole snapshot is published."""
        if self._snapshots is not None:
            return ""
        logged, found = self._counting.settled(), dict[TableName, LogSnapshot | None]()
        for table in self.share.tables:
            begun = table.begun
            if self._is_whole(logged, table):
                found[table.name] = None
                continue
            for number in range(table.chunks):
                partition = table_partition(self._slot, str(table.name))
                offset = logged.get(identity({**partition, "chunk": number}))
                state = ChunkState.parse(offset) if offset else None
                if state is None or not state.is_done:
                    return f"the log waits until the snapshot of {table.name} is read"
                begun = LogSnapshot.parse(state.snapshot) if state.snapshot else begun
            found[table.name] = begun
        self._snapshots = found
        return ""

    def place(self, offsets: Mapping[str, Document]) -> Position:
        """Return where the log is to be read from."""
        offset = offsets.get(identity(slot_partition(self._slot)))
        if offset is not None:
            return Position.parse(offset)
        begun = [each.lsn for each in (self._snapshots or {}).values() if each is not None]
        return Position(min(begun, default=parse_lsn(self.share.begin)))

    def following(self, offsets: Mapping[str, Document]) -> Mapping[TableName, Following]:
        """Return the tables with their positions."""
        found: dict[TableName, Following] = {}
        for table in self.share.tables:
            offset = offsets.get(identity(table_partition(self._slot, str(table.name))))
            place = Position.parse(offset) if offset else Position(0)
            snapshot = (self._snapshots or {}).get(table.name)
            found[table.name] = Following(table, snapshot, place)
        return found

    def _is_whole(self, logged: Mapping[str, Document], table: FollowedTable) -> bool:
        """Tell whether a user has set the position of a table, so that its snapshot is skipped."""
        offset = logged.get(identity(table_partition(self._slot, str(table.name))))
        return bool(offset and offset.get("whole"))
