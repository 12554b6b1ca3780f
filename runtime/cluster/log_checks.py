"""Checks logs in another process before this one opens them, if the last REST process crashed.

On some damage LMDB ends the process that reads a log, by a signal. A crash leaves a trace in the
run folder. The process that follows then checks each log first: it does not open a damaged one, and
answers requests with the reason.
"""

import faulthandler
import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ...actors.transport.log_file import open_private
from ...events.log.errors import CorruptLogError, LogError
from ...events.log.probe import probe

LOGGER = logging.getLogger(__name__)
TRACE: Final = "rest-crash"
"""The file in the run folder that gets the trace of a crash."""
RECHECK_SECONDS: Final = 60.0
"""How long a finding counts: a check reads the whole log."""


@dataclass(slots=True)
class LogChecks:
    """The findings about logs that may end this process."""

    is_needed: bool = False
    """Whether logs are to be checked before they are opened."""
    _damaged: dict[Path, tuple[str, float]] = field(default_factory=dict[Path, tuple[str, float]])
    """What is wrong with damaged logs, and until when that counts, in monotonic seconds."""
    _sound: set[Path] = field(default_factory=set[Path])

    def check(self, log: Path) -> None:
        """Raise `CorruptLogError` if a log may end this process."""
        if not self.is_needed or log in self._sound:
            return
        flaw, until = self._damaged.get(log, ("", 0.0))
        if time.monotonic() < until:
            raise CorruptLogError(flaw)
        try:
            probe(log)
        except CorruptLogError as found:
            self._damaged[log] = str(found), time.monotonic() + RECHECK_SECONDS
            raise
        except LogError:
            return  # whatever else is wrong is found when the log is opened
        self._sound.add(log)


def trace_crashes(folder: Path) -> bool:
    """Write the trace of a crash of this process to a folder; return whether there was one."""
    path, trace = folder / TRACE, ""
    with suppress(FileNotFoundError):
        trace = path.read_text(errors="replace").strip()
    if trace:
        LOGGER.error(
            "the last REST process crashed; logs are checked before they are read: %s", trace
        )
    file = open_private(str(path))
    file.truncate(0)
    faulthandler.enable(file)  # it stays open: a crash leaves no time to open it
    return bool(trace)


def remove_trace(folder: Path) -> None:
    """Remove the file for the trace of a crash at the end of a process, unless there was one."""
    path = folder / TRACE
    with suppress(OSError):
        if path.stat().st_size == 0:
            path.unlink()
