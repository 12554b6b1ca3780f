# pyright: basic
"""Staging files: one file in Arrow's IPC format for each batch of records."""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from ......events.commits import CommitId
from ......events.log.files import sync_path
from ......events.model import Resource, Token
from ....spi.errors import SinkAway, SinkFull
from ...staging import batch_path, escape_name, folders_up_to, make_folder

HELD_ROWS: Final = 10_000
"""How many records are read at once."""
_STAGED_MS: Final = b"staged.ms"
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)


class StagedFile(NamedTuple):
    """A staged batch; `staged_ms` is the time of its staging, in ms since 1970."""

    batches: Iterator[pa.RecordBatch]
    staged_ms: int
    rows: int


class StagingFolder:
    """The staging folder of all tasks; raises `SinkAway` if it cannot be used."""

    def __init__(self, root: Path) -> None:
        """Start with the folder, which is created at the first write."""
        self.root = root

    def name_of(self, commit_id: CommitId) -> str:
        """Return a batch's file, relative to the root."""
        return f"{batch_path(commit_id)}.arrow"

    def write(self, commit_id: CommitId, records: pa.Table) -> int:
        """Write a batch durably; return its size in bytes."""
        path = self.root / self.name_of(commit_id)
        stamp = {_STAGED_MS: str(time.time_ns() // 1_000_000)}
        try:
            make_folder(path.parent)
            with path.open("wb") as file:
                with pa.ipc.new_file(file, records.schema.with_metadata(stamp)) as writer:
                    writer.write_table(records.replace_schema_metadata(stamp), HELD_ROWS)
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            sync_path(path.parent)
        except OSError as error:
            kind = SinkFull if error.errno in _NO_ROOM else SinkAway
            raise kind(f"{path}: {(error.strerror or str(error)).lower()}") from None
        self._refuse_changed(path, records.num_rows)
        return size

    def _refuse_changed(self, path: Path, rows: int) -> None:
        """Raise `SinkAway` if a file does not have the rows that were just written to it."""
        try:
            found = read(path).rows
            what = f"of {rows} records it has {found}"
        except (OSError, pa.ArrowInvalid) as error:
            found, what = -1, f"it is not whole ({error})"
        if found != rows:
            raise SinkAway(
                f"{path} was changed after it was written: {what}. Nothing of the batch counts, "
                f"and it is written again. Keep whatever cleans up away from {self.root}"
            )

    def discard(self, name: str) -> None:
        """Remove a batch if it exists."""
        with suppress(OSError):
            (self.root / name).unlink()

    def sweep(self, task: Resource, token: Token) -> None:
        """Remove all that a task staged under this token and older ones."""
        with suppress(OSError):
            for folder in folders_up_to(self.root / escape_name(task), token):
                shutil.rmtree(folder, ignore_errors=True)


def read(path: Path) -> StagedFile:
    """Open a batch; raises `OSError`, or `ArrowInvalid` for a file that is not whole."""
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
    staged_ms = int((reader.schema.metadata or {}).get(_STAGED_MS, b"0"))
    return StagedFile(iter(batches), staged_ms, sum(each.num_rows for each in batches))
