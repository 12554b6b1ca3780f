"""A log file for several processes, with rotation and rate limits, readable by its owner only.

When it is full it is renamed to `.1`, the one before to `.2`, and so on, up to a number of files;
other processes reopen it with their next line. Repeated lines are rate-limited: a failing loop
would fill any log, and hide all other lines. While the disk is full, lines are dropped, and nobody
waits or fails for it; once there is space again, a line says how many are missing.
"""

import fcntl
import logging
import os
import sys
import time
from collections import Counter
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Final

LARGEST: Final = 16 << 20  # maximum size of the log, and of each older one, in bytes
FILES: Final = 2  # maximum number of them, the present one included
PERIOD_SECONDS: Final = 10.0
SAME_TEXT: Final = 5  # maximum number of equal lines in a period
SAME_PLACE: Final = 1_000  # maximum number of lines from one place in the code in a period
LONGEST_TEXT: Final = 500  # lines with the same beginning of this length count as equal
OWNER_ONLY: Final = 0o600


class LogFile(WatchedFileHandler):
    """Writes to a log file of bounded size."""

    def __init__(
        self, path: Path, *, delay: bool = False, largest: int = LARGEST, files: int = FILES
    ) -> None:
        """Write to `path`, which with `delay` is opened at the first line.

        Raises `OSError` if it cannot be opened now.
        """
        self._largest, self._files = largest, files
        self.dropped = 0
        """How many lines were dropped since the last one that was written."""
        super().__init__(path, delay=delay)
        self.addFilter(LogRateLimit())

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, and rotate the log if it is full; or drop the line."""
        dropped = self.dropped
        try:
            super().emit(record)
            if dropped and dropped == self.dropped:
                self.dropped = 0
                self.tell_missing(dropped)
            if self.stream and os.fstat(self.stream.fileno()).st_size > self._largest:
                self._rotate(self.stream)
        except OSError:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        """Count a line that the disk has not taken; other errors are told as logging does."""
        if not isinstance(sys.exception(), OSError):
            super().handleError(record)
            return
        self.dropped += 1
        stream, self.stream = self.stream, None
        if stream:
            with suppress(OSError):  # what it has of the line is dropped as well
                stream.close()

    def tell_missing(self, count: int) -> None:
        """Write that so many lines are missing before the last one."""
        text = "%d lines are missing before the last one: the disk did not take them"
        told = logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, (count,), None)
        super().emit(told)

    def _open(self) -> TextIOWrapper:
        stream = open_private(self.baseFilename)
        if self.dropped and not _ends_with_line(Path(self.baseFilename)):
            stream.write("\n")
        return stream

    def _rotate(self, full: TextIOWrapper) -> None:
        """Rename the log and older ones, unless another process has just done so.

        Only the process that holds the lock of the file with the log's name renames any.
        """
        path = Path(self.baseFilename)
        fcntl.flock(full, fcntl.LOCK_EX)
        try:
            if _is_file_at(full, path):
                for number in range(self._files - 1, 0, -1):
                    newer = path if number == 1 else Path(f"{path}.{number - 1}")
                    with suppress(FileNotFoundError):
                        newer.replace(f"{path}.{number}")
                if self._files == 1:
                    path.unlink()
        finally:
            fcntl.flock(full, fcntl.LOCK_UN)
        self.reopenIfNeeded()


def _is_file_at(file: TextIOWrapper, path: Path) -> bool:
    """Return whether an open file has this name still; between two names it has none."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    return False


def _ends_with_line(path: Path) -> bool:
    """Return whether a file does not end in the middle of a line."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
        return file.read() in {b"", b"\n"}


def open_private(path: str, _mode: str = "a") -> TextIOWrapper:
    """Open a file for appending, readable by its owner only; raises `OSError`."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(path, flags, OWNER_ONLY)
    with suppress(OSError):
        os.fchmod(descriptor, OWNER_ONLY)  # an earlier version created it readable for all
    return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")


class LogRateLimit(logging.Filter):
    """Passes a limited number of lines per text, and per place in the code, in each period."""

    def __init__(self) -> None:
        super().__init__()
        self._period = -1
        """The number of the current period."""
        self._counts: Counter[tuple[object, ...]] = Counter()
        """The lines of the current period, by what makes them alike."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write a line; the last one of a period says that more are dropped."""
        period = int(time.monotonic() // PERIOD_SECONDS)
        if period != self._period:
            self._period = period
            self._counts.clear()  # so it has the lines of one period at most
        text = _text_of(record)
        limits = (
            ((record.pathname, record.lineno), SAME_PLACE),
            ((record.pathname, record.lineno, text[:LONGEST_TEXT]), SAME_TEXT),
        )
        if any(self._counts[key] >= limit for key, limit in limits):
            return False
        for key, limit in limits:
            self._counts[key] += 1
            if self._counts[key] == limit:
                record.msg = f"{text} (said too often: no more of it for {PERIOD_SECONDS:g} s)"
                record.args = ()
        return True


def _text_of(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001  (the handler reports wrong format arguments)
        return str(record.msg)
