"""Working engines yield to what must be prompt: heartbeats, commits, and engines that start.

A worker that joins a busy machine would else wait for its engine as long as the others have
work, since starting a JVM is nothing but work for the processor.
"""

import os
from contextlib import suppress
from pathlib import Path

NICENESS = 5
"""About a third of the processor's time against a process of normal niceness."""


def yield_to_others(pid: int) -> None:
    """Lower the priority of a process for good; what it starts later inherits it.

    On Linux niceness belongs to threads, so each is asked; one that ended meanwhile is none.
    """
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), NICENESS)
