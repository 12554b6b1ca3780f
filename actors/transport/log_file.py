"""A log file for several processes, with rotation and rate limits, readable by its owner only.

When it is full it is renamed to `.1`, replacing the former one; other processes reopen it with
their next line. Repeated lines are rate-limited: a failing loop would fill any log, and hide all
other lines.
"""

import fcntl
import logging
import os
import time
from collections import Counter
from contextlib import suppress
from io import TextIOWrapper
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Final

LARGEST: Final = 16 << 20  # maximum size of the log, and of the older one, in bytes
PERIOD_SECONDS: Final = 10.0
SAME_TEXT: Final = 5  # maximum number of equal lines in a period
SAME_PLACE: Final = 1_000  # maximum number of lines from one place in the code in a period
LONGEST_TEXT: Final = 500  # lines with the same beginning of this length count as equal
OWNER_ONLY: Final = 0o600


class LogFile(WatchedFileHandler):
    """Writes to a log file of bounded size."""

    def __init__(self, path: Path, *, delay: bool = False, largest: int = LARGEST) -> None:
        """Write to `path`, which with `delay` is opened at the first line.

        Raises `OSError` if it cannot be opened now.
        """
        self._largest = largest
        super().__init__(path, delay=delay)
        self.addFilter(LogRateLimit())

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, and rotate the log if it is full."""
        try:
            super().emit(record)
            if self.stream and os.fstat(self.stream.fileno()).st_size > self._largest:
                self._rotate(self.stream)
        except OSError:
            self.handleError(record)

    def _open(self) -> TextIOWrapper:
        return open_private(self.baseFilename)

    def _rotate(self, full: TextIOWrapper) -> None:
        """Rename the log, unless another process has just done so."""
        fcntl.flock(full, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(full.fileno()), os.stat(self.baseFilename)):  # noqa: PTH116
                os.replace(self.baseFilename, f"{self.baseFilename}.1")  # noqa: PTH105
        finally:
            fcntl.flock(full, fcntl.LOCK_UN)
        self.reopenIfNeeded()


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
