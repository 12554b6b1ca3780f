"""The supervisor: it starts the actors of a node, and restarts those whose process ends.

It has no log, socket or thread of its own that its forks would inherit. Its children are in
`node_children`; this module handles the messages of the launcher, of commands and of the children,
and sets the timer for the next look at them. After a restart of the group it sends the new address
to all workers.
"""

import logging
import time
from collections.abc import Callable
from math import inf
from typing import Any, Final

from ....actors.messages.commands import CommandReply
from ....actors.messages.errors import Error
from ....actors.shards.actor import ShardOpened
from ....actors.shards.host_actor import GroupOpened, Ping, Pong
from ....actors.transport.actor import Actor, Address, Failure
from ....events.log.process import kill
from ...cluster.messages import (
    AddWorker,
    AllLeft,
    AssignorHangs,
    AssignorsOpen,
    AssignorUp,
    Begin,
    Begun,
    DescribeNode,
    EngineRuns,
    GroupAt,
    GroupGivenUp,
    OwnerAt,
    ShutDown,
    StartWorker,
    StopWorker,
    Undecided,
    WhereAreShards,
    WhereIs,
    WorkerGone,
    WorkerSays,
    WorkerUp,
    answer_before_begin,
)
from ..process_files import ProcessFiles
from .children import REPORTS, GroupChild, Host
from .node_children import NodeChildren
from .workers import WorkerChild

LOGGER = logging.getLogger(__name__)
LOOK_SECONDS: Final = 0.01
LOOK: Final = "look"
"""The payload of the timer that checks whether the engines of ended workers have ended."""
REPEAT_SECONDS: Final = 1.0
REPEAT: Final = "repeat"
"""The payload of the timer for reports that no owner of the group has decided."""


