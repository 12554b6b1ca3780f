"""The log files of a node: their entries in the order of their times, as they grow.

A full file gets a number behind its name, and the older ones the next numbers, which may happen
between two looks. So the place where a reader has come to is kept by the inode of each log's newest
file: if another file has its name now, the one with that inode is among the numbered ones, and what
lies between was written since. A file that is shorter than its place was emptied, and is new.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from pathlib import Path
from typing import Final

from .entries import BEGINS_ENTRY, LogEntry

_NAME: Final = re.compile(r"(.+\.log)(?:\.(old|\d{1,9}))?")
"""The name of a log file, and what a full one has in addition: Thespian's own has a word."""
_PLACE: Final = re.compile(r"(\d{1,20})\.(\d{1,20})")

Places = Mapping[int, int]
"""What was read of the newest file of each log, in bytes, by its inode."""


class LogFilesError(Exception):
    """Log files cannot be read; the message has the reason."""


class LogFolderReader:
    """Reads the entries of all logs in a folder: first what is there, then what is new."""

    def __init__(self, folder: Path, places: Places | None = None, most_bytes: int = 0) -> None:
        """Begin behind `places`, and read at most `most_bytes` of each log at once, the last ones.

        Without places it begins with the oldest file; 0 bytes: no limit.
        """
        self._folder = folder
        self._most_bytes = most_bytes
        self.places = dict(places or {})
        """Where the next read begins."""
        self.is_cut = False
        """Whether the last read has left out the beginning of a log."""

    def read(self) -> Iterator[LogEntry]:
        """Return the entries since the last call, in the order of their times.

        Raises `LogFilesError`, also for a folder without logs.
        """
        logs = self._find_logs()
        if not logs:
            raise LogFilesError(
                f"{self._folder} has no log files: has a node run here (--data-dir), and does it"
                " log to files (log.to)?"
            )
        before, self.places, self.is_cut = self.places, {}, False
        lists = [[*_entries(name, self._read_log(files, before))] for name, files in logs.items()]
        return merge(*lists, key=lambda entry: entry.time)

    def _find_logs(self) -> dict[str, list[Path]]:
        """Return the files of each log, the newest one first."""
        try:
            numbered = [
                (match[1], int(match[2]) if (match[2] or "").isdecimal() else bool(match[2]), path)
                for path in self._folder.iterdir()
                if (match := _NAME.fullmatch(path.name)) is not None
            ]
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _unreadable(self._folder, error) from None
        logs: dict[str, list[Path]] = {}
        for name, _, path in sorted(numbered):
            logs.setdefault(name, []).append(path)
        return logs

    def _read_log(self, files: Iterable[Path], before: Places) -> bytes:
        """Return the new bytes of a log; a line that is being written is left for the next time.

        The newest file is opened first: one that is put aside meanwhile is met again, not missed.
        """
        parts, passed = list[bytes](), set[int]()
        budget = self._most_bytes
        for path in files:
            try:
                with path.open("rb") as file:
                    inode, size = os.fstat(file.fileno()).st_ino, file.seek(0, os.SEEK_END)
                    if inode in passed:
                        continue
                    start = before.get(inode, 0) if before.get(inode, 0) <= size else 0
                    first = max(start, size - budget) if self._most_bytes else start
                    file.seek(first)
                    content = file.read(size - first)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _unreadable(path, error) from None
            if not passed:
                content = content[: content.rfind(b"\n") + 1]
                self.places[inode] = first + len(content)
            passed.add(inode)
            if first > start:
                self.is_cut = True
                content = content.partition(b"\n")[2]
            parts.append(content + b"\n" if content[-1:] not in {b"", b"\n"} else content)
            budget -= size - first
            if inode in before or (self._most_bytes and budget <= 0):
                break
        return b"".join(reversed(parts))


def _entries(name: str, content: bytes) -> Iterator[LogEntry]:
    """Yield the entries of a log; a traceback belongs to its entry."""
    lines = list[str]()
    for line in content.decode(errors="replace").splitlines():
        if lines and BEGINS_ENTRY.match(line):
            yield LogEntry(name, "\n".join(lines))
            lines.clear()
        lines.append(line)
    if lines:
        yield LogEntry(name, "\n".join(lines))


def _unreadable(path: Path, error: OSError) -> LogFilesError:
    return LogFilesError(f"{path} cannot be read: {error.strerror or error}")


def format_places(places: Places) -> str:
    """Return places as one word, for a client that asks again."""
    return "-".join(f"{inode}.{place}" for inode, place in places.items())


def parse_places(word: str) -> Places:
    """Return the places of such a word; raises `ValueError`."""
    found = [_PLACE.fullmatch(each) for each in word.split("-")] if word else []
    if not all(found):
        raise ValueError("it is no place in a log: take `next` of an earlier answer")
    return {int(each[1]): int(each[2]) for each in found if each}
