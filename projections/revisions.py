"""The configs that a connector has had, as its group's control log has them."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from ..events.entries.codec import decode, encode
from ..events.log.frame import Entry
from ..events.records import ConnectorConfig, Tombstone


class ConfigRevision(NamedTuple):
    """A config that was in force from one moment to the next one."""

    number: int
    """The offset of its record in the log: it stays as the log grows and is trimmed."""
    time_ms: int
    actor: str | None
    config: Mapping[str, str]
    """With sealed secrets."""


class RevisionLog(Protocol):
    """The part of a log that is read."""

    def low(self) -> int:
        """Return the offset of the first entry that was not trimmed."""
        ...

    def tail(self, start: int) -> Iterator[list[Entry]]:
        """Yield entries from an offset to the present end."""
        ...


def read_revisions(log: RevisionLog, connector: str) -> list[ConfigRevision]:
    """Return the configs since the connector was created, or the log begins; in order.

    A restart is none. Raises `LogError`, `CodecError`.
    """
    revisions: list[ConfigRevision] = []
    gone = encode(Tombstone(ConnectorConfig, (connector,)))
    for entries in log.tail(log.low()):
        for entry in entries:
            if entry.type != gone.type or entry.key != gone.key:
                continue
            record = decode(entry)
            if not isinstance(record, ConnectorConfig) or record.deleting:
                revisions.clear()
            elif not revisions or revisions[-1].config != record.config:
                parts = entry.offset, record.time_ms, record.actor, record.config
                revisions.append(ConfigRevision(*parts))
    return revisions
