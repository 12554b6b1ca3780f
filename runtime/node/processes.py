"""The processes of a node as its run folder tells of them: which they are, one file for each.

A pid alone may be another's by now, so a file names the start time as well. The successor
of a process that was killed finds here what it left running, and which member has ended with it.
"""

import json
import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ...events.log.process import ProcessId, is_alive, kill
from ..cluster.identity import folder_number
from ..cluster.node_files import write_json

LOGGER = logging.getLogger(__name__)
FOLDER: Final = "processes"
END_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """One process of a node; of a worker also its member, and the engine that is tied to it."""

    kind: str
    name: str
    process: ProcessId
    member_id: str = ""
    incarnation: str = ""
    engine: ProcessId | None = None

    @property
    def parts(self) -> tuple[ProcessId, ...]:
        """The process itself, and its engine's."""
        return (self.process,) if self.engine is None else (self.process, self.engine)

    @property
    def is_alive(self) -> bool:
        """Whether any of it still runs."""
        return any(map(is_alive, self.parts))

    def __str__(self) -> str:
        """Return `worker w1 (pid 4711)`."""
        return f"{self.kind} {self.name} (pid {self.process.pid})"


class ProcessFiles:
    """The files in `<data.dir>/run/processes`.

    A file that cannot be written is no reason to end what it tells of: that is logged.
    """

    def __init__(self, run_folder: Path) -> None:
        self._folder = run_folder / FOLDER

    def write(self, process: NodeProcess) -> None:
        """Write down what is known of a process, or what is known now."""
        path = self._path(process.process)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_json(path, {**asdict(process), "folder": folder_number(self._folder)})
        except OSError as error:
            LOGGER.warning("%s cannot be written (%s)", path, error.strerror)

    def remove(self, processes: Iterable[ProcessId]) -> None:
        """Forget processes that have ended."""
        for each in processes:
            with suppress(OSError):
                self._path(each).unlink(missing_ok=True)

    def read(self) -> list[NodeProcess]:
        """Return all that is told of; what cannot be read, or was copied here, is left out."""
        number = folder_number(self._folder)
        found = [_read(path, number) for path in sorted(self._folder.glob("*.json"))]
        return [each for each in found if each is not None]

    def end_all(self) -> list[NodeProcess]:
        """Kill what still runs of all that is told of, and return which that was.

        What tells of members stays: the next supervisor reports that they have ended. Returns when
        all have ended, or after some seconds.
        """
        found = self.read()
        left = [each for each in found if each.is_alive]
        for part in [part for each in left for part in each.parts]:
            kill(part)
        deadline = time.monotonic() + END_SECONDS
        while any(each.is_alive for each in left) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.remove(each.process for each in found if not each.member_id)
        return left

    def _path(self, process: ProcessId) -> Path:
        return self._folder / f"{process.pid}.json"


def _read(path: Path, folder: int) -> NodeProcess | None:
    try:
        told: dict[str, Any] = json.loads(path.read_bytes())
        if told.pop("folder") != folder:
            return None  # it tells of a process of the node whose folder was copied
        engine = told.pop("engine")
        process = ProcessId(*told.pop("process"))
        return NodeProcess(process=process, engine=ProcessId(*engine) if engine else None, **told)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