class Supervisor(Actor):
    """Starts the node's actors and keeps them running."""

    _host: Host
    """What its children need of it; set, like the following attributes, by `Begin`."""
    _node: NodeChildren

    def __init__(self) -> None:
        super().__init__()
        self._has_begun = False
        """Whether the launcher has sent the node's spec."""
        self._is_ending = False
        """Whether the node shuts down: nothing is started any more."""
        self._tick_at = inf
        """When the earliest timer fires, monotonic clock; infinite: there is none."""
        self._is_to_repeat = False
        """Whether that timer is set."""
        self._flaw = ""
        """Why the group did not follow its store when it was opened last; empty: it did."""
        self._waiting_for_begin: list[Address] = []
        """The recipients of the `Begun` reply."""
        self._waiting_for_end: list[Address] = []
        """The recipients of the `AllLeft` reply."""
        self._handlers: dict[type, Callable[[Any, Address], None]] = {
            Begin: self._begin,
            GroupOpened: self._group_opened,
            OwnerAt: self._note_owner,
            GroupGivenUp: self._note_given_up,
            ShardOpened: self._shard_opened,
            AssignorUp: self._assignor_up,
            AssignorsOpen: self._assignors_open,
            AssignorHangs: lambda report, _: self._node.assignor.give_up_hanging(
                self._host, report
            ),
            WorkerUp: lambda report, _: self._node.workers.register(report),
            WorkerSays: lambda report, _: self._node.workers.take_remark(report),
            WorkerGone: lambda report, _: self._node.workers.take_leave(report),
            EngineRuns: lambda report, _: self._node.workers.take_engine(report),
            AddWorker: lambda order, sender: self.send(sender, self._node.workers.add(order)),
            StopWorker: lambda order, sender: self.send(
                sender, self._node.workers.stop_worker(order)
            ),
            WhereIs: self._answer_where,
            WhereAreShards: lambda _, sender: self.send(sender, self._node.shards.whereabouts()),
            DescribeNode: self._describe,
            ShutDown: self._shut_down,
            Failure: self._note_failure,
            Undecided: self._repeat_later,
            CommandReply: self._note_reply,
            Pong: self._group_answers,
        }

    def receive(self, message: object, sender: Address) -> None:
        """Dispatch an order, a question or a report."""
        handle = self._handlers.get(type(message))
        if handle is None:
            self.send(sender, Failure(f"no order of mine: {type(message).__name__}"))
        elif self._has_begun or isinstance(message, Begin):
            if not isinstance(message, REPORTS) or self._node.find(sender) is not None:
                handle(message, sender)
                self._sleep()
        elif (answer := answer_before_begin(message)) is not None:
            self.send(sender, answer)

    def woken(self, payload: object) -> None:
        """Look after the children, or the engines of ended workers; a replaced timer is ignored."""
        if payload is LOOK:
            self._report_deaths()
        elif payload is REPEAT:
            self._is_to_repeat = False
            self._node.repeat_reports()
        elif payload == self._tick_at:
            self._tick_at = inf
            try:
                self._look()
            finally:
                self._sleep()

    def _sleep(self) -> None:
        """Set a timer for the next look, unless an earlier one is set."""
        now = time.monotonic()
        due_at = now + self._node.idle_seconds(now)
        if due_at < self._tick_at:
            self._tick_at = due_at
            self.wake_after(due_at - now, due_at)

    def _look(self) -> None:
        """Probe the children, and restart those that are due."""
        if not self._is_ending:
            self._node.start_due()
        self._node.look()

    def undelivered(self, message: object, to: Address) -> None:
        """Repeat a liveness ping that was not delivered; replace a worker that gets no order."""
        child = self._node.find(to)
        if isinstance(message, Ping) and isinstance(child, GroupChild) and child.probe is not None:
            child.probe.take_loss()
            return
        super().undelivered(message, to)
        if isinstance(message, StartWorker) and child is not None and child.process is not None:
            kill(child.process.process)  # a repeated order might arrive twice

    def child_exited(self, child: Address) -> None:
        """Schedule the restart of an actor that ended, if it is still wanted."""
        ended = self._node.find(child)
        if ended is None:
            return
        if error := ended.note_end():
            self._answer_begin(Begun(error))
        if ended is self._node.group:
            self._node.shards.move(here=False)
        pid, process = ended.pid, ended.has_ended()
        ended.log_end(pid, is_ending=self._is_ending)
        if process is not None:
            self._node.add_death(process)
            self._report_deaths()
        if isinstance(ended, WorkerChild) and self._node.workers.take_end(ended):
            self._tell_if_all_left()
        elif ended.back_off(self._host.node.backoff_ms) and not self._is_ending:
            ended.start_if_due(self._host)
        self._sleep()

    def stopping(self) -> None:
        """Kill the assignor process and its child processes."""
        if self._has_begun:
            self._node.assignor.kill()

    # -- beginning

    def _begin(self, order: Begin, sender: Address) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._host = Host(self, order.node, ProcessFiles(order.node.data_dir / "run"))
            self._node = NodeChildren(self._host)
            self._node.start()
        self._waiting_for_begin.append(sender)
        self._answer_begin_if_ready()

    def _answer_begin_if_ready(self) -> None:
        """Reply `Begun` once the group is open and the assignors are loaded."""
        if self._node.is_open:
            self._answer_begin(Begun(flaw=self._flaw))

    def _answer_begin(self, begun: Begun) -> None:
        for asker in self._waiting_for_begin:
            self.send(asker, begun)
        self._waiting_for_begin.clear()

    # -- the group

    def _group_opened(self, opened: GroupOpened, sender: Address) -> None:
        node, self._flaw = self._node, opened.flaw
        node.group.runs(opened.pid)
        node.shards.move(here=opened.is_owner)
        node.workers.tell_all(GroupAt(sender, opened.coordinator_epoch))
        node.repeat_reports()
        self._report_deaths()
        self._answer_begin_if_ready()  # first: starting the workers takes a while
        if not self._is_ending:
            node.workers.begin()

    def _note_owner(self, report: OwnerAt, _: Address) -> None:
        self._node.shards.owner = report

    def _note_given_up(self, report: GroupGivenUp, _: Address) -> None:
        self._node.group.end = report.reason

    def _shard_opened(self, opened: ShardOpened, _: Address) -> None:
        self._node.shards.register(opened)
        self._answer_begin_if_ready()

    def _report_deaths(self) -> None:
        """Report to the group the members whose processes and engines have ended."""
        if self._node.report_deaths():
            self.wake_after(LOOK_SECONDS, LOOK)

    def _repeat_later(self, _: Undecided, sender: Address) -> None:
        """Repeat all reports after a pause, as one was not decided; they are idempotent."""
        if self._node.find(sender) is self._node.group and not self._is_to_repeat:
            self._is_to_repeat = True
            self.wake_after(REPEAT_SECONDS, REPEAT)

    def _group_answers(self, _: Pong, sender: Address) -> None:
        child = self._node.find(sender)
        if isinstance(child, GroupChild) and child.probe is not None:
            child.probe.take_answer()

    # -- the assignors and the workers

    def _assignor_up(self, report: AssignorUp, _: Address) -> None:
        self._node.assignor.pid = report.pid

    def _assignors_open(self, report: AssignorsOpen, _: Address) -> None:
        assignor = self._node.assignor
        assignor.take_report(report, self._host)
        if not report.error and (at := assignor.at) is not None:
            self._answer_begin_if_ready()
            self._node.workers.tell_all(at)

    # -- the end

    def _shut_down(self, _: ShutDown, sender: Address) -> None:
        self._is_ending = True  # a new process would only delay the shutdown
        self._waiting_for_end.append(sender)
        self._node.workers.leave_all()
        self._tell_if_all_left()

    def _tell_if_all_left(self) -> None:
        if self._node.workers:
            return
        if self._is_ending:
            self._node.assignor.kill()  # it may hang, and ignore a message
            self._node.group.give_up(self._host)
        for asker in self._waiting_for_end:
            self.send(asker, AllLeft())
        self._waiting_for_end.clear()

    # -- answers

    def _describe(self, _: DescribeNode, sender: Address) -> None:
        self.send(sender, self._node.view())

    def _answer_where(self, question: WhereIs, sender: Address) -> None:
        self.send(sender, self._node.group.whereabouts(question.group_id))

    def _note_failure(self, failure: Failure, sender: Address) -> None:
        LOGGER.warning("%s", failure.reason)
        if (child := self._node.find(sender)) is not None:
            child.detail = failure.reason
        if isinstance(child, GroupChild):
            child.has_failed = True
            self._answer_begin(Begun(failure.reason))

    def _note_reply(self, reply: CommandReply, _: Address) -> None:
        """Handle the group's reply to `_release_seats`."""
        if reply.error is not Error.NONE:
            LOGGER.warning("seats of former workers are still waited for: %s", reply.message)
