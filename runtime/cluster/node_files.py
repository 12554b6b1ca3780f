"""The files in a run folder with the state of a running node, readable by their owner only.

- `node.json`: pid, port, REST URL and socket, written by the launcher.
- `assignors.json`: the assignors and their settings, which `plan` uses as well. They may be secret,
  so they are passed in a file: every user of the machine can read a command line.
- `engine.json`: the state of the JVM that the workers share, written by the engine process;
  `engine.WORKER.json` that of a worker's own.
- `plugins.WORKER.json`: the metrics and loggers of a worker's plugin hosts, written by the worker.
- `slow.json`: the processes that do not answer, for `status` and `/health`. It exists only while
  there are any.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from ...events.log.files import sync_path
from ...events.log.process import ProcessId, is_alive, process_of
from ..pipeline.engines.engine import JvmHeap
from ..pipeline.plugins.running.figures import Bean
from .spec import AssignorSpec

OWNER_ONLY: Final = 0o600
NODE: Final = "node.json"
ASSIGNORS: Final = "assignors.json"
SLOW: Final = "slow.json"
ENGINE: Final = "engine.json"
UP, STARTING, DOWN, OFF = "running", "starting", "backing-off", "off"
"""The states of an engine; it is off as long as no connector has needed it."""
ENGINES: Final = "engine*.json"
PLUGINS: Final = "plugins.*.json"


def write_private(path: Path, content: bytes, *, is_durable: bool = False) -> None:
    """Replace a file atomically, readable by its owner only; raises `OSError`.

    `is_durable`: after a power cut it is there, with this content.
    """
    new_file = path.with_suffix(".new")
    new_file.unlink(missing_ok=True)
    descriptor = os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        if is_durable:
            file.flush()
            os.fsync(file.fileno())
    new_file.rename(path)
    if is_durable:
        sync_path(path.parent)


def write_json(path: Path, content: object) -> None:
    """Replace a file by the JSON of a value, readable by its owner only; raises `OSError`."""
    write_private(path, json.dumps(content).encode())


@dataclass(frozen=True, slots=True)
class NodeFile:
    """A running node: its launcher process, the port of its actors, and its REST URL.

    `folder` is the inode of the run folder: in a copy of the folder this file is not valid.
    """

    pid: int
    started: str
    host: str
    port: int
    rest: str
    group: str
    folder: int
    socket: str = ""
    """The path of the Unix socket of its REST interface."""
    version: str = ""
    """The version of fairlead that it runs; empty: one that did not say so."""

    @property
    def process(self) -> ProcessId:
        """The launcher: pid and start time."""
        return ProcessId(self.pid, self.started)

    def is_alive(self) -> bool:
        """Return whether the launcher still runs; another process with its pid does not count."""
        return is_alive(self.process)


def read_node(run_folder: Path) -> NodeFile | None:
    """Return the contents of `node.json`, None if it is missing or invalid."""
    try:
        return NodeFile(**json.loads((run_folder / NODE).read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write_assignors(run_folder: Path, spec: AssignorSpec) -> None:
    """Write the node's assignors and their settings; raises `OSError`."""
    write_json(run_folder / ASSIGNORS, asdict(spec))


def read_assignors(run_folder: Path) -> AssignorSpec:
    """Return the contents of `assignors.json`; the defaults if it is missing or invalid."""
    try:
        spec = json.loads((run_folder / ASSIGNORS).read_text())
        return AssignorSpec(tuple(spec["names"]), dict(spec["conf"]), int(spec["memory_bytes"]))
    except (OSError, ValueError, TypeError, KeyError):
        return AssignorSpec()


@dataclass(frozen=True, slots=True)
class EngineFile:
    """The state of a JVM: the shared one, or a worker's own."""

    owner: ProcessId
    pid: int | None
    """The JVM's process, None while it is down."""
    state: str
    restarts: int
    detail: str
    heap: JvmHeap | None = None
    """None: it is not known."""


