"""The supervisor: it starts the node's actors, hears of their ends, and starts them anew.

It has no log, no socket and no thread of its own, so what it forks is clean. A group that
ends is opened again and its new address told to all; a worker of `up` is replaced by a new
process under back-off; a worker that is tied to a command goes with it.
"""

import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...actors.door.actor import Actor, Address, Failure, address_key
from ...actors.group.actor import GroupActor, GroupOpened, OpenGroup, Ping, Pong
from ...actors.messages.assignors import ForgetWorker
from ...actors.messages.commands import CommandReply
from ...actors.messages.errors import Error
from ...actors.messages.orders import ReleaseSeats
from ...events.log.process import kill, process_of
from ...events.placement import ORDINARY
from ..cluster.messages import (
    AddWorker,
    AllLeft,
    AssignorAt,
    AssignorHangs,
    AssignorsOpen,
    AssignorUp,
    Begin,
    Begun,
    DescribeNode,
    EngineRuns,
    GroupAt,
    Leave,
    NodeView,
    OpenAssignors,
    ProcessView,
    ShutDown,
    StartWorker,
    StopWorker,
    Whereabouts,
    WhereIs,
    WorkerAdded,
    WorkerGone,
    WorkerSays,
    WorkerUp,
)
from ..cluster.spec import RESTART_BACKOFF_MS, NodeSpec, WorkerTraits
from . import assignor_process
from .assignors.actor import AssignorActor
from .children import STUCK_SECONDS, ChildProcess, Deaths
from .processes import NodeProcess, ProcessFiles
from .silence import GroupCare
from .worker.actor import WorkerActor

LOGGER = logging.getLogger(__name__)
TICK_SECONDS = 0.1
LOOK_SECONDS = 0.01
STARTS_AT_ONCE = 16
"""How many workers at most have been started and have not begun yet."""
LOOK = "look"
"""What the timer brings that looks again whether an engine has ended."""
SUPERVISOR = "supervisor"
ASSIGNOR = "assignor"
"""The one assignor process: it runs all assignors of the node's workers."""

KINDS: dict[str, type[Actor]] = {
    "group": GroupActor,
    "assignor": AssignorActor,
    "worker": WorkerActor,
}


