"""Runs that have started and not ended, written down for what comes after a process that is killed.

A process that is killed tells of no end. Whoever starts a run of the same job next on this machine
finds its runs here, and ends them. They lie where temporary files do, each in a file that goes by
the run's id: no data of a node's, and nothing that a lost machine would be asked for.
"""

import json
import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ....events.log.process import ProcessId, is_alive, process_of


class OpenRuns:
    """The runs of one job, as one server of OpenLineage is told of them."""

    def __init__(self, url: str, namespace: str, name: str) -> None:
        self._job = [url, namespace, name]
        self._folder = Path(tempfile.gettempdir(), f"fairlead-runs-{os.getuid()}")

    def open(self, run_id: str) -> None:
        """Write down a run of this process; nothing is where that cannot be."""
        owner = [platform.node(), *process_of(os.getpid())]
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            if self._is_ours():
                (self._folder / run_id).write_text(json.dumps([self._job, owner]))

    def close(self, run_id: str) -> None:
        """Forget a run that has ended."""
        with suppress(OSError):
            (self._folder / run_id).unlink()

    def take_abandoned(self) -> Iterator[str]:
        """Yield the ids of the job's runs whose process is gone; each is found once."""
        for file in self._folder.glob("*") if self._is_ours() else ():
            with suppress(OSError, ValueError, TypeError):
                job, (host, pid, started) = json.loads(file.read_text())
                is_gone = host == platform.node() and not is_alive(ProcessId(pid, started))
                if job == self._job and is_gone:
                    file.unlink()  # it is whoever succeeds at this that ends it
                    yield file.name

    def _is_ours(self) -> bool:
        """Tell whether the folder is there and of this user, and not of another who was faster."""
        try:
            found = self._folder.lstat()
        except OSError:
            return False
        return found.st_uid == os.getuid() and self._folder.is_dir() and not found.st_mode & 0o022