def engine_file(run_folder: Path, worker: str = "") -> Path:
    """Return the file of a worker's engine, or without a name of the shared one."""
    return run_folder / (f"engine.{quote(worker, safe='')}.json" if worker else ENGINE)


def write_engine(file: Path, engine: EngineFile) -> None:
    """Write the state of an engine; errors are ignored."""
    with suppress(OSError):
        write_json(file, asdict(engine))


def read_engines(run_folder: Path) -> dict[str, EngineFile]:
    """Return a node's engines by worker; "" is the shared one.

    One whose process has ended is down, whatever it said last.
    """
    found = ((path, _read_engine(path)) for path in run_folder.glob(ENGINES))
    return {unquote(path.name[7:-5]): each for path, each in found if each is not None}


def _read_engine(file: Path) -> EngineFile | None:
    try:
        content: dict[str, Any] = json.loads(file.read_bytes())
        heap = content.pop("heap", None)
        owner = ProcessId(*content.pop("owner"))
        engine = EngineFile(owner, **content, heap=heap and JvmHeap(*heap))
    except (OSError, ValueError, TypeError, KeyError):
        return None
    if is_alive(engine.owner):
        return engine
    why = "the process that owns the workers' JVM has ended, and the JVM with it"
    return replace(engine, pid=None, state=DOWN, detail=why, heap=None)


@dataclass(frozen=True, slots=True)
class PluginsFile:
    """The metrics of a worker's plugin hosts, and the levels of their loggers by name."""

    beans: Sequence[Bean]
    loggers: Mapping[str, str]


def plugins_file(run_folder: Path, worker: str) -> Path:
    """Return the file of a worker's plugin hosts."""
    return run_folder / f"plugins.{quote(worker, safe='')}.json"


def write_plugins(file: Path, plugins: PluginsFile) -> None:
    """Write what the plugin hosts of this process tell; errors are ignored."""
    with suppress(OSError):
        owner = process_of(os.getpid())
        write_json(file, {"owner": owner, "beans": plugins.beans, "loggers": plugins.loggers})


def read_plugins(run_folder: Path) -> dict[str, PluginsFile]:
    """Return the metrics and loggers of plugin hosts by worker; without those that have ended."""
    found = ((path, _read_plugins(path)) for path in sorted(run_folder.glob(PLUGINS)))
    return {unquote(path.name[8:-5]): each for path, each in found if each is not None}


def _read_plugins(file: Path) -> PluginsFile | None:
    try:
        content: dict[str, Any] = json.loads(file.read_bytes())
        if not is_alive(ProcessId(*content["owner"])):
            return None
        return PluginsFile([Bean(*each) for each in content["beans"]], content["loggers"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


@dataclass(frozen=True, slots=True)
class SlowProcess:
    """A process that does not answer, since when (monotonic seconds), and its time limit."""

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
            f" {self.limit_seconds:g} s it is killed and restarted"
        )


def write_slow(run_folder: Path, slow: Sequence[SlowProcess]) -> None:
    """Write `slow.json`, or remove it if there is no such process; errors are ignored."""
    with suppress(OSError):
        if slow:
            write_json(run_folder / SLOW, [asdict(each) for each in slow])
        else:
            (run_folder / SLOW).unlink(missing_ok=True)


def read_slow(run_folder: Path) -> tuple[SlowProcess, ...]:
    """Return the processes that do not answer at the moment."""
    try:
        slow: list[dict[str, Any]] = json.loads((run_folder / SLOW).read_bytes())
        return tuple(SlowProcess(**each) for each in slow)
    except (OSError, ValueError, TypeError):
        return ()


def spark_folder(data_dir: Path, name: str) -> Path:
    """Return the folder of a JVM's own files; it and those above it are their owner's alone.

    So nobody else reaches the files in it, whatever their modes. A umask of the JVM would make them
    alike, but also the files of sinks, which others are to read. Raises `OSError`.
    """
    folder = data_dir / "cache" / "spark" / name
    for each in (folder.parent.parent, folder.parent, folder):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
        each.chmod(0o700)  # also one of a release that made it for everybody
    return folder
