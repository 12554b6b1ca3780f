"""The supervisor's handles of the worker processes: start, restart and graceful shutdown.

A worker of `up` is restarted under back-off when its process ends. A worker added by a command
(`fairlead worker`) is shut down when the process of that command ends, and is not restarted.
"""

import logging
import time
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from ....actors.messages.assignors import ForgetWorker
from ....events.log.process import ProcessId, is_alive, kill, process_of
from ....events.placement import ORDINARY
from ...cluster.messages import (
    AddWorker,
    AssignorAt,
    EngineRuns,
    GroupAt,
    Leave,
    ProcessView,
    StartWorker,
    StopWorker,
    WorkerAdded,
    WorkerGone,
    WorkerSays,
    WorkerUp,
)
from ...cluster.node_files import engine_file, plugins_file
from ...cluster.run_folder import RunFolder
from ...cluster.spec import NodeSpec, WorkerTraits
from ..worker.actor import WorkerActor
from ..worker.assembly import load_work
from .assignor_process import AssignorChild
from .children import TICK_SECONDS, ChildProcess, GroupChild, Host

LOGGER = logging.getLogger(__name__)

STARTS_AT_ONCE: Final = 16
"""The maximum number of started processes that have not reported yet."""
BEGIN_SECONDS: Final = 20.0
"""How long a process that does not report counts towards that maximum."""
STUCK_SECONDS: Final = 120.0
"""How long a process may take to report before it is replaced."""


@dataclass(slots=True, kw_only=True)
class WorkerChild(ChildProcess):
    """One worker, with the restarts of its process."""

    kind = "worker"
    actor = WorkerActor
    may_retry_at_once = False

    group: GroupChild
    """The group and the assignor process, whose addresses it gets."""
    assignor: AssignorChild
    traits: WorkerTraits
    tied_to: ProcessId | None = None
    """The process of the command that it was added for."""

    def start(self, host: Host) -> None:
        """Start its next process, a fork of this one with the modules of its work imported."""
        load_work(host.node.engine.kind)
        ChildProcess.start(self, host)

    def order(self, node: NodeSpec) -> StartWorker:
        """Return the first message to a new process: its configuration and addresses."""
        return StartWorker(self.name, node, self.group.address, self.assignor.at, self.traits)

    def idle_seconds(self, now: float) -> float:
        """Return the time until its next check; one tied to a command is checked each tick."""
        rest = ChildProcess.idle_seconds(self, now)
        return rest if self.tied_to is None else min(rest, TICK_SECONDS)

    @property
    def has_to_go(self) -> bool:
        """Whether the command that added it has ended, and it is not shut down yet."""
        is_left = self.tied_to is not None and not is_alive(self.tied_to)
        return is_left and self.state != "leaving"

    def begins(self, now: float) -> bool:
        """Return whether its process is starting, and counts towards `STARTS_AT_ONCE`."""
        return self.is_starting and now < self.started_at + BEGIN_SECONDS

    def is_stuck(self, now: float) -> bool:
        """Return whether its process has not reported for too long and is to be killed."""
        return self.is_starting and not self.end and now >= self.started_at + STUCK_SECONDS


