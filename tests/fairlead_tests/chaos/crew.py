"""A node started by `fairlead up`, with Spark, and the actions of tests on it."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from fairlead.actors.tether import tied
from fairlead.events.catalogue import entry_key
from fairlead.events.commits import Committed, Offset
from fairlead.events.entries.codec import decode, fold
from fairlead.events.group import Group
from fairlead.events.log.reader import LogReader
from fairlead.events.model import GroupState, Resource, RunState
from fairlead.events.placement import is_warm
from fairlead.events.records import ClassicGroup, GroupMetadata, TaskStatus
from fairlead.projections.explain.handovers import Handover
from fairlead.projections.explain.reader import EpochReader
from fairlead.runtime.cluster.run_folder import NoNodeError, RunFolder
from fairlead_tests.actor_system import runs, title_of
from fairlead_tests.cluster.forks import PR_SET_CHILD_SUBREAPER

GROUP = "chaos"
PATIENCE_S = 400.0
SESSION_S = 5.0
SETTINGS: Mapping[str, str] = {
    "group.id": GROUP,
    "listeners": "http://127.0.0.1:0",
    "heartbeat.interval.ms": "500",
    "fence.margin.ms": "1000",
    "session.timeout.ms": str(int(SESSION_S * 1000)),
    "scheduled.rebalance.max.delay.ms": "0",
    "worker.restart.backoff.ms": "100",
    "worker.restart.backoff.max.ms": "1000",
    "spark.heap": "512m",
    "spark.master": "local[2]",
}


def quick_to_start(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for short-lived JVMs: only the quick compiler."""
    options = environ.get("JAVA_TOOL_OPTIONS", "")
    return {**environ, "JAVA_TOOL_OPTIONS": f"{options} -XX:TieredStopAtLevel=1"}


