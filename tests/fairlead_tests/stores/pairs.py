"""Both logs of a group as copies of stores in memory."""

from pathlib import Path
from typing import NamedTuple

from fairlead.actors.shards.hosted_logs import LogCopies
from fairlead.events.stores.stored_log import StoredLog
from fairlead_tests.log.memory_store import MemoryEngine, MemoryStore


class Engines(NamedTuple):
    """The stores of a control log and of the offset log beside it."""

    control: MemoryEngine
    offsets: MemoryEngine

    def copies_at(self, folder: Path) -> LogCopies:
        """Return the copies of one node."""
        control, offsets = (
            StoredLog.open_copy(folder / name, "flights", None, MemoryStore(engine))
            for name, engine in zip(self._fields, self, strict=True)
        )
        control.beside = offsets
        return LogCopies(control, offsets, is_shared=False)


def engines() -> Engines:
    """Return two empty stores."""
    return Engines(MemoryEngine(), MemoryEngine())
