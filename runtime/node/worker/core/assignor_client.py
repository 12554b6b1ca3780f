"""A worker's client of the node's assignor process: metadata, notifications, and liveness.

Three state machines share one process. They live as long as the worker; the process may end at any
time, and the supervisor starts another, with a new pid. Then each asks the new one anew.

**Metadata** (`MetadataQuestions`). A worker joins with the metadata of its assignors. They are
requested again when the worker's facts change, when the process is new, and from time to time,
since an assignor may change its metadata. If an assignor fails, its last metadata for the same
facts stay valid. One question is open at a time:

    state       _process_silent_since_ms   _ask_at_ms         leaves it by
    no process  None                       (not used)         a new process: due
    due         None                       now, or before     `tick` sends the question: asked
    asked       when it was sent first     when to repeat it  an answer: pauses; none in time: hung
    hung        None, reported once        when to repeat it  a new process: due
    pauses      None                       when to refresh    that time, or new facts: due

    `_number`              the open question; an answer to an earlier one only shows that the
                           process lives; a new process and new facts begin a new question
    `_open_since_ms`       over all processes, since when no question was answered: it says how
                           long a worker without metadata has waited to join
    `_sent_ms`             when the open question was sent to this process: it may be busy with
                           each of these for as long as with the first
    `_changes`, `_metadata`  the answers: how many in a row said something new; the last ones

**Notifications** (`ShareNotices`). The assignor is notified of the worker's share. A new process is
notified as well, unless several processes have ended over the same share:

    state            `_sent_share`   `_unacknowledged`   leaves it by
    nothing to tell  the share       None                another share, or a new process: sent
    sent             the share       the share           its acknowledgement: nothing to tell;
                                                         the end of the process: `_ends` rises
    withheld         None            the share           another share: sent
    (`_ends` beyond `ENDS_BORNE`)

**Computations** are in `computing`. A process that does not answer a question of either kind in
time is reported once, and replaced by the supervisor; heartbeats never wait for it.
"""

from collections.abc import Sequence

from .....actors.messages.assignors import (
    ComputeAssignment,
    ComputeAssignmentReply,
    DescribeAssignors,
    DescribeAssignorsReply,
    MemberAssignment,
    NotifyAssignment,
    NotifyAssignmentReply,
    Worker,
)
from .....actors.messages.computing import Install, InstallReply, PrepareReply
from .....actors.timing import Backoff, earliest
from .....events.model import AssignorData, ClientAssignor, Resources
from .....events.records import TargetAssignment
from ....cluster.messages import AssignorAt, AssignorHangs, WorkerSays
from .computing import Computing
from .contract import AskAssignor, AssignorMessage, Effect, SendToGroup, TellSupervisor

REPEAT_MS = 5_000
"""The pause before a failed question is repeated; the minimum for one without an answer."""
REFRESH_MS = 10_000
"""How often the metadata of assignors are refreshed."""
ENDS_BORNE = 2
"""How often an assignor process may end over a notification that is then repeated."""
LONGEST_REFRESH_MS = 300_000
"""The refresh interval of assignors whose metadata always change: each change is an epoch."""
REFRESH_BACKOFF_MS = Backoff(REFRESH_MS, LONGEST_REFRESH_MS)

WAITS = "waits for its assignors' word since"
WITHHELD = "its assignor is no longer notified of its share: on_assignment ended each process"


