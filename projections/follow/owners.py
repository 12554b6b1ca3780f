"""The nodes that have owned a group, as its control log tells them (LOG.md §13)."""

from ...events.catalogue import TYPE_OF
from ...events.entries.codec import decode
from ...events.log.errors import TrimmedError
from ...events.log.reader import LogReader
from ...events.records import OwnerBegan

_BEGAN = TYPE_OF[OwnerBegan].number


class OwnerHistory:
    """The claims of a group, from the beginning of its log on."""

    def __init__(self) -> None:
        self.last: dict[str, OwnerBegan] = {}
        """The last claim of each node, by the node's name."""
        self.claims = 0
        """How many there were."""
        self._next = 0
        """The offset of the first entry that was not read yet."""

    @property
    def takeovers(self) -> int:
        """How often the group began anew at its owner, or at another one."""
        return max(0, self.claims - 1)

    def catch_up(self, log: LogReader) -> None:
        """Read new entries; what was trimmed meanwhile is left out. Raises `LogError`."""
        try:
            self._read(log)
        except TrimmedError:
            self._next = log.low()
            self._read(log)

    def _read(self, log: LogReader) -> None:
        for entries in log.tail(self._next):
            for entry in entries:
                if entry.type == _BEGAN and isinstance(record := decode(entry), OwnerBegan):
                    self.last[record.node] = record
                    self.claims += 1
            self._next = entries[-1].offset + 1
