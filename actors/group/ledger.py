"""The offset log as the coordinator sees it: what is durable, and what it has just decided."""

from collections.abc import Iterable
from typing import Protocol

from ...events.catalogue import commit_key, entry_key, key_of, offset_key, pack_key
from ...events.commits import CommitId, Committed, Document, Offset, TaskProgress
from ...events.entries.codec import decode
from ...events.log.frame import Entry
from ...events.model import Key
from ...events.records import Record, Tombstone


class Latest(Protocol):
    """A log, as far as the latest entry of each key goes."""

    def get(self, kind: int, key: bytes) -> Entry | None:
        """Return the latest entry of a type and key; None if there is none, or it was deleted."""
        ...

    def scan(self, kind: int, key_prefix: bytes = b"") -> list[Entry]:
        """Return the latest entries of a type whose keys begin so, none deleted."""
        ...


class OffsetLedger:
    """Looks up offsets, progress and unpublished commits; `lay` adds what is not durable yet."""

    def __init__(self, log: Latest) -> None:
        self._log = log
        self._laid: dict[tuple[type, Key], Record | None] = {}
        """What was decided and is not durable yet, by type and key; None for a tombstone."""

    def lay(self, decided: Iterable[Record]) -> None:
        """Take records that were decided but are not appended yet."""
        for record in decided:
            if isinstance(record, Tombstone):
                self._laid[record.kind, record.key] = None
            else:
                self._laid[type(record), key_of(record)] = record

    def clear(self) -> None:
        """Forget what was laid: it is durable now."""
        self._laid.clear()

    def offset(self, connector: str, partition: Document) -> Document | None:
        """Return how far a source partition was read."""
        found = self._find(Offset, offset_key(connector, partition))
        return found.offset if isinstance(found, Offset) else None

    def count(self, connector: str) -> int:
        """Return how many source partitions of a connector have an offset."""
        logged = self._log.scan(*entry_key(Offset, (connector,)))
        keys = {entry.key for entry in logged}
        for (each, key), record in self._laid.items():
            if each is Offset and key[0] == connector:
                (keys.discard if record is None else keys.add)(pack_key(key))
        return len(keys)

    def progress(self, connector: str, task: int) -> TaskProgress | None:
        """Return what a task committed so far."""
        found = self._find(TaskProgress, (connector, task))
        return found if isinstance(found, TaskProgress) else None

    def is_unpublished(self, commit_id: CommitId) -> bool:
        """Tell whether a commit waits to be published."""
        return self._find(Committed, commit_key(commit_id)) is not None

    def has_unpublished(self, connector: str) -> bool:
        """Tell whether any commit of a connector waits to be published."""
        laid = any(
            kind is Committed and key[0] == connector and record is not None
            for (kind, key), record in self._laid.items()
        )
        return laid or bool(self._log.scan(*entry_key(Committed, (connector,))))

    def _find(self, kind: type, key: Key) -> Record | None:
        if (kind, key) in self._laid:
            return self._laid[kind, key]
        entry: Entry | None = self._log.get(*entry_key(kind, key))
        return None if entry is None else decode(entry)