class MetadataQuestions:
    """One worker's questions for metadata; all times are milliseconds of one clock."""

    def __init__(
        self, member_id: str, worker: Worker, names: Sequence[str], timeout_ms: int
    ) -> None:
        """`names` are its assignors, in the order of preference.

        Without names, as when the group itself runs the assignor, no question is ever asked.
        """
        self._member_id = member_id
        self._worker = worker
        self._names = names
        self._timeout_ms = timeout_ms
        self.has_process = False
        """Whether there is a process, and an assignor to ask in it."""
        self._number = 0
        """The correlation id of the open question; a repeated question keeps it."""
        self._sent_ms: list[int] = []
        """When the open question was sent to this process."""
        self._open_since_ms: int | None = None
        """Since when a question has no answer from any process; None: it was answered."""
        self._process_silent_since_ms: int | None = None
        """Since when this process has not answered; None: no answer is due, or it was reported."""
        self._ask_at_ms = 0
        """When to ask next."""
        self._changes = 0
        """How many answers in a row differed from the one before."""
        self._metadata: dict[str, ClientAssignor] = {}
        """The last metadata of each assignor for the current facts of the worker."""

    @property
    def is_complete(self) -> bool:
        """Whether the metadata for a join are complete, for the current facts of the worker."""
        return bool(self._metadata) or not self._names

    def move(self) -> None:
        """Switch to a new process, which has received no question yet."""
        self.has_process = bool(self._names)
        self._number += 1
        self._process_silent_since_ms, self._ask_at_ms, self._sent_ms = None, 0, []

    def set_worker(self, worker: Worker) -> None:
        """Request the metadata again if the worker's facts have changed.

        The former metadata are dropped: those of a cold worker would keep work away from it.
        """
        if self._worker != worker:
            self._worker = worker
            self._number += 1
            self._ask_at_ms, self._changes, self._metadata = 0, 0, {}

    def tick(self, now_ms: int) -> DescribeAssignors | None:
        """Return the question to send now, if any.

        A question is repeated rarely: a slow process would never catch up otherwise.
        """
        if not self.has_process or now_ms < self._ask_at_ms:
            return None
        self._ask_at_ms = now_ms + max(REPEAT_MS, self._timeout_ms // 3)
        self._sent_ms.append(now_ms)
        if self._open_since_ms is None:
            self._open_since_ms = now_ms
        if self._process_silent_since_ms is None:
            self._process_silent_since_ms = now_ms
        return DescribeAssignors(self._member_id, self._worker, self._number)

    def answer(
        self, reply: DescribeAssignorsReply, now_ms: int
    ) -> tuple[ClientAssignor, ...] | None:
        """Apply an answer; return the new metadata for heartbeats; None: unchanged."""
        self._process_silent_since_ms = None
        if reply.number != self._number:
            return None  # the worker's facts have changed, or it is a second answer
        self._number += 1
        self._open_since_ms, busy_ms = None, self._busy_ms(now_ms)
        if not reply.assignors:
            self._ask_at_ms = now_ms + max(REPEAT_MS, busy_ms)
            return None
        is_new = any(self._metadata.get(each.name, each) != each for each in reply.assignors)
        self._changes = self._changes + 1 if is_new else 0
        self._metadata |= {each.name: each for each in reply.assignors}
        self._ask_at_ms = now_ms + max(REFRESH_BACKOFF_MS.pause(1 + self._changes), busy_ms)
        return tuple(self._metadata[name] for name in self._names if name in self._metadata)

    def _busy_ms(self, now_ms: int) -> int:
        """Return how long the process may be busy with the repetitions of this question."""
        sent_ms, self._sent_ms = self._sent_ms, []
        return (now_ms - sent_ms[0]) * len(sent_ms) if sent_ms else 0

    def waited_ms(self, now_ms: int) -> int:
        """Return how long a question has had no answer, for a worker with incomplete metadata."""
        since_ms = self._open_since_ms
        return 0 if self.is_complete or since_ms is None else now_ms - since_ms

    def report_at_ms(self) -> int | None:
        """Return when `waited_ms` is to be reported; None if an answer has come."""
        since_ms = self._open_since_ms
        return None if self.is_complete or since_ms is None else since_ms + REPEAT_MS + 1

    def is_hung(self, now_ms: int) -> bool:
        """Return whether the process has not answered in time; only once per process."""
        since_ms = self._process_silent_since_ms
        if since_ms is None or now_ms < since_ms + self._timeout_ms:
            return False
        self._process_silent_since_ms = None
        return True

    def next_tick_ms(self) -> int | None:
        """Return when `tick` or `is_hung` has something to do, None if never."""
        since_ms = self._process_silent_since_ms
        ask_ms = self._ask_at_ms if self.has_process else None
        return earliest(ask_ms, None if since_ms is None else since_ms + self._timeout_ms)


class ShareNotices:
    """Notifies a worker's assignor of the worker's share, also after the process was replaced."""

    def __init__(self, member_id: str) -> None:
        self._member_id = member_id
        self._sent_share: Resources | None = None
        """The share that this process was notified of last; None: of none."""
        self._unacknowledged: Resources | None = None
        """The share that any process was notified of last, until one acknowledges it."""
        self._number = 0
        """The correlation id of the last notification."""
        self._ends = 0
        """How many processes in a row have ended over this share."""

    @property
    def is_withheld(self) -> bool:
        """Whether no notification is sent, since each process that got it has ended."""
        return self._unacknowledged is not None and self._ends > ENDS_BORNE

    def move(self) -> None:
        """Switch to a new process, which has received no notification yet."""
        if self._sent_share is not None and self._sent_share == self._unacknowledged:
            self._ends += 1
        self._sent_share = None

    def notify(self, target: TargetAssignment, share: Resources) -> NotifyAssignment | None:
        """Return the notification for the assignor if the worker's share has changed."""
        if not target.assignor or share == self._sent_share:
            return None
        if share != self._unacknowledged:
            self._ends = 0
        self._unacknowledged = share
        if self.is_withheld:
            return None
        self._sent_share = share
        self._number += 1
        own = AssignorData(target.assignor_version, target.assignor_metadata)
        data = target.data.get(self._member_id, own)
        return NotifyAssignment(
            target.assignor,
            MemberAssignment(
                self._member_id,
                share,
                target.error,
                *data,
            ),
            self._number,
        )

    def acknowledge(self, reply: NotifyAssignmentReply) -> None:
        """Record that this process has acknowledged the last notification."""
        if self._sent_share is not None and reply.number == self._number:
            self._unacknowledged, self._ends = None, 0


class AssignorClient:
    """A worker's messages to the assignor process, and its reports of that to the supervisor.

    Without an assignor process nothing is sent; pending questions are sent to the next one.
    """

    def __init__(
        self, name: str, metadata: MetadataQuestions, notices: ShareNotices, computing: Computing
    ) -> None:
        """Speak for the worker of that name."""
        self._name = name
        self.metadata = metadata
        self._notices = notices
        self.computing = computing
        self._pid: int | None = None
        """The pid of the assignor process, None while there is none."""
        self._trouble = ""
        """The problem last reported to the supervisor."""

    def receive(self, message: object, epoch: int, now_ms: int) -> list[Effect]:
        """Handle a message about assignors or computing an assignment; ignore others."""
        match message:
            case AssignorAt():
                return self._move(message.pid, epoch, now_ms)
            case PrepareReply():
                return self._ask(self.computing.take_snapshot(message, now_ms))
            case ComputeAssignmentReply():
                install = self.computing.take_result(message, epoch, now_ms)
                return [] if install is None else [SendToGroup(install)]
            case InstallReply():
                self.computing.take_install_reply(message, now_ms)
            case NotifyAssignmentReply():
                self._notices.acknowledge(message)
            case _:
                pass
        return []

    def _move(self, pid: int, epoch: int, now_ms: int) -> list[Effect]:
        """Switch to a new process, and ask it what the old one has not answered."""
        self._pid = pid
        self.metadata.move()
        self._notices.move()
        questions = self._ask(self.metadata.tick(now_ms))
        computation = self.computing.ask_anew(epoch, now_ms)
        if isinstance(computation, Install):
            return [*questions, SendToGroup(computation)]
        return questions + self._ask(computation)

    def tick(self, epoch: int, now_ms: int, wall_ms: int) -> list[Effect]:
        """Send the questions that are due, and report a process that does not answer."""
        effects = self._ask(self.metadata.tick(now_ms))
        effects += self._report_wait(self.metadata.waited_ms(now_ms), wall_ms)
        is_hung = self.metadata.is_hung(now_ms)
        effects += self._ask(self.computing.ask_again(now_ms))
        is_overdue = self.computing.overdue(now_ms)
        if self._pid is not None and (is_hung or is_overdue):
            effects.append(TellSupervisor(AssignorHangs(self._pid, self._name)))
        message = self.computing.tick(epoch, now_ms)
        return effects if message is None else [*effects, SendToGroup(message)]

    def next_tick_ms(self) -> int | None:
        """Return when `tick` has something to do, None if never."""
        report_ms = None if self._trouble == WAITS else self.metadata.report_at_ms()
        return earliest(self.computing.next_tick_ms(), self.metadata.next_tick_ms(), report_ms)

    def answer(
        self, reply: DescribeAssignorsReply, now_ms: int
    ) -> tuple[list[Effect], tuple[ClientAssignor, ...] | None]:
        """Apply an answer; return effects, and the new metadata for heartbeats; None: unchanged."""
        withheld = [WITHHELD] if self._notices.is_withheld else []
        effects = self._report("; ".join([*reply.errors, *withheld]))
        return effects, self.metadata.answer(reply, now_ms)

    def notify(self, target: TargetAssignment, share: Resources) -> list[Effect]:
        """Notify the assignor of the worker's share if it has changed."""
        return self._ask(self._notices.notify(target, share)) if self.metadata.has_process else []

    def ask(self, question: ComputeAssignment) -> list[Effect]:
        """Ask for an assignment that the member itself needs, as a classic leader."""
        return self._ask(question)

    def report_failure(self, error: str) -> list[Effect]:
        """Report why the assignor has computed nothing for a classic leader; "" once it has."""
        return self._report(error)

    def _ask(self, message: AssignorMessage | None) -> list[Effect]:
        return [] if message is None or self._pid is None else [AskAssignor(message)]

    def _report_wait(self, waited_ms: int, wall_ms: int) -> list[Effect]:
        """Report that a worker waits for its assignors, which may keep it from joining."""
        return self._report(WAITS, wall_ms - waited_ms) if waited_ms > REPEAT_MS else []

    def _report(self, trouble: str, since_ms: int | None = None) -> list[Effect]:
        """Report a problem to the supervisor if it is new; "" once it is over."""
        if trouble == self._trouble:
            return []
        self._trouble = trouble
        return [TellSupervisor(WorkerSays(self._name, trouble, since_ms))]
