"""A node under test: its processes, its log, and the work of its workers."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from fairlead.actors.messages.commands import CommandReply, GroupCommand
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import DeleteConnector, PutConnector
from fairlead.actors.transport.actor import Address
from fairlead.actors.transport.system import System, UnreachableError, connect
from fairlead.events.group import Group
from fairlead.events.log.reader import LogReader
from fairlead.events.model import GroupState, MemberState, Resource, RunState
from fairlead.projections.follow.group import Follower
from fairlead.runtime.cluster.messages import (
    AddWorker,
    DescribeNode,
    NodeView,
    StopWorker,
    Whereabouts,
    WhereIs,
    WorkerAdded,
)
from fairlead.runtime.cluster.run_folder import RunFolder
from fairlead.runtime.processes.guard import descendants
from fairlead_tests.actor_system import runs, title_of
from fairlead_tests.cluster.deeds import Deed, Span, cut, deeds_in, spans_of, wall_ms
from fairlead_tests.cluster.forks import Fork

GROUP = "connect"
PATIENCE_SECONDS = 120.0


def eventually(holds: Callable[[], bool], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until a condition holds; fail the test after a time limit."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not in {seconds:g} s: {what}"
        time.sleep(0.02)


@dataclass
class Node:
    """A running node, and the test's connection to it."""

    folder: Path
    launcher: subprocess.Popen[bytes] | Fork
    root: Path = Path("/")
    """The root of the node's file system."""
    seen: set[psutil.Process] = field(default_factory=set[psutil.Process])
    open_files: set[str] = field(default_factory=set[str])
    _system: System | None = None
    _follower: Follower | None = None
    _killed: dict[int, int] = field(default_factory=dict[int, int])
    """The times at which processes were killed here, by pid."""

    @property
    def data_dir(self) -> Path:
        """Return the data folder of the node."""
        return self.root / (self.folder / "data").relative_to("/")

    # -- processes

    def processes(self) -> list[psutil.Process]:
        """Return the launcher and all its descendants."""
        if self.launcher.poll() is not None:
            return []
        found = list[psutil.Process]()
        for pid in (self.launcher.pid, *descendants(self.launcher.pid)):
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(pid))
        for each in set(found) - self.seen:
            with contextlib.suppress(psutil.Error):
                self.open_files |= {file.path for file in each.open_files() if file.mode != "r"}
        self.seen.update(found)
        return found

    def pids(self, title: str) -> list[int]:
        """Return the processes with a title, such as `worker w1`."""
        found = [each for each in self.processes() if runs(each)]
        return [each.pid for each in found if title_of(each) == f"fairlead: {title}"]

    def pid(self, title: str) -> int:
        """Wait for and return the one process with a title."""
        found = list[int]()

        def is_there() -> bool:
            found[:] = self.pids(title)
            return len(found) == 1

        eventually(is_there, f"there is a {title}")
        return found[0]

    def hit(self, title: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to the process with a title, and return its pid."""
        pid = self.pid(title)
        os.kill(pid, number)
        if number == signal.SIGKILL:
            self._killed[pid] = wall_ms()
        return pid

    # -- commands

    def once(self, address: Callable[[], Address | None], message: object) -> Any:
        """Send a request once; return None if there is no reply."""
        try:
            if self._system is None:
                self._system = connect(RunFolder(self.data_dir).system_address())
            found = address()
            answer = None if found is None else self._system.ask(found, message, 2)
        except UnreachableError:
            answer = None
        if answer is None:
            self.hang_up()
        return answer

    def ask(self, address: Callable[[], Address | None], message: object) -> Any:
        """Repeat a request until there is a reply: the process may be restarting."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if (answer := self.once(address, message)) is not None:
                return answer
            time.sleep(0.05)
        raise AssertionError(f"nobody answered {message}: {self.log()}")

    def hang_up(self) -> None:
        """Close the connection: the actor system may have been replaced."""
        if self._system is not None:
            self._system.close()
            self._system = None

    def supervisor(self) -> Address | None:
        """Return the address of the supervisor."""
        assert self._system is not None
        return self._system.named("supervisor")

    def group_address(self) -> Address | None:
        """Return the address of the group."""
        assert self._system is not None
        supervisor = self.supervisor()
        if supervisor is None:
            return None
        found = self._system.ask(supervisor, WhereIs(GROUP), 2)
        return found.address if isinstance(found, Whereabouts) else None

    def view(self) -> NodeView:
        """Return the supervisor's view of the processes."""
        view = self.ask(self.supervisor, DescribeNode())
        assert isinstance(view, NodeView)
        return view

    def states(self) -> dict[str, str]:
        """Return the supervisor's view of each worker."""
        return {worker.name: worker.state for worker in self.view().workers}

    def put(self, connector: str, tasks: int) -> None:
        """Create a connector, or change its number of tasks."""
        config = {"name": connector, "tasks.max": str(tasks)}
        self.command(PutConnector(GROUP, connector, config))

    def delete(self, connector: str) -> None:
        """Delete a connector."""
        self.command(DeleteConnector(GROUP, connector))

    def command(self, command: GroupCommand) -> None:
        """Send a command to the group."""
        reply = self.ask(self.group_address, command)
        assert isinstance(reply, CommandReply), reply
        assert reply.error is Error.NONE, reply

    def add(self, name: str, tied_to: int | None = None, mode: str | None = None) -> None:
        """Add a worker, with another protocol mode than the node's if given."""
        order = AddWorker(tied_to or os.getpid(), name, classic_mode=mode)
        added = self.ask(self.supervisor, order)
        assert added == WorkerAdded(name)

    def remove(self, name: str) -> None:
        """Stop a worker permanently."""
        assert self.ask(self.supervisor, StopWorker(name)) == WorkerAdded(name)

    # -- what came of it

    def group(self) -> Group:
        """Return the group from its log."""
        if self._follower is None:
            path = self.data_dir / "groups" / GROUP / "control"
            self._follower = Follower(GROUP, LogReader.open(path, GROUP))
        return self._follower.catch_up()

    def forget_log(self) -> None:
        """Have the log read again from its beginning."""
        if self._follower is not None:
            self._follower.close()
            self._follower = None

    def held(self) -> dict[str, set[str]]:
        """Return the resources of each worker, by name."""
        return {
            member.metadata.url.rpartition("/")[2]: {str(each) for each in member.current.assigned}
            for member in self.group().workers()
        }

    def shares(self) -> list[int]:
        """Return the numbers of tasks of the workers, sorted."""
        members = self.group().workers()
        return sorted(sum(each.is_task for each in member.current.assigned) for member in members)

    def is_stable(self, *workers: str) -> bool:
        """Return whether exactly these workers own all resources, and all are RUNNING."""
        group = self.group()
        held = [each for resources in self.held().values() for each in resources]
        if workers and sorted(self.held()) != sorted(workers):
            return False
        return (
            group.state is GroupState.STABLE
            and sorted(held) == sorted(map(str, group.configured))
            and all(_is_running(group, each) for each in group.configured)
        )

    def settles(self, *workers: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until the group is Stable with exactly these workers, and everything runs."""
        deadline = time.monotonic() + seconds
        while not self.is_stable(*workers):
            if time.monotonic() > deadline:
                group = self.group()
                raise AssertionError(
                    f"{group.state} at {group.group_epoch}/{group.assignment_epoch}: "
                    f"{self.held()}, {self.states()}\n{self.log()[-4000:]}"
                )
            time.sleep(0.02)

    def runs_tasks(self, connector: str, tasks: int, *workers: str) -> None:
        """Wait until a connector has its tasks, and everything runs on these workers."""
        wanted = {Resource(connector), *(Resource(connector, task) for task in range(tasks))}
        eventually(lambda: wanted <= self.group().configured, f"{connector} has {tasks} tasks")
        self.settles(*workers)

    def log(self) -> str:
        """Return the logs of all processes of the node."""
        files = sorted((self.data_dir / "logs").glob("actors.log*"))
        return "\n".join(path.read_text() for path in files)

    def deeds(self) -> list[Deed]:
        """Return the starts and stops that the workers have logged."""
        return deeds_in(self.log())

    def spans(self) -> list[Span]:
        """Return the spans in which each process ran each resource, until it was killed."""
        found = spans_of(self.deeds())
        for pid, at_ms in self._killed.items():
            found = cut(found, pid, at_ms)
        return found

    # -- the end

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End the node by a signal and return its exit code."""
        if self.launcher.poll() is None:
            self.processes()
            self.launcher.send_signal(number)
        return self.launcher.wait(60)


def _is_running(group: Group, resource: Resource) -> bool:
    status = group.statuses.get(resource)
    holder = group.owner.get(resource)
    if status is None or holder is None or status.state is not RunState.RUNNING:
        return False
    member = group.member(holder)
    assert member is not None
    is_its = status.token.grant_epoch == member.current.assigned.get(resource)
    return is_its and member.current.state is MemberState.STABLE
