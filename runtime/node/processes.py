"""The processes of a node as its run folder tells of them, and the members that ended with them.

There is a file for each process. A pid alone may be another's by now, so it names the start time
as well. The successor of a process that was killed finds here what it left running, and which
member has ended with it.
"""

import json
import logging
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ...actors.messages.orders import EndMember
from ...events.log.process import ProcessId, is_alive, kill
from ..cluster.identity import folder_number
from ..cluster.node_files import write_json

LOGGER = logging.getLogger(__name__)
FOLDER: Final = "processes"
END_SECONDS: Final = 10.0
REMEMBERED: Final = 64
"""How many of the last reports are repeated; a report that is repeated changes nothing."""


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

        The files of members stay: the next supervisor reports that they have ended. Returns when
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


class Deaths:
    """The members that have ended with their processes, as a supervisor reports them to its group.

    A member's work may go elsewhere once nothing of it runs: neither its process nor its engine.
    Each new process of the group is told the last reports again: the one before it may not have
    written them.
    """

    def __init__(self, group_id: str, files: ProcessFiles) -> None:
        self._group_id = group_id
        self._files = files
        self._ending: list[tuple[NodeProcess, int]] = []
        """Workers whose process has ended, with the wall clock of it; an engine may still run."""
        self._reported: deque[EndMember] = deque(maxlen=REMEMBERED)
        """The last reports, for a new process of the group."""

    @property
    def is_waiting(self) -> bool:
        """Whether there is anything to report."""
        return bool(self._ending)

    def take_over(self, kinds: Collection[str]) -> None:
        """End what an earlier supervisor left running of these kinds: nobody saw when it ended."""
        for each in self._files.read():
            if each.kind in kinds:
                for part in each.parts:
                    kill(part)
                self.add(each, 0)

    def add(self, process: NodeProcess, ended_ms: int) -> None:
        """Take note of a process that has ended; a worker's engine may still be ending.

        `ended_ms` is wall clock, 0 where nobody saw it.
        """
        if process.member_id:
            self._ending.append((process, ended_ms))
        else:
            self._files.remove([process.process])

    def take_ended(self) -> Iterator[EndMember]:
        """Yield the reports that are due; one counts as said when the next is asked for."""
        ended = [each for each in self._ending if not each[0].is_alive]
        self._ending = [each for each in self._ending if each not in ended]
        for each, ended_ms in ended:
            report = EndMember(self._group_id, each.member_id, each.incarnation, ended_ms)
            self._reported.append(report)
            yield report
            self._files.remove([each.process])

    def repeated(self) -> tuple[EndMember, ...]:
        """Return what was said before, for a group that may not have heard it."""
        return tuple(self._reported)
