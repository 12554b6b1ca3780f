"""The remarks in the status of the task that reads the log."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ...names import TableName
from ...tables.remarks import CatalogRemarks
from ...tables.session import ReadSession, TableChanged
from .server.slot import SlotState

_REREAD_TOLD: Final = 1 << 28
"""How much WAL each peek may read again before a remark."""
_MEBIBYTE: Final = 1 << 20


@dataclass
class LogRemarks:
    """The remarks about the slot, about changes that were left out, and about tables."""

    slot: str
    """The name of the slot."""
    catalog: CatalogRemarks | None
    left_out: int = 0
    """The number of updates that were left out."""
    emptied: frozenset[TableName] = frozenset()
    """The tables whose TRUNCATE was left out."""
    _of_slot: str = ""

    def look_at_tables(self, session: ReadSession) -> None:
        """Look at the catalog, if it is time; raises as the session does."""
        if self.catalog is not None and self.catalog.is_due:
            with suppress(TableChanged), session.snapshot() as snapshot:
                self.catalog.refresh(snapshot)

    def look_at_slot(self, state: SlotState) -> None:
        """Note the state of the slot."""
        remarks: list[str] = []
        if state.most_bytes is not None and 2 * state.kept_bytes >= state.most_bytes:
            remarks.append(
                f"the slot {self.slot} keeps {state.kept_bytes // _MEBIBYTE} MB of the "
                f"server's log, and is lost with {state.most_bytes // _MEBIBYTE} MB "
                "(max_slot_wal_keep_size)"
            )
        if state.reread_bytes >= _REREAD_TOLD:
            remarks.append(
                f"each look has the server read {state.reread_bytes // _MEBIBYTE} MB of its log "
                "again, for a transaction is open since then (backend_xid in pg_stat_activity, "
                "pg_prepared_xacts)"
            )
        self._of_slot = "; ".join(remarks)

    @property
    def text(self) -> str:
        """All remarks; empty: there are none."""
        remarks = [self._of_slot]
        if self.left_out:
            remarks.append(
                f"{self.left_out} updates were left out of rows that are deleted since: the log "
                "does not have their large values, unless the table's REPLICA IDENTITY is FULL"
            )
        if self.emptied:
            names = ", ".join(sorted(map(str, self.emptied)))
            remarks.append(
                f"a TRUNCATE of {names} was left out: it emptied a part of the partitioned table, "
                "and a row that tells of it would empty all of its target"
            )
        if self.catalog is not None:
            remarks.append(self.catalog.text)
        return "; ".join(filter(None, remarks))
