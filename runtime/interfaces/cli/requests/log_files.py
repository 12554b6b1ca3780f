"""The log files of a node: their entries, in the order of their times."""

import re
import time
from collections.abc import Iterable, Iterator
from heapq import merge
from pathlib import Path
from typing import Final

from ..command.printing import Failed

BEGINS_ENTRY: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
TIME_LENGTH: Final = len("2013-01-31 23:59:59,999")
LOOK_SECONDS: Final = 0.5
"""The time between two looks for new entries."""


class LogFileReader:
    """Reads the entries of one log file, as it grows; a traceback belongs to its entry."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        """What was read of the file, in bytes."""

    def read(self) -> list[str]:
        """Return the entries since the last call; raises `Failed`.

        A file that is shorter than before is a new one, and is read from its beginning.
        """
        try:
            with self._path.open("rb") as file:
                if file.seek(0, 2) < self._position:
                    self._position = 0
                file.seek(self._position)
                content = file.read()
        except FileNotFoundError:  # it was put aside, and its successor begins with a next line
            return []
        except OSError as error:
            raise Failed(f"{self._path} cannot be read: {error.strerror or error}") from None
        whole = content[: content.rfind(b"\n") + 1]  # the rest is being written
        self._position += len(whole)
        entries: list[str] = []
        for line in whole.decode(errors="replace").splitlines():
            if entries and not BEGINS_ENTRY.match(line):
                entries[-1] += f"\n{line}"
            else:
                entries.append(line)
        return entries


def entries_of(folder: Path, *, follow: bool) -> Iterator[str]:
    """Yield the entries of all log files in a folder, and those that follow, endlessly.

    Raises `Failed`.
    """
    readers: dict[Path, LogFileReader] = {}
    while True:
        for path in sorted(folder.glob("*.log")):
            readers.setdefault(path, LogFileReader(path))
        if not readers:
            raise Failed(f"{folder} has no log files: has a node run here? See --data-dir")
        yield from _merged(readers.values())
        if not follow:
            return
        time.sleep(LOOK_SECONDS)


def _merged(readers: Iterable[LogFileReader]) -> Iterator[str]:
    """Yield new entries in the order of their times."""
    return merge(*(each.read() for each in readers), key=_time_of)


def _time_of(entry: str) -> str:
    """Return the beginning of an entry, `2013-01-31 23:59:59,999`; "" if it is no time."""
    return entry[:TIME_LENGTH] if BEGINS_ENTRY.match(entry) else ""
