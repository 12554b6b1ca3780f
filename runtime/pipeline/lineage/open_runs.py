"""Files of the open lineage runs, so that runs of a killed process get an end event.

A killed process sends no end. The next run of the same job on this machine finds its run here and
sends ABORT for it. The files are named by run id and are in the temporary folder, not in the node's
data: losing them loses only these end events.
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
    """The open runs of one job at one OpenLineage server."""

    def __init__(self, url: str, namespace: str, name: str) -> None:
        self._job = [url, namespace, name]
        self._folder = Path(tempfile.gettempdir(), f"fairlead-runs-{os.getuid()}")

    def open(self, run_id: str) -> None:
        """Record a run of this process; file errors are ignored."""
        owner = [platform.node(), *process_of(os.getpid())]
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            if self._is_ours():
                (self._folder / run_id).write_text(json.dumps([self._job, owner]))

    def close(self, run_id: str) -> None:
        """Remove the record of a run that has ended."""
        with suppress(OSError):
            (self._folder / run_id).unlink()

    def take_abandoned(self) -> Iterator[str]:
        """Yield the ids of the job's runs whose process has died, and remove their records."""
        for file in self._folder.glob("*") if self._is_ours() else ():
            with suppress(OSError, ValueError, TypeError):
                job, (host, pid, started) = json.loads(file.read_text())
                is_gone = host == platform.node() and not is_alive(ProcessId(pid, started))
                if job == self._job and is_gone:
                    file.unlink()  # only the process that succeeds here sends the end
                    yield file.name

    def _is_ours(self) -> bool:
        """Tell whether the folder exists, belongs to this user, and no one else can write to it."""
        try:
            status = self._folder.lstat()
        except OSError:
            return False
        return status.st_uid == os.getuid() and self._folder.is_dir() and not status.st_mode & 0o022
