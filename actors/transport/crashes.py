"""Crashes in native code end the process of an actor, and leave a trace.

Thespian handles all signals in Python. Such a handler runs only once the instruction that crashed
has returned, which it never does: the process would be busy for ever, and nobody would see its end.
"""

import faulthandler
import os
import signal
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Final

from .log_file import open_private

TRACES: Final = "crashes.log"
"""The file in the folder of logs with the stacks of all actors' processes that crashed."""
LARGEST: Final = 1 << 20
"""From which size on, in bytes, the next process empties it."""
FATAL: Final = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


def end_at_crashes(trace: TextIOWrapper | int | None, *others: signal.Signals) -> None:
    """Dump the stacks to a file or descriptor when a crash or another signal ends this process."""
    faulthandler.disable()  # else a handler of before, or of the parent process, counts as this one
    for number in (*FATAL, *others):
        signal.signal(number, signal.SIG_DFL)
    if trace is not None:
        faulthandler.enable(trace)


def open_traces(logs: Path) -> TextIOWrapper | None:
    """Open the file for traces: a crash leaves no time to. None if the folder takes no file."""
    with suppress(OSError):
        file = open_private(str(logs / TRACES))
        if os.fstat(file.fileno()).st_size > LARGEST:
            file.truncate(0)
        return file
    return None