class NodeWorkers:
    """All workers of a node, including those added by commands."""

    def __init__(self, host: Host, group: GroupChild, assignor: AssignorChild) -> None:
        """Use the group and the assignor process, whose addresses workers get."""
        self._host = host
        self._group = group
        self._assignor = assignor
        self._children: dict[str, WorkerChild] = {}
        """By name."""
        self._has_begun = False
        """Whether the node's own workers were started."""
        self._forgets = True
        """Whether the assignor process is to drop the objects of workers that are gone."""

    def __bool__(self) -> bool:
        """Return whether there are any workers."""
        return bool(self._children)

    @property
    def children(self) -> list[WorkerChild]:
        """All workers, with or without a process."""
        return [*self._children.values()]

    def views(self) -> tuple[ProcessView, ...]:
        """Return the state of each worker."""
        return tuple(each.view(self._host.node.url(each.name)) for each in self.children)

    def tell_all(self, message: GroupAt | AssignorAt) -> None:
        """Send a new address to all workers that have a process."""
        for child in self.children:
            if child.address is not None:
                self._host.actor.send(child.address, message)

    # -- starting

    def begin(self) -> None:
        """Start the node's own workers, only once: workers that were stopped later stay stopped."""
        if not self._has_begun:
            self._has_begun = True
            for name in self._host.node.workers:
                self._children.setdefault(name, self._new(name, self._host.node.traits))
            self.start_due()

    def start_due(self) -> None:
        """Start the workers that are due, at most `STARTS_AT_ONCE` at a time.

        A forked process can report only once this one handles messages again, and gives up after a
        time limit: with hundreds of forks at once, some would reach it.
        """
        now = time.monotonic()
        begins = sum(each.begins(now) for each in self.children)
        for child in self.children:
            if begins < STARTS_AT_ONCE and child.is_to_start(now):
                begins += 1
                child.start(self._host)

    def _new(
        self, name: str, traits: WorkerTraits, tied_to: ProcessId | None = None
    ) -> WorkerChild:
        group, assignor = self._group, self._assignor
        return WorkerChild(name, group=group, assignor=assignor, traits=traits, tied_to=tied_to)

    def look(self) -> None:
        """Kill processes that do not report, and shut down workers whose command has ended."""
        now = time.monotonic()
        for child in self.children:
            if child.has_to_go:
                self.leave(child)
            elif child.is_stuck(now):
                child.end = f"it was ended: it did not begin within {STUCK_SECONDS:g} s"
                LOGGER.error("worker %s (pid %s): %s", child.name, child.pid, child.end)
                child.stop(self._host)

    # -- reports

    def register(self, report: WorkerUp) -> None:
        """Mark a worker as running; ignored if it is being stopped already."""
        child = self._children.get(report.name)
        if child is None:
            return
        child.runs(report.pid)
        if child.process is not None:
            member_id, incarnation = report.member_id, report.incarnation
            known = replace(child.process, member_id=member_id, incarnation=incarnation)
            child.know(known, self._host)
        self.start_due()

    def take_engine(self, report: EngineRuns) -> None:
        """Record the process of a worker's engine."""
        child = self._children.get(report.name)
        if child is not None and child.process is not None:
            child.know(replace(child.process, engine=process_of(report.pid)), self._host)

    def take_remark(self, report: WorkerSays) -> None:
        """Record a worker's note for operators."""
        child = self._children.get(report.name)
        if child is not None:
            child.detail = report.detail
            if report.since_ms is not None:
                since = time.localtime(report.since_ms / 1000)
                child.detail += f" {time.strftime('%H:%M:%S', since)}"

    def take_leave(self, report: WorkerGone) -> None:
        """End the process of a worker that has left or failed."""
        child = self._children.get(report.name)
        if child is not None and child.address is not None:
            child.detail = report.error
            self._host.actor.stop(child.address)

    # -- orders

    def add(self, order: AddWorker) -> WorkerAdded:
        """Start one more worker; return its name or an error."""
        node, name = self._host.node, order.name or self._free_name()
        if name in self._children:
            return WorkerAdded(name, f"there is a worker {name} already: choose another name")
        if node.server_assignor and order.traits(WorkerTraits()).abilities != ORDINARY:
            error = "the group computes for the workers of this node: they have no tags or capacity"
            return WorkerAdded(name, error)
        child = self._new(name, order.traits(node.traits), process_of(order.tied_to))
        self._children[name] = child
        child.start(self._host)
        return WorkerAdded(name)

    def _free_name(self) -> str:
        names = map(self._host.node.name_worker, count(1))
        return next(name for name in names if name not in self._children)

    def stop_worker(self, order: StopWorker) -> WorkerAdded:
        """Stop a worker gracefully or by force; return its name, or an error if it is unknown."""
        child = self._children.get(order.name)
        if child is None:
            return WorkerAdded(order.name, f"there is no worker {order.name} on this node")
        process = child.process
        self.leave(child)
        if process is not None and order.force:
            for part in process.parts:
                kill(part)
        return WorkerAdded(order.name)

    def leave_all(self) -> None:
        """Shut all workers down, as the node ends: the assignor process ends with them."""
        self._forgets = False
        for child in self.children:
            self.leave(child, is_temporary=True)

    def leave(self, child: WorkerChild, *, is_temporary: bool = False) -> None:
        """Shut a worker down gracefully; it is not restarted."""
        if child.address is None:
            self._remove(child)
        else:
            child.state = "leaving"
            self._host.actor.send(child.address, Leave(is_temporary))

    def take_end(self, child: WorkerChild) -> bool:
        """Handle the end of a worker's process; return whether it is not restarted."""
        if child.state != "leaving" and child.tied_to is None:
            return False
        self._remove(child)
        return True

    def _remove(self, child: WorkerChild) -> None:
        """Remove a worker, its objects in the assignor process, and its files.

        A worker that was killed could not remove the files itself.
        """
        del self._children[child.name]
        folder = RunFolder(self._host.node.data_dir).path
        engine_file(folder, child.name).unlink(missing_ok=True)
        plugins_file(folder, child.name).unlink(missing_ok=True)
        if self._forgets and (asked := self._assignor.at) is not None:
            self._host.actor.send(asked.address, ForgetWorker(child.name))
