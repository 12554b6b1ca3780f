"""The offsets of a task, as far as they tell of its delivery more than its plugin says.

A plugin whose records have no offsets begins wherever it likes after each start. And Debezium
begins its first snapshot anew if it ends amid that: until then its offsets have `snapshot`, and do
not say that this is complete.
"""

from typing import Final

from .....events.commits import Document, identity
from ...spi.connector import Delivery
from ...spi.keys.plugin_source import delivers
from ..running.runs import HandedBatch

_NOWHERE: Final = (
    f"{delivers(Delivery.BEST_EFFORT.value)}the records that the plugin hands over have no offsets,"
    " so after each start it begins wherever it likes: rows may be lost, or come twice"
)
_SNAPSHOT: Final = (
    f"{delivers(Delivery.AT_LEAST_ONCE.value)}the plugin takes its first snapshot, and begins that"
    " anew if it ends amid it: a sink with keys (sink.insert.mode=upsert) has each row once all the"
    " same, and a source of fairlead's (source.type=postgres) copies a table in chunks of which"
    " none is read twice"
)
_NO_SNAPSHOT: Final = {"", "false", "last"}
"""The values of `snapshot` outside of one, in small letters; `last` is its last record."""
_COMPLETE: Final = ("snapshot_completed", "last_snapshot_record")
"""The keys that say by true that nothing of it is left."""


class SeenOffsets:
    """The offsets of the batches of one attempt."""

    def __init__(self) -> None:
        self._leads_nowhere = False
        """Whether the last batch with records had no offset."""
        self._snapshots: set[str] = set()
        """The partitions of which a snapshot goes on."""

    def add(self, batch: HandedBatch) -> None:
        """Look at the offsets of a batch, which may be the one of before."""
        if batch.tables:
            self._leads_nowhere = not any(offset for _, offset in batch.offsets)
        for partition, offset in batch.offsets:
            if _is_of_snapshot(offset or {}):
                self._snapshots.add(identity(partition))
            else:
                self._snapshots.discard(identity(partition))

    @property
    def remark(self) -> str:
        """The delivery at work, if that is less than the plugin says; else ""."""
        if self._leads_nowhere:
            return _NOWHERE
        return _SNAPSHOT if self._snapshots else ""


def _is_of_snapshot(offset: Document) -> bool:
    state = str(offset.get("snapshot") or "").lower()
    return state not in _NO_SNAPSHOT and not any(offset.get(each) for each in _COMPLETE)