@dataclass
class Crew:
    """A node in a folder."""

    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    environ: Mapping[str, str] = field(default_factory=lambda: quick_to_start(os.environ))
    patience_s: float = PATIENCE_S
    group: Group = field(default_factory=lambda: Group(GROUP))
    statuses: list[TaskStatus] = field(default_factory=list[TaskStatus])
    """All logged statuses, in order."""
    _reader: EpochReader = field(default_factory=EpochReader)
    _commands: dict[str, subprocess.Popen[bytes]] = field(
        default_factory=dict[str, subprocess.Popen[bytes]]
    )
    _logs: dict[str, LogReader] = field(default_factory=dict[str, LogReader])
    _rest: str = ""
    _passed: dict[Path, int] = field(default_factory=dict[Path, int])
    """The size of each log file at the last `begin_anew`."""

    @property
    def data_dir(self) -> Path:
        """Return the node's data folder."""
        return self.folder / "data"

    # -- commands

    def up(self, workers: int) -> None:
        """Start the node, and wait until its REST interface answers."""
        self._start("up", f"workers={workers}")

        def answers() -> bool:
            try:
                self._rest = RunFolder(self.data_dir).node().rest
            except NoNodeError:
                return False
            return self.answers()

        self.eventually(answers, "the node is up")

    @property
    def rest(self) -> str:
        """Return the URL of the REST interface."""
        return self._rest

    def begin_anew(self, *workers: str) -> None:
        """Wait until exactly these workers are members and warm; ignore the logs so far."""
        self.eventually(lambda: self.has_warm(*workers), f"{workers} alone are there, and warm")
        self._passed = {each: each.stat().st_size for each in self.logged()}

    def join(self, name: str, protocol: str = "connect") -> None:
        """Run one more worker with its own command."""
        self._start("worker", f"group.protocol={protocol}", name=name)

    def leave(self, name: str) -> None:
        """Stop the command of a worker gracefully."""
        assert self._end(name) == 0, self.said()

    def begin_again(self, name: str, protocol: str) -> None:
        """Run a worker again whose command has ended."""
        self._commands.pop(name).wait(PATIENCE_S)
        self.join(name, protocol)

    def down(self) -> None:
        """Stop everything gracefully."""
        for log in self._logs.values():
            log.close()
        self._logs.clear()
        for name in [*reversed(self._commands)]:
            assert self._end(name) == 0, self.said()

    def answers(self) -> bool:
        """Return whether the node accepts commands."""
        try:
            return httpx.get(f"{self._rest}/health", timeout=2).is_success
        except httpx.HTTPError:
            return False

    def crash(self) -> None:
        """Kill all commands and the processes that they have started."""
        self.kill()
        self._logs.clear()
        self._commands.clear()

    @property
    def up_pid(self) -> int:
        """The process of `up`."""
        return self._commands["up"].pid

    def put(self, connector: str, config: Mapping[str, str]) -> None:
        """Create a connector, or change its config."""
        self._ask("PUT", f"/connectors/{connector}/config", config)

    def delete(self, connector: str) -> None:
        """Delete a connector."""
        self._ask("DELETE", f"/connectors/{connector}")

    def remove(self, *connectors: str) -> None:
        """Delete connectors that still exist, and wait until nothing is left of them."""
        for name in connectors:
            if name in self.look().connectors:
                self.delete(name)
        self.eventually(lambda: self._is_removed(*connectors), f"{connectors} are gone")

    def _is_removed(self, *connectors: str) -> bool:
        group = self.look()
        known = {*group.connectors, *(each.connector for each in group.owner)}
        return known.isdisjoint(connectors)

    @contextlib.contextmanager
    def configured(self, settings: Mapping[str, str]) -> Generator[None]:
        """Override settings of the group in the context."""
        self._ask("PUT", f"/groups/{GROUP}/config", settings)
        yield
        self._ask("PUT", f"/groups/{GROUP}/config", {})

    def page(self, path: str) -> str:
        """Return the response of the REST interface to a GET."""
        return httpx.get(self._rest + path, timeout=30).text

    def _ask(self, method: str, path: str, body: object = None) -> None:
        """Repeat a request until there is a response: the process may be restarting."""

        def is_answered() -> bool:
            try:
                reply = httpx.request(method, self._rest + path, json=body, timeout=10)
            except httpx.HTTPError:
                return False
            assert reply.status_code < 400 or reply.status_code >= 500, reply.text
            return reply.is_success

        self.eventually(is_answered, f"{method} {path} is done")

    # -- processes

    def pid(self, title: str) -> int:
        """Wait for and return the one process with a title, such as `worker w1`."""
        found = list[int]()

        def is_there() -> bool:
            found[:] = [each.pid for each in _below() if title_of(each) == f"fairlead: {title}"]
            return len(found) == 1

        self.eventually(is_there, f"there is a {title}")
        return found[0]

    def workers(self) -> list[str]:
        """Return the workers that have a process now."""
        titles = map(title_of, _below())
        prefix = "fairlead: worker "
        return sorted(each.removeprefix(prefix) for each in titles if each.startswith(prefix))

    def hit(self, title: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to the process with a title, and return its pid."""
        pid = self.pid(title)
        os.kill(pid, number)
        return pid

    def jvm(self, worker: str) -> int:
        """Wait for and return the process of a worker's JVM, or of the shared one."""
        is_shared = self.settings.get("engine.kind") != "embedded"
        owner = f"engine {GROUP}" if is_shared else f"worker {worker}"
        found = list[int]()

        def is_there() -> bool:
            with contextlib.suppress(psutil.NoSuchProcess):  # one that ends as it is looked at
                parent = psutil.Process(self.pid(owner))
                found[:] = [each.pid for each in parent.children() if each.name() == "java"]
            return len(found) == 1

        self.eventually(is_there, f"{worker} has a JVM")
        return found[0]

    def python_workers(self, worker: str) -> list[int]:
        """Return the processes that run Python code for a JVM, and what they are forked from."""
        with contextlib.suppress(psutil.NoSuchProcess):
            below = psutil.Process(self.jvm(worker)).children(recursive=True)
            return [each.pid for each in below if each.name().startswith("python")]
        return []

    # -- state in the logs

    def look(self) -> Group:
        """Return the current group from its log."""
        log = self._log("control")
        for entries in log.tail(self.group.end):
            fold(self.group, entries)
            for entry in entries:
                self._reader.apply(entry)
                if isinstance(record := decode(entry), TaskStatus):
                    self.statuses.append(record)
        return self.group

    def moves_of(self, *connectors: str) -> list[Handover]:
        """Return the completed moves of their tasks, whose new worker has started a batch."""
        self.look()
        return [
            each
            for each in self._reader.handovers()
            if each.resource.connector in connectors and each.resource.is_task
            if each.previous_owner and each.new_owner and each.first_batch_ms
        ]

    def held(self, worker: str) -> set[Resource]:
        """Return the resources of a worker."""
        members = self.look().workers()
        mine = [each for each in members if each.metadata.url.endswith(f"/{worker}")]
        return {resource for member in mine for resource in member.current.assigned}

    def members(self, worker: str) -> set[str]:
        """Return the seats of a worker in the group."""
        members = self.look().workers()
        return {each.member_id for each in members if each.metadata.url.endswith(f"/{worker}")}

    def has_warm(self, *workers: str) -> bool:
        """Return whether exactly these workers are members and warm."""
        members = self.look().members.values()
        warm = [
            member.metadata.url.rpartition("/")[2]
            for member in members
            if all(is_warm(each.metadata) for each in member.metadata.assignors)
        ]
        return sorted(warm) == sorted(workers) and len(warm) == len(members)

    def is_running(self, *connectors: str) -> bool:
        """Return whether the group is Stable and each task of these connectors runs."""
        group = self.look()
        splits = [group.task_configs.get(name) for name in connectors]
        return group.state is GroupState.STABLE and all(
            split is not None
            and all(self._runs(Resource(split.connector, each)) for each in range(len(split.tasks)))
            for split in splits
        )

    def runs(self, *connectors: str) -> None:
        """Wait until that is so."""
        self.eventually(lambda: self.is_running(*connectors), f"all of {connectors} runs")

    def _runs(self, task: Resource) -> bool:
        group = self.group
        holder, status = group.owner.get(task), group.statuses.get(task)
        if holder is None or status is None or status.state is not RunState.RUNNING:
            return False
        member = group.member(holder)
        grant = member.current.assigned.get(task) if member else None
        return status.token.grant_epoch == grant

    def has_told_more(self, task: Resource, before: TaskStatus | None) -> bool:
        """Return whether a task has a new status, or is no longer wanted."""
        status = self.look().statuses.get(task)
        return task not in self.group.configured or status != before

    def files_read(self, connector: str) -> set[str]:
        """Return the names of the source files that a connector has committed."""
        entries = self._log("offsets").scan(*entry_key(Offset, (connector,)))
        found = [record for record in map(decode, entries) if isinstance(record, Offset)]
        return {str(record.partition["path"]) for record in found}

    def reads_all(self, connector: str, files: int) -> None:
        """Wait until so many files are read and published."""
        self.eventually(lambda: len(self.files_read(connector)) == files, f"{connector} is read")
        self.eventually(lambda: not self.unpublished(connector), f"{connector} is published")
        self.look()

    def epochs(self) -> list[int]:
        """Return all logged epochs and generations, in order."""
        found: list[int] = []
        for entries in self._log("control").tail(0):
            for record in map(decode, entries):
                if isinstance(record, GroupMetadata):
                    found.append(record.group_epoch)
                elif isinstance(record, ClassicGroup):
                    found.append(record.generation)
        return found

    def unpublished(self, connector: str) -> int:
        """Return how many batches of a connector are committed but not published."""
        return len(self._log("offsets").scan(*entry_key(Committed, (connector,))))

    def _log(self, name: str) -> LogReader:
        if name not in self._logs:
            path = self.data_dir / "groups" / GROUP / name
            self._logs[name] = LogReader.open(path, GROUP)
        return self._logs[name]

    def told(self) -> str:
        """Return a summary of the group's state."""
        group = self.group
        members = [f"{each.metadata.url}: {each.current}" for each in group.workers()]
        statuses = [str(each) for each in group.statuses.values()]
        stand = f"{group.state} at {group.group_epoch}/{group.assignment_epoch}"
        return "\n".join([stand, *members, *statuses])

    def said(self) -> str:
        """Return the end of the logs, for error messages."""
        logged = self.logged()
        return "\n".join(f"== {path.name}\n{logged[path][-6000:]}" for path in sorted(logged))

    def logged(self) -> dict[Path, str]:
        """Return the log text since the last `begin_anew`, by log file."""
        files = [*self.folder.glob("*.log"), *(self.data_dir / "logs").glob("actors.log*")]
        return {each: each.read_bytes()[self._passed.get(each, 0) :].decode() for each in files}

    def eventually(self, holds: Callable[[], bool], what: str, seconds: float = 0) -> None:
        """Wait until a condition holds; fail the test after a time limit."""
        seconds = seconds or self.patience_s
        deadline = time.monotonic() + seconds
        while not holds():
            node = self._commands.get("up")
            assert node is None or node.poll() is None, f"the node ended\n{self.said()}"
            if time.monotonic() > deadline:
                raise AssertionError(f"not in {seconds:g} s: {what}\n{self.told()}\n{self.said()}")
            time.sleep(0.1)

    # -- the commands' processes

    def _start(self, verb: str, *more: str, name: str = "") -> None:
        settings = {**SETTINGS, **self.settings, "data.dir": str(self.data_dir)}
        given = [*(f"{key}={value}" for key, value in settings.items()), *more]
        options = [part for each in given for part in ("--set", each)]
        named = ["--name", name] if name else []
        program = [sys.executable, "-m", "fairlead.runtime", verb, *options, *named]
        with (self.folder / f"{name or verb}.log").open("ab") as log:
            process = subprocess.Popen(
                tied(program),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=dict(self.environ),
            )
        self._commands[name or verb] = process

    def _end(self, name: str) -> int:
        process = self._commands.pop(name)
        process.terminate()
        return process.wait(PATIENCE_S)

    def kill(self) -> None:
        """Kill all running processes."""
        for log in self._logs.values():
            log.close()
        for process in self._commands.values():
            process.kill()
            process.wait()


@contextlib.contextmanager
def frozen(pid: int) -> Generator[None]:
    """Suspend a process in the context, like an overloaded machine."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _below() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


@contextlib.contextmanager
def crew(folder: Path, *, workers: int = 2, **more: Any) -> Generator[Crew]:
    """Yield a running crew, stop it gracefully, and check that no process is left."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans come to this process
    before = set(_below())
    folder.mkdir(parents=True)
    made = Crew(folder, **more)
    try:
        made.up(workers)
        yield made
        made.down()
    finally:
        made.kill()
        left = _left(before)
    assert left == []


def _left(before: set[psutil.Process]) -> list[str]:
    """Return the processes that are left after a moment, and kill them."""
    deadline = time.monotonic() + 20
    left = [each for each in _below() if each not in before and runs(each)]
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = [each for each in left if runs(each)]
    told = [f"{each.pid} {title_of(each)[:120]}" for each in left]
    for each in left:
        with contextlib.suppress(psutil.Error):
            each.kill()
    for orphan in set(psutil.Process().children()) - before:
        orphan.wait()
    return told
