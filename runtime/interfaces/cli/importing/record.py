"""The record of an import: a file of JSON lines, from which an import that died goes on.

The first line says from where and to where, each other one which step a connector has reached. A
line counts once it is whole on disk. One process at a time writes.
"""

import fcntl
import os
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote

import msgspec

from ...replies.progress import ConnectorOffset
from ..output.printing import Failed
from .steps import ImportEntry, ImportPlace, ImportStep

_OWNER_ONLY: Final = 0o600
_NOTHING: Final = ImportPlace()


class RecordHead(msgspec.Struct, frozen=True):
    """The two ends of an import."""

    connect: str
    """The group of the workers of Connect, and their Kafka's id."""
    cluster: str
    """The id of the cluster that imports."""


class ImportRecord:
    """The steps of all connectors of an import."""

    def __init__(self, path: Path, head: RecordHead) -> None:
        """Read a record that there may be; raises `Failed` for that of another import."""
        self.path = path
        self._places: dict[str, ImportPlace] = {}
        self._head = head
        self._file: BinaryIO | None = None
        self._read(path.read_bytes() if path.exists() else b"")

    @property
    def places(self) -> Mapping[str, ImportPlace]:
        """How far each connector has come that has begun."""
        return self._places

    def place(self, connector: str) -> ImportPlace:
        """Return how far a connector has come."""
        return self._places.get(connector, _NOTHING)

    @contextmanager
    def writing(self) -> Generator[None]:
        """Allow steps to be added in the context; raises `Failed` if another import adds some."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, _OWNER_ONLY)
        except OSError as error:
            raise Failed(f"{error}: nothing was changed; name another file by --record") from None
        with os.fdopen(descriptor, "a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                told = f"another import writes {self.path}: wait for its end; nothing was changed"
                raise Failed(told) from None
            file.seek(0)
            whole = self._read(file.read())
            file.truncate(whole)
            self._file = file
            if not whole:
                self._append(self._head)
            try:
                yield
            finally:
                self._file = None

    def add(
        self,
        connector: str,
        step: ImportStep,
        *,
        was: str = "",
        offsets: Sequence[ConnectorOffset] | None = None,
        reason: str = "",
    ) -> ImportPlace:
        """Write a step, and return the place of its connector; it is on disk then."""
        entry = ImportEntry(connector, step, time.time_ns() // 1_000_000, was, offsets, reason)
        self._append(entry)
        self._places[connector] = place = self.place(connector).after(entry)
        return place

    def _append(self, line: msgspec.Struct) -> None:
        if self._file is None:
            raise RuntimeError("the record is not being written")
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, content: bytes) -> int:
        """Read all whole lines; return how many bytes they are."""
        whole = content[: content.rfind(b"\n") + 1]
        head, *lines = whole.splitlines() or [b""]
        try:
            if head and msgspec.json.decode(head, type=RecordHead) != self._head:
                raise Failed(
                    f"{self.path} records an import from another Connect or to another cluster:"
                    " name another file by --record; nothing was changed"
                )
            self._places.clear()
            for line in lines:
                entry = msgspec.json.decode(line, type=ImportEntry)
                self._places[entry.connector] = self.place(entry.connector).after(entry)
        except msgspec.DecodeError as error:
            raise Failed(
                f"{self.path} is no record of an import ({error}): name another file by --record;"
                " nothing was changed"
            ) from None
        return len(whole)


def locate_record(head: RecordHead) -> Path:
    """Return the usual path of the record of an import, in the user's folder for states."""
    folder = os.environ.get("XDG_STATE_HOME") or ""
    base = Path(folder) if folder.startswith("/") else Path("~/.local/state").expanduser()
    return base / "fairlead" / "imports" / f"{quote(head.connect, safe='@')}.jsonl"
