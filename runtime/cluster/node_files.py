"""The files in a run folder by which a node's first process tells other processes of the node.

`node.json` says where it is reached, `assignors.json` what computes for its workers: plans ask the
same. `engine.json` is written by the process that owns the workers' one JVM, where they share it.
`slow.json` names the processes that owe an answer, for `status` and `/health`, and is there
only while there is something to tell: its writer waits for nobody. Only their owner may read them,
as settings of an assignor may be secret: every user of the machine can read a command line.
"""

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ...events.log.process import ProcessId, is_alive
from .spec import AssignorSpec

OWNER_ONLY: Final = 0o600
NODE: Final = "node.json"
ASSIGNORS: Final = "assignors.json"
SLOW: Final = "slow.json"
ENGINE: Final = "engine.json"


def write_private(path: Path, content: bytes, *, is_durable: bool = False) -> None:
    """Write a whole file for its owner only; raises `OSError`."""
    made = path.with_suffix(".new")
    made.unlink(missing_ok=True)
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        if is_durable:
            file.flush()
            os.fsync(file.fileno())
    made.rename(path)


def write_json(path: Path, content: object) -> None:
    """Write a value for its owner only; raises `OSError`."""
    write_private(path, json.dumps(content).encode())


@dataclass(frozen=True, slots=True)
class NodeFile:
    """A running node: its first process, the port of its actors, and its REST interface.

    `folder` tells the run folder from its copies, whose word it is not.
    """

    pid: int
    started: str
    host: str
    port: int
    rest: str
    group: str
    folder: int

    @property
    def process(self) -> ProcessId:
        """The node's first process."""
        return ProcessId(self.pid, self.started)

    def is_alive(self) -> bool:
        """Tell whether that very process still runs."""
        return is_alive(self.process)


def read_node(run_folder: Path) -> NodeFile | None:
    """Return what was announced last, None where that cannot be read."""
    try:
        return NodeFile(**json.loads((run_folder / NODE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write_assignors(run_folder: Path, spec: AssignorSpec) -> None:
    """Write the node's assignors and their settings; raises `OSError`."""
    write_json(run_folder / ASSIGNORS, asdict(spec))


def read_assignors(run_folder: Path) -> AssignorSpec:
    """Return what was written last; the default of a node where that cannot be read."""
    try:
        spec = json.loads((run_folder / ASSIGNORS).read_text())
        return AssignorSpec(tuple(spec["names"]), dict(spec["conf"]), int(spec["memory_bytes"]))
    except (OSError, ValueError, TypeError, KeyError):
        return AssignorSpec()


@dataclass(frozen=True, slots=True)
class EngineFile:
    """The JVM that the workers share, and how often it was started anew."""

    owner: ProcessId
    pid: int | None
    """None while it does not run."""
    state: str
    restarts: int
    detail: str


def write_engine(run_folder: Path, told: EngineFile) -> None:
    """Write down how the shared JVM is; what cannot be written is told by nobody."""
    with suppress(OSError):
        write_json(run_folder / ENGINE, asdict(told))


def read_engine(run_folder: Path) -> EngineFile | None:
    """Return what was written last; None: no JVM is shared here."""
    try:
        told: dict[str, Any] = json.loads((run_folder / ENGINE).read_bytes())
        return EngineFile(ProcessId(*told.pop("owner")), **told)
    except (OSError, ValueError, TypeError, KeyError):
        return None


@dataclass(frozen=True, slots=True)
class SlowProcess:
    """A process that is silent, since when (monotonic seconds), and for how long it may be."""

    kind: str
    name: str
    pid: int | None
    since: float
    limit_seconds: float

    def __str__(self) -> str:
        """Return `group connect (pid 4711) has not answered for 7 s, ...`."""
        seconds = max(0.0, time.monotonic() - self.since)
        pid = "" if self.pid is None else f" (pid {self.pid})"
        return (
            f"{f'{self.kind} {self.name}'.strip()}{pid} has not answered for {seconds:.0f} s; after"
            f" {self.limit_seconds:g} s it is killed and started anew"
        )


def write_slow(run_folder: Path, found: Sequence[SlowProcess]) -> None:
    """Write down which processes are silent; what cannot be written is told by nobody."""
    with suppress(OSError):
        if found:
            write_json(run_folder / SLOW, [asdict(each) for each in found])
        else:
            (run_folder / SLOW).unlink(missing_ok=True)


def read_slow(run_folder: Path) -> tuple[SlowProcess, ...]:
    """Return the processes that are silent now."""
    try:
        told: list[dict[str, Any]] = json.loads((run_folder / SLOW).read_bytes())
        return tuple(SlowProcess(**each) for each in told)
    except (OSError, ValueError, TypeError):
        return ()
