"""The workers of a node, as its supervisor starts them, lets them go and replaces them.

A worker of `up` is replaced by a new process under back-off. One that was added for a command is
tied to the process of that command: it is let go when that has ended, and not replaced.
"""

import logging
import time
from dataclasses import dataclass, replace
from typing import Final

from ...actors.messages.assignors import ForgetWorker
from ...events.log.process import ProcessId, is_alive, kill, process_of
from ...events.placement import ORDINARY
from ..cluster.messages import (
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
from ..cluster.spec import NodeSpec, WorkerTraits
from .assignor_process import AssignorChild
from .children import ChildProcess, GroupChild, Host
from .worker.actor import WorkerActor
from .worker.assembly import load_work

LOGGER = logging.getLogger(__name__)

STARTS_AT_ONCE: Final = 16
"""How many workers at most have been started and have not begun yet."""
BEGIN_SECONDS: Final = 20.0
"""How long a process that does not begin keeps others from being started."""
STUCK_SECONDS: Final = 120.0
"""How long a worker's process may take to begin before another one is started in its place."""


@dataclass(slots=True, kw_only=True)
class WorkerChild(ChildProcess):
    """One worker, through all of its processes."""

    kind = "worker"
    actor = WorkerActor
    may_retry_at_once = False

    group: GroupChild
    """Whom it is to speak with, as is the next."""
    assignor: AssignorChild
    traits: WorkerTraits
    tied_to: ProcessId | None = None
    """The process of the command that it was added for."""

    def start(self, host: Host) -> None:
        """Start its next process, a fork that finds the code of its work loaded."""
        load_work(host.node.engine.kind)
        ChildProcess.start(self, host)

    def order(self, node: NodeSpec) -> StartWorker:
        """Return what its process is told first."""
        return StartWorker(self.name, node, self.group.address, self.assignor.at, self.traits)

    @property
    def has_to_go(self) -> bool:
        """Whether the command that it was added for has ended, and it was not told so yet."""
        is_left = self.tied_to is not None and not is_alive(self.tied_to)
        return is_left and self.state != "leaving"

    def begins(self, now: float) -> bool:
        """Tell whether its process may still begin, and others had better wait for that."""
        return self.is_starting and now < self.started_at + BEGIN_SECONDS

    def is_stuck(self, now: float) -> bool:
        """Tell whether its process should have begun long ago, and is not being ended yet."""
        return self.is_starting and not self.end and now >= self.started_at + STUCK_SECONDS


class NodeWorkers:
    """All workers of a node, those included that were added by hand."""

    def __init__(self, host: Host, group: GroupChild, assignor: AssignorChild) -> None:
        """Take those whom a worker is to speak with."""
        self._host = host
        self._group = group
        self._assignor = assignor
        self._children: dict[str, WorkerChild] = {}
        """By name."""
        self._has_begun = False
        """Whether the node's own workers were started."""

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self._children)

    @property
    def children(self) -> list[WorkerChild]:
        """All of them, whether they have a process or not."""
        return [*self._children.values()]

    def views(self) -> tuple[ProcessView, ...]:
        """Return what others are told of each."""
        return tuple(each.view(self._host.node.url(each.name)) for each in self.children)

    def tell_all(self, message: GroupAt | AssignorAt) -> None:
        """Tell all workers that have a process whom they speak with from now on."""
        for child in self.children:
            if child.address is not None:
                self._host.actor.send(child.address, message)

    # -- starting

    def begin(self) -> None:
        """Start the node's own workers, once: those that were let go later stay away."""
        if not self._has_begun:
            self._has_begun = True
            for name in self._host.node.workers:
                self._children.setdefault(name, self._new(name, self._host.node.traits))
            self.start_due()

    def start_due(self) -> None:
        """Start workers that are to start and have rested, only a few at a time.

        A process that was forked is heard only once this one listens again, and gives up after a
        while: of hundreds at a time some would not be heard in time.
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
        """End processes that do not begin, and let those go whose command has ended."""
        now = time.monotonic()
        for child in self.children:
            if child.has_to_go:
                self.leave(child)
            elif child.is_stuck(now):
                child.end = f"it was ended: it did not begin within {STUCK_SECONDS:g} s"
                LOGGER.error("worker %s (pid %s): %s", child.name, child.pid, child.end)
                child.stop(self._host)

    # -- what they say

    def take_up(self, report: WorkerUp) -> None:
        """Take note of a process that runs; one that was let go meanwhile is not heard."""
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
        """Take note of the process of a worker's engine."""
        child = self._children.get(report.name)
        if child is not None and child.process is not None:
            child.know(replace(child.process, engine=process_of(report.pid)), self._host)

    def take_remark(self, report: WorkerSays) -> None:
        """Show what a worker's operators should know."""
        child = self._children.get(report.name)
        if child is not None:
            child.detail = report.detail

    def take_leave(self, report: WorkerGone) -> None:
        """End the process of a worker that has left, or cannot go on."""
        child = self._children.get(report.name)
        if child is not None and child.address is not None:
            child.detail = report.error
            self._host.actor.stop(child.address)

    # -- coming and going by hand

    def add(self, order: AddWorker) -> WorkerAdded:
        """Start one more worker, and return its name, or why there is none."""
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
        number = 1
        while f"w{number}" in self._children:
            number += 1
        return f"w{number}"

    def let_go(self, order: StopWorker) -> WorkerAdded:
        """Have a worker leave, or end it by force; return its name, or that there is none."""
        child = self._children.get(order.name)
        if child is None:
            return WorkerAdded(order.name, f"there is no worker {order.name} on this node")
        process = child.process
        self.leave(child)
        if process is not None and order.force:
            for part in process.parts:
                kill(part)
        return WorkerAdded(order.name)

    def leave(self, child: WorkerChild, *, is_temporary: bool = False) -> None:
        """Let a worker leave in good order; it does not come back."""
        if child.address is None:
            self._remove(child)
        else:
            child.state = "leaving"
            self._host.actor.send(child.address, Leave(is_temporary))

    def take_end(self, child: WorkerChild) -> bool:
        """Take note of the end of a worker's process; return whether it stays away for good."""
        if child.state != "leaving" and child.tied_to is None:
            return False
        self._remove(child)
        return True

    def _remove(self, child: WorkerChild) -> None:
        """Forget a worker; the assignors let go of what they keep for it."""
        del self._children[child.name]
        if (asked := self._assignor.at) is not None:
            self._host.actor.send(asked.address, ForgetWorker(child.name))