class Supervisor(Actor):
    """Starts the node's actors and keeps them running."""

    def __init__(self) -> None:
        super().__init__()
        self._node: NodeSpec | None = None
        """What to run; None before the launcher has said it."""
        self._has_begun = False
        """Whether the node's own workers were started."""
        self._is_ending = False
        """Whether nothing is to be started any more."""
        self._child_processes: dict[tuple[str, str], ChildProcess] = {}
        """The processes that it answers for, by kind and name."""
        self._waiting_for_begin: list[Address] = []
        """Who is to hear that the node has begun."""
        self._waiting_for_end: list[Address] = []
        """Who is to hear that all workers have left."""
        self._deaths = Deaths("")
        """The members whose processes have ended, for the group."""
        self._files: ProcessFiles | None = None
        """The run folder's files about processes; None before there is a node."""
        self._handlers: dict[type, Callable[[Any, Address], None]] = {
            Begin: self._begin,
            GroupOpened: self._group_opened,
            WorkerUp: self._worker_up,
            WorkerGone: self._worker_gone,
            WorkerSays: self._worker_says,
            EngineRuns: self._engine_runs,
            AssignorUp: self._assignor_up,
            AssignorsOpen: self._assignors_open,
            AssignorHangs: self._assignor_hangs,
            AddWorker: self._add,
            StopWorker: self._let_go,
            WhereIs: self._where,
            DescribeNode: self._describe,
            ShutDown: self._shut_down,
            Failure: self._note_failure,
            CommandReply: self._note_reply,
            Pong: self._group_answers,
        }

    def receive(self, message: object, sender: Address) -> None:
        """Take an order, a question or a report."""
        handle = self._handlers.get(type(message))
        if handle is None:
            self.send(sender, Failure(f"no order of mine: {type(message).__name__}"))
        else:
            handle(message, sender)

    def woken(self, payload: object) -> None:
        """Start what is due to start again, and report who has ended."""
        if payload is LOOK:
            self._report_deaths()
            return
        self.wake_after(TICK_SECONDS)
        now = time.monotonic()
        self._start_due(now)
        for child in list(self._child_processes.values()):
            if self._opens_too_slowly(child, now):
                self._replace_assignor(child, "it did not load the assignors in time")
            else:
                assignor_process.kill_if_due(child, now)
                self._look_after_group(child, now)
                self._end_if_stuck(child, now)

    def undelivered(self, message: object, to: Address) -> None:
        """Ask the group again whether it is there; replace a worker that cannot be reached."""
        child = self._find(to)
        if isinstance(message, Ping) and child is not None and child.care is not None:
            child.care.lost()
            return
        super().undelivered(message, to)
        if isinstance(message, StartWorker) and child is not None and child.process is not None:
            kill(child.process.process)  # told twice, it would begin twice

    def child_exited(self, child: Address) -> None:
        """Have an actor that ended started again, if it is still wanted."""
        ended = self._find(child)
        if ended is None:
            return
        if ended.kind == "assignor":
            self._assignor_ended(ended)
        elif ended.end:
            ended.detail = ended.end
        LOGGER.warning("%s %s (pid %s) ended: %s", ended.kind, ended.name, ended.pid, ended.detail)
        ended.address, ended.pid = None, None
        self._note_end(ended)
        if not ended.is_wanted or ended.tied_to is not None:
            del self._child_processes[ended.kind, ended.name]
            self._forget(ended.name)
            self._tell_if_all_left()
            return
        self._back_off(ended)

    def stopping(self) -> None:
        """Leave nothing behind that assignors have started."""
        self._end_assignor()

    # -- starting

    def _begin(self, order: Begin, sender: Address) -> None:
        node = order.node
        if self._node is None:
            self._node = node
            self._files = ProcessFiles(node.data_dir / "run")
            self._deaths = Deaths(node.group_id)
            self._take_over(self._files)
            self._start(self._new_child("group", node.group_id))
            self._know_myself()
            self._start(self._new_child("assignor", ASSIGNOR))
            self.wake_after(TICK_SECONDS)
        self._waiting_for_begin.append(sender)
        self._answer_begin_if_ready()

    def _new_child(self, kind: str, name: str, tied_to: int | None = None) -> ChildProcess:
        child = ChildProcess(kind, name, tied_to=tied_to)
        self._child_processes[kind, name] = child
        return child

    def _start(self, child: ChildProcess) -> None:
        child.starts(self.create(KINDS[child.kind], child.name), time.monotonic())
        if child.kind == "group" and self._node is not None:
            child.care = GroupCare(self._node.answer_timeout_ms / 1000, time.monotonic())
        if (pid := self.pid_of(child.address)) is not None:
            self._know(child, NodeProcess(child.kind, child.name, process_of(pid)))
        if child.kind == "group" and self._node is not None:
            folder = self._node.group_folder(child.name)
            order = OpenGroup(child.name, folder, self._node.settings, child.has_run)
            self.send(child.address, order)
        elif child.kind == "worker":
            self._brief(child)
        elif self._node is not None:
            opening = OpenAssignors(self._node.assignors, self._node.assignor_log)
            self.send(child.address, opening)

    def _brief(self, child: ChildProcess) -> None:
        if self._node is not None:
            group = self._child_processes["group", self._node.group_id].address
            tied_to, traits = child.tied_to, child.traits or self._node.traits
            asked = self._assignor()
            order = StartWorker(child.name, self._node, group, asked, tied_to, traits)
            self.send(child.address, order)

    def _group_opened(self, opened: GroupOpened, sender: Address) -> None:
        child = self._child_processes["group", opened.group_id]
        child.runs(opened.pid)
        for worker in self._workers():
            self.send(worker.address, GroupAt(sender, opened.coordinator_epoch))
        self._release_seats(sender)
        for report in self._deaths.repeated():
            self.send(sender, report)
        self._report_deaths()
        self._start_workers()
        self._answer_begin_if_ready()

    def _release_seats(self, group: Address) -> None:
        """Tell the group which static workers there are: it waits for no others of this node."""
        node = self._node
        if node is not None and node.node_id:
            named = frozenset(filter(None, map(node.instance_id, node.workers)))
            self.send(group, ReleaseSeats(node.group_id, node.node_id, named, node.place))

    def _start_workers(self) -> None:
        """Start the node's own workers, once: those that were let go later stay away."""
        if self._node is None or self._has_begun or self._is_ending:
            return
        self._has_begun = True
        for name in self._node.workers:
            if ("worker", name) not in self._child_processes:
                self._new_child("worker", name)
        self._start_due(time.monotonic())

    def _start_due(self, now: float) -> None:
        """Start what is to start and has rested; of workers only a few at a time.

        What is forked is heard of only once this process listens again, and gives up after a
        while: hundreds at a time would not be heard in time.
        """
        if self._is_ending:
            return
        children = [*self._child_processes.values()]
        begins = sum(each.kind == "worker" and each.begins(now) for each in children)
        for child in children:
            if child.is_to_start(now) and (child.kind != "worker" or begins < STARTS_AT_ONCE):
                begins += child.kind == "worker"
                self._start(child)

    def _answer_begin_if_ready(self) -> None:
        """Say that the node has begun, once the group takes commands and assignors are loaded."""
        waited_for = [
            each for each in self._child_processes.values() if each.kind in {"group", "assignor"}
        ]
        if all(child.state == "running" for child in waited_for):
            self._answer_begin(Begun())

    def _answer_begin(self, begun: Begun) -> None:
        for asker in self._waiting_for_begin:
            self.send(asker, begun)
        self._waiting_for_begin.clear()

    def _back_off(self, child: ChildProcess) -> None:
        """Let an actor rest before it is started again: the first time hardly, then longer."""
        backoff_ms = self._node.backoff_ms if self._node else RESTART_BACKOFF_MS
        if child.back_off(time.monotonic(), backoff_ms) and not self._is_ending:
            self._start(child)

    # -- a group that does not answer

    def _look_after_group(self, child: ChildProcess, now: float) -> None:
        """Ask a group's process whether it is there, and end one that has been silent too long."""
        care, process = child.care, child.process
        if care is None or process is None or child.address is None:
            return
        is_starting = child.state == "starting"
        if care.look(now, process.process.pid, is_starting=is_starting):
            self.send(child.address, Ping())
        if care.silence.is_over:
            child.detail = f"it was killed: no answer for {care.silence.limit_seconds:g} s"
            LOGGER.error("%s is replaced: %s", process, child.detail)
            child.care = None
            kill(process.process)

    def _group_answers(self, _: Pong, sender: Address) -> None:
        child = self._find(sender)
        if child is not None and child.care is not None:
            child.care.heard()

    # -- the assignor process

    def _assignor(self) -> AssignorAt | None:
        """Return where assignors are asked, None while there is nobody to ask."""
        child = self._child_processes["assignor", ASSIGNOR]
        if child.state != "running" or child.address is None or child.pid is None:
            return None
        return AssignorAt(child.address, child.pid)

    def _assignor_up(self, report: AssignorUp, sender: Address) -> None:
        child = self._find(sender)
        if child is not None:
            child.pid = report.pid

    def _assignors_open(self, report: AssignorsOpen, sender: Address) -> None:
        child = self._find(sender)
        if child is None:
            return  # it has ended since
        if report.error:
            child.end = report.error
            child.kill_at = time.monotonic() + assignor_process.ABORT_SECONDS
            self.stop(sender)
            return
        child.pid, child.state = report.pid, "running"  # what became of the last one stays told
        self._answer_begin_if_ready()
        for worker in self._workers():
            self.send(worker.address, self._assignor())

    def _forget(self, worker: str) -> None:
        """Have the assignors let go of what they keep for a worker that does not come back."""
        asked = self._assignor()
        if asked is not None:
            self.send(asked.address, ForgetWorker(worker))

    def _opens_too_slowly(self, child: ChildProcess, now: float) -> bool:
        if self._node is None:
            return False
        return assignor_process.opens_too_slowly(child, self._node.timing.rebalance_timeout_ms, now)

    def _assignor_hangs(self, report: AssignorHangs, _: Address) -> None:
        child = self._child_processes["assignor", ASSIGNOR]
        if child.pid == report.pid and child.state == "running" and not child.end:
            self._replace_assignor(child, f"{report.worker} had no answer in time")

    def _replace_assignor(self, child: ChildProcess, why: str) -> None:
        assignor_process.give_up(child, why, time.monotonic())
        if child.pid is None:
            self.stop(child.address)  # it has not even heard what to load

    def _assignor_ended(self, child: ChildProcess) -> None:
        if error := assignor_process.note_end(child):
            self._answer_begin(Begun(error))

    def _end_assignor(self) -> None:
        child = self._child_processes.get(("assignor", ASSIGNOR))
        if child is not None:
            assignor_process.end(child)

    # -- processes that end

    def _know(self, child: ChildProcess, process: NodeProcess) -> None:
        """Keep what is known of a process, also for who comes after this one."""
        child.process = process
        if self._files is not None:
            self._files.write(process)

    def _take_over(self, files: ProcessFiles) -> None:
        """End what an earlier supervisor left running, and report the members that end so."""
        for each in files.read():
            if each.kind not in {*KINDS, SUPERVISOR}:
                continue  # the node's first process answers for it
            for part in each.parts:
                kill(part)
            self._deaths.add(each, 0)
            if not each.member_id:
                files.remove([each.process])

    def _know_myself(self) -> None:
        if self._files is not None:
            self._files.write(NodeProcess(SUPERVISOR, SUPERVISOR, process_of(os.getpid())))

    def _engine_runs(self, report: EngineRuns, _: Address) -> None:
        child = self._child_processes.get(("worker", report.name))
        if child is not None and child.process is not None:
            self._know(child, replace(child.process, engine=process_of(report.pid)))

    def _note_end(self, child: ChildProcess) -> None:
        process, child.process = child.process, None
        if process is not None and process.member_id:
            self._deaths.add(process, time.time_ns() // 1_000_000)
            self._report_deaths()
        elif process is not None and self._files is not None:
            self._files.remove([process.process])

    def _report_deaths(self) -> None:
        """Tell the group of the members that have ended; of others once their engines have."""
        group = self._node and self._child_processes["group", self._node.group_id]
        if not group or group.state != "running" or self._files is None:
            return  # it is told once it is open
        for process, report in self._deaths.take_ended():
            self.send(group.address, report)
            self._files.remove([process.process])
        if self._deaths.is_waiting:
            self.wake_after(LOOK_SECONDS, LOOK)

    # -- workers that come and go

    def _add(self, order: AddWorker, sender: Address) -> None:
        name = order.name or self._free_name()
        if self._node is None:
            self.send(sender, WorkerAdded(name, "the node is not up yet: try again"))
        elif ("worker", name) in self._child_processes:
            error = f"there is a worker {name} already: choose another name"
            self.send(sender, WorkerAdded(name, error))
        elif self._node.server_assignor and order.traits(WorkerTraits()).abilities != ORDINARY:
            error = "the group computes for the workers of this node: they have no tags or capacity"
            self.send(sender, WorkerAdded(name, error))
        else:
            child = self._new_child("worker", name, order.tied_to)
            child.traits = order.traits(self._node.traits)
            self._start(child)
            self.send(sender, WorkerAdded(name))

    def _free_name(self) -> str:
        number = 1
        while ("worker", f"w{number}") in self._child_processes:
            number += 1
        return f"w{number}"

    def _let_go(self, order: StopWorker, sender: Address) -> None:
        child = self._child_processes.get(("worker", order.name))
        self._remove(order.name)
        if child is not None and child.process is not None and order.force:
            for part in child.process.parts:
                kill(part)
        error = "" if child else f"there is no worker {order.name} on this node"
        self.send(sender, WorkerAdded(order.name, error))

    def _remove(self, name: str, *, is_temporary: bool = False) -> None:
        child = self._child_processes.get(("worker", name))
        if child is None:
            return
        child.is_wanted = False
        if child.address is None:
            del self._child_processes["worker", name]
            self._forget(name)
            return
        child.state = "leaving"
        self.send(child.address, Leave(is_temporary))

    def _worker_up(self, report: WorkerUp, _: Address) -> None:
        child = self._child_processes.get(("worker", report.name))
        if child is None:
            return  # it was let go meanwhile
        child.runs(report.pid)
        if child.process is not None:
            member_id, incarnation = report.member_id, report.incarnation
            known = replace(child.process, member_id=member_id, incarnation=incarnation)
            self._know(child, known)
        self._start_due(time.monotonic())

    def _end_if_stuck(self, child: ChildProcess, now: float) -> None:
        """End a worker's process that was started long ago and never said that it runs."""
        if child.kind != "worker" or not child.is_stuck(now):
            return
        child.end = f"it was ended: it did not begin within {STUCK_SECONDS:g} s"
        LOGGER.error("%s %s (pid %s): %s", child.kind, child.name, child.pid, child.end)
        if child.process is None:
            self.stop(child.address)
        else:
            kill(child.process.process)

    def _worker_says(self, report: WorkerSays, _: Address) -> None:
        child = self._child_processes.get(("worker", report.name))
        if child is not None:
            child.detail = report.detail

    def _worker_gone(self, report: WorkerGone, _: Address) -> None:
        child = self._child_processes.get(("worker", report.name))
        if child is not None and child.address is not None:
            child.detail = report.error
            self.stop(child.address)

    def _shut_down(self, _: ShutDown, sender: Address) -> None:
        self._is_ending = True  # what is started from now on would only hold up the end
        self._waiting_for_end.append(sender)
        for child in [each for each in self._child_processes.values() if each.kind == "worker"]:
            self._remove(child.name, is_temporary=True)
        self._tell_if_all_left()

    def _tell_if_all_left(self) -> None:
        if any(kind == "worker" for kind, _ in self._child_processes):
            return
        if self._is_ending:
            self._end_assignor()  # it may hang, and would not be told to go
        for asker in self._waiting_for_end:
            self.send(asker, AllLeft())
        self._waiting_for_end.clear()

    # -- answers

    def _where(self, question: WhereIs, sender: Address) -> None:
        child = self._child_processes.get(("group", question.group_id))
        if child is None or child.state != "running":
            self.send(sender, Whereabouts(question.group_id, None))
        else:
            self.send(sender, Whereabouts(question.group_id, child.address, child.pid))

    def _describe(self, _: DescribeNode, sender: Address) -> None:
        def views(kind: str) -> tuple[ProcessView, ...]:
            return tuple(
                self._view(child) for child in self._child_processes.values() if child.kind == kind
            )

        view = NodeView(os.getpid(), views("group"), views("worker"), views("assignor"))
        self.send(sender, view)

    def _view(self, child: ChildProcess) -> ProcessView:
        url = self._node.url(child.name) if self._node and child.kind == "worker" else ""
        return child.view(url)

    def _note_failure(self, failure: Failure, sender: Address) -> None:
        child = self._find(sender)
        LOGGER.warning("%s", failure.reason)
        if child is not None:
            child.detail = failure.reason
            if child.kind == "group":
                self._answer_begin(Begun(failure.reason))

    def _note_reply(self, reply: CommandReply, _: Address) -> None:
        """Hear that the group has ended the seats that nobody comes back to."""
        if reply.error is not Error.NONE:
            LOGGER.warning("seats of former workers are still waited for: %s", reply.message)

    def _workers(self) -> list[ChildProcess]:
        return [
            child
            for child in self._child_processes.values()
            if child.kind == "worker" and child.address is not None
        ]

    def _find(self, address: Address) -> ChildProcess | None:
        key = address_key(address)
        for child in self._child_processes.values():
            if child.address is not None and address_key(child.address) == key:
                return child
        return None
