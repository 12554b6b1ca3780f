"""A group's log in memory: entries, the latest of each key, and what compaction may leave."""

from collections.abc import Iterable, Sequence
from typing import Final

from ...events.log.frame import Entry, NewEntry

GROUP_ID: Final = "connect"


class MemoryLog:
    """Entries in the order of their offsets; durable as soon as they are appended."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._latest: dict[tuple[int, bytes], Entry] = {}

    @property
    def end(self) -> int:
        """The offset that the next entry gets."""
        return len(self.entries)

    def append(self, new: Iterable[NewEntry], wall_ms: int) -> Sequence[Entry]:
        """Write entries down, and return them as they stand in the log."""
        start = self.end
        for each in new:
            entry = Entry(self.end, each.type, each.version, each.key, wall_ms, each.value)
            self.entries.append(entry)
            self._latest[each.type, each.key] = entry
        return self.entries[start:]

    def compacted(self, cut: int) -> list[Entry]:
        """Return what is left to restore from once all before an offset was trimmed.

        That is the latest entry of each key, but for the tombstones before the cut.
        """
        return sorted(
            entry
            for entry in self._latest.values()
            if entry.value is not None or entry.offset >= cut
        )

    def get(self, kind: int, key: bytes) -> Entry | None:
        """Return the latest entry of a type and key; None if there is none, or it was deleted."""
        entry = self._latest.get((kind, key))
        return None if entry is None or entry.value is None else entry

    def scan(self, kind: int, key_prefix: bytes = b"") -> list[Entry]:
        """Return the latest entries of a type whose keys begin so, in key order, none deleted."""
        found = [
            entry
            for (number, key), entry in self._latest.items()
            if number == kind and key.startswith(key_prefix) and entry.value is not None
        ]
        return sorted(found, key=lambda entry: entry.key)
