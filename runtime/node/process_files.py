"""The process records in the run folder, and the reports of members whose process has ended.

There is a file for each process, with its pid and start time: a pid alone may have been reused. A
new supervisor finds here which processes its killed predecessor left running, and which members
have ended.
"""

import json
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
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
"""How many of the last reports are repeated to a new owner of the group; they are idempotent."""


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """One process of a node; for a worker also its member and the process of its engine."""

    kind: str
    name: str
    process: ProcessId
    member_id: str = ""
    incarnation: str = ""
    engine: ProcessId | None = None

    @property
    def parts(self) -> tuple[ProcessId, ...]:
        """The process and that of its engine."""
        return (self.process,) if self.engine is None else (self.process, self.engine)

    @property
    def is_alive(self) -> bool:
        """Whether any of these processes still runs."""
        return any(map(is_alive, self.parts))

    def __str__(self) -> str:
        """Return `worker w1 (pid 4711)`."""
        return f"{self.kind} {self.name} (pid {self.process.pid})"


class ProcessFiles:
    """The files in `<data.dir>/run/processes`.

    If a file cannot be written, this is logged and the process continues.
    """

    def __init__(self, run_folder: Path) -> None:
        self._folder = run_folder / FOLDER

    def write(self, process: NodeProcess) -> None:
        """Write or replace the record of a process."""
        path = self._path(process.process)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_json(path, {**asdict(process), "folder": folder_number(self._folder)})
        except OSError as error:
            LOGGER.warning("%s cannot be written (%s)", path, error.strerror)

    def recorder(self, kind: str, name: str) -> Callable[[ProcessId], None]:
        """Return a writer of the record of a process that is no actor, for each of its starts."""
        return lambda process: self.write(NodeProcess(kind, name, process))

    def remove(self, processes: Iterable[ProcessId]) -> None:
        """Remove the records of processes that have ended."""
        for each in processes:
            with suppress(OSError):
                self._path(each).unlink(missing_ok=True)

    def read(self) -> list[NodeProcess]:
        """Return all records but those that are invalid or of a copied folder."""
        number = folder_number(self._folder)
        found = [_read(path, number) for path in sorted(self._folder.glob("*.json"))]
        return [each for each in found if each is not None]

    def end_all(self) -> list[NodeProcess]:
        """Kill all recorded processes that still run, and return them.

        The records of members are kept: the next supervisor reports their end to the group. Returns
        when all have ended, or after `END_SECONDS`.
        """
        recorded = self.read()
        left = [each for each in recorded if each.is_alive]
        for part in [part for each in left for part in each.parts]:
            kill(part)
        deadline = time.monotonic() + END_SECONDS
        while any(each.is_alive for each in left) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.remove(each.process for each in recorded if not each.member_id)
        return left

    def _path(self, process: ProcessId) -> Path:
        return self._folder / f"{process.pid}.json"


def _read(path: Path, folder: int) -> NodeProcess | None:
    try:
        told: dict[str, Any] = json.loads(path.read_bytes())
        if told.pop("folder") != folder:
            return None  # a record of the node whose folder was copied
        engine = told.pop("engine")
        process = ProcessId(*told.pop("process"))
        return NodeProcess(process=process, engine=ProcessId(*engine) if engine else None, **told)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


class Deaths:
    """The supervisor's reports to the group of members whose process has ended.

    A member is reported once neither its process nor its engine runs: then its work may be
    reassigned. The last reports are repeated to each new process of the group, since the former one
    may have failed before it wrote them, and while one of them is not decided.
    """

    def __init__(self, group_id: str, files: ProcessFiles) -> None:
        self._group_id = group_id
        self._files = files
        self._ending: list[tuple[NodeProcess, int]] = []
        """Workers whose process has ended, with the wall-clock time; the engine may still run."""
        self._reported: deque[EndMember] = deque(maxlen=REMEMBERED)
        """The last reports, to be repeated."""

    @property
    def is_waiting(self) -> bool:
        """Whether there are members to report, now or once their engine has ended."""
        return bool(self._ending)

    def take_over(self, kinds: Collection[str]) -> None:
        """Kill processes of these kinds that an earlier supervisor left, and report their end."""
        for each in self._files.read():
            if each.kind in kinds:
                for part in each.parts:
                    kill(part)
                self.add(each, 0)

    def add(self, process: NodeProcess, ended_ms: int) -> None:
        """Add a process that has ended; a worker's engine may still run.

        `ended_ms` is wall-clock time, 0 if unknown.
        """
        if process.member_id:
            self._ending.append((process, ended_ms))
        else:
            self._files.remove([process.process])

    def take_ended(self) -> Iterator[EndMember]:
        """Yield the reports that are due; each is removed once the next one is requested."""
        ended = [each for each in self._ending if not each[0].is_alive]
        self._ending = [each for each in self._ending if each not in ended]
        for each, ended_ms in ended:
            report = EndMember(self._group_id, each.member_id, each.incarnation, ended_ms)
            self._reported.append(report)
            yield report
            self._files.remove([each.process])

    def repeated(self) -> tuple[EndMember, ...]:
        """Return the last reports."""
        return tuple(self._reported)
