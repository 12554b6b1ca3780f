"""How the supervisor ends a process that leads a group, with all that it has started."""

import os
import signal
from contextlib import suppress

import psutil

DOING = ", "
"""What follows this in the title of a process is what it does at the moment."""


def kill_group(pid: int) -> None:
    """Kill a leader that has not been waited for, and its group: the number is nobody else's yet.

    The leader itself may have gone over to another group.
    """
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def kill_rest(pid: int) -> None:
    """Kill what is left of a group whose leader has ended.

    While any of the group is there its number is given to nobody; a process that goes by it
    now, and is no child of ours, says that the group is gone.
    """
    with suppress(psutil.NoSuchProcess):
        if psutil.Process(pid).ppid() != os.getpid():
            return
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def deed_of(pid: int) -> str:
    """Return what a process says in its title that it does, or one below it, if any says so."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                title, _, deed = " ".join(each.cmdline()).partition(DOING)
                if deed.strip() and title.startswith("fairlead: "):
                    return deed.strip()
    return ""
