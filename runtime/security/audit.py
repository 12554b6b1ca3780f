"""The audit log: a line of JSON for each change and each refusal, in `logs/audit.log`.

A request never waits for it: lines are written by a thread, and if the disk is full they are
dropped. That is told once in the log, and by `problem` as long as it lasts. A caller could fill the
log with refusals, and so push out what others have changed: of each caller, and of all who are not
known together, a few each second are written, and the next line has how many were left out.
"""

import json
import logging
import queue
from collections.abc import Mapping
from logging.handlers import QueueListener
from pathlib import Path
from typing import Final

from ...actors.transport.log_file import FILES, LARGEST, LogFile
from .throttling import RequestRate

LOGGER = logging.getLogger(__name__)
FILE: Final = "audit.log"
MOST_WAITING: Final = 10_000
"""How many lines wait for the disk at most."""
REFUSALS_PER_SECOND: Final = 20
"""How many refusals of a caller are written in a second."""


class _AuditFile(LogFile):
    """The file, for its owner only, of bounded size; it says whether its last line was written."""

    def __init__(self, path: Path, largest: int, files: int) -> None:
        super().__init__(path, delay=True, largest=largest, files=files)
        self.filters.clear()  # equal lines are no mistake here
        self.setFormatter(logging.Formatter("%(message)s"))

    @property
    def problem(self) -> str:
        """Why the last line was dropped; empty if it was written."""
        return (
            f"{self.baseFilename} cannot be written: changes are not audited"
            if self.dropped
            else ""
        )

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        """Count a line that was dropped, and say so in the log at the first one."""
        super().handleError(record)
        if self.dropped == 1:
            LOGGER.error("%s", self.problem)  # it says all

    def tell_missing(self, count: int) -> None:
        """Say in the log, not in the file, that lines are missing: each line there is JSON."""
        LOGGER.warning("the audit log is written again; %d lines are not in it", count)


class AuditLog:
    """Writes the lines of one process, until `close`."""

    def __init__(self, folder: Path, largest: int = LARGEST, files: int = FILES) -> None:
        """Write to a folder, into so many files of at most `largest` bytes."""
        self._file = _AuditFile(folder / FILE, largest, files)
        self._lines: queue.Queue[logging.LogRecord] = queue.Queue(MOST_WAITING)
        self._writer = QueueListener(self._lines, self._file)
        self._writer.start()
        self._refusals = RequestRate(REFUSALS_PER_SECOND)
        self._omitted = 0
        """How many lines were left out since the last one."""

    @property
    def problem(self) -> str:
        """Why lines are not written; "" if they are."""
        return self._file.problem

    def write(self, line: Mapping[str, object], *, refused: str | None = None) -> None:
        """Write a line; returns at once.

        `refused` is the caller if the line is about a refusal: "" for all who are not known.
        """
        if refused is not None and self._refusals.wait_seconds(refused):
            self._omitted += 1
            return
        omitted = {"omitted": self._omitted} if self._omitted else {}
        record = logging.LogRecord(
            __name__, logging.INFO, __file__, 0, json.dumps({**line, **omitted}), None, None
        )
        try:
            self._lines.put_nowait(record)
            self._omitted = 0
        except queue.Full:
            self._omitted += 1

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._writer.stop()
        self._file.close()
