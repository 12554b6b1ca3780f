"""A worker's client of the node's assignor process: metadata, notifications, and liveness.

A worker joins with the metadata of its assignors. It requests them again when the worker's facts
change, when the assignor process is new, and from time to time, since an assignor may change its
metadata. If an assignor fails, its last metadata for the same facts stay valid. A process that does
not answer in time is reported once, and replaced by the supervisor; heartbeats never wait for it. A
new process is also notified of the worker's share, unless several processes have ended over it.
"""

import time
from collections.abc import Sequence

from .....actors.messages.assignors import (
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
from .....events.model import ClientAssignor, Resources
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
UNTOLD = "its assignor is no longer notified of its share: on_assignment ended each process"


class AssignorQuestions:
    """One worker's questions to its assignors; all times are milliseconds of one clock."""

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
        self.pid: int | None = None
        """The pid of the assignor process, None while there is none."""
        self._number = 0
        """The correlation id of the current question; a repeated question keeps it."""
        self._asked_ms: list[int] = []
        """When the current question was sent to this process."""
        self._silent_since_ms: int | None = None
        """Since when a question has no answer from any process; None: it was answered."""
        self._waits_since_ms: int | None = None
        """Since when this process has not answered; None: no answer is pending."""
        self._ask_at_ms = 0
        """When to ask next."""
        self._changes = 0
        """How many answers in a row differed from the one before."""
        self._said: dict[str, ClientAssignor] = {}
        """The last metadata of each assignor for the current facts of the worker."""
        self._share: Resources | None = None
        """The share that this process was last notified of."""
        self._unnoted: Resources | None = None
        """The share that any process was last notified of, until one acknowledges it."""
        self._notices = 0
        """The correlation id of the last notification."""
        self._ends = 0
        """How many processes in a row have ended over this notification."""

    @property
    def is_known(self) -> bool:
        """Whether the metadata for a join are complete, for the current facts of the worker."""
        return bool(self._said) or not self._names

    def move_to(self, pid: int | None) -> None:
        """Switch to another process, which has received no question or notification yet."""
        self.pid = pid if self._names else None
        self._number += 1
        self._waits_since_ms, self._ask_at_ms, self._asked_ms = None, 0, []
        if self._share is not None and self._share == self._unnoted:
            self._ends += 1
        self._share = None

    def see_worker(self, worker: Worker) -> None:
        """Request the metadata again if the worker's facts have changed.

        The former metadata are dropped: those of a cold worker would keep work away from it.
        """
        if self._worker != worker:
            self._worker = worker
            self._number += 1
            self._ask_at_ms, self._changes, self._said = 0, 0, {}

    def tick(self, now_ms: int) -> DescribeAssignors | None:
        """Return the question to send now, if any.

        A question is repeated rarely: a slow process would never catch up otherwise.
        """
        if self.pid is None or now_ms < self._ask_at_ms:
            return None
        self._ask_at_ms = now_ms + max(REPEAT_MS, self._timeout_ms // 3)
        self._asked_ms.append(now_ms)
        if self._silent_since_ms is None:
            self._silent_since_ms = now_ms
        if self._waits_since_ms is None:
            self._waits_since_ms = now_ms
        return DescribeAssignors(self._member_id, self._worker, self._number)

    def take_answer(
        self, reply: DescribeAssignorsReply, now_ms: int
    ) -> tuple[ClientAssignor, ...] | None:
        """Return the new metadata for heartbeats; None: unchanged."""
        self._waits_since_ms = None
        if reply.number != self._number:
            return None  # the worker's facts have changed, or it is a second answer
        self._number += 1
        self._silent_since_ms, rest_ms = None, self._rest_ms(now_ms)
        if not reply.assignors:
            self._ask_at_ms = now_ms + max(REPEAT_MS, rest_ms)
            return None
        self._take(reply.assignors)
        self._ask_at_ms = now_ms + max(REFRESH_BACKOFF_MS.pause(1 + self._changes), rest_ms)
        return tuple(self._said[name] for name in self._names if name in self._said)

    def _rest_ms(self, now_ms: int) -> int:
        """Return how long the process may be busy with the repetitions of this question."""
        asked_ms, self._asked_ms = self._asked_ms, []
        return (now_ms - asked_ms[0]) * len(asked_ms) if asked_ms else 0

    def _take(self, assignors: tuple[ClientAssignor, ...]) -> None:
        """Store the metadata; assignors whose metadata always change are asked less often."""
        is_new = any(self._said.get(each.name, each) != each for each in assignors)
        self._changes = self._changes + 1 if is_new else 0
        self._said |= {each.name: each for each in assignors}

    def silent_ms(self, now_ms: int) -> int:
        """Return how long a question has had no answer, for a worker with incomplete metadata."""
        since_ms = self._silent_since_ms
        return 0 if self.is_known or since_ms is None else now_ms - since_ms

    def silent_at_ms(self) -> int | None:
        """Return when `silent_ms` is to be reported; None if an answer has come."""
        since_ms = self._silent_since_ms
        return None if self.is_known or since_ms is None else since_ms + REPEAT_MS + 1

    def find_hung(self, now_ms: int) -> int | None:
        """Return the pid of a process that has not answered in time; only once per process."""
        since_ms = self._waits_since_ms
        if since_ms is None or now_ms < since_ms + self._timeout_ms:
            return None
        self._waits_since_ms = None
        return self.pid

    def take_share(self, target: TargetAssignment, share: Resources) -> NotifyAssignment | None:
        """Return the notification for the assignor if the worker's share has changed."""
        if self.pid is None or not target.assignor or share == self._share:
            return None
        if share != self._unnoted:
            self._ends = 0
        self._unnoted = share
        if self.keeps_share:
            return None
        self._share = share
        self._notices += 1
        return NotifyAssignment(
            target.assignor,
            MemberAssignment(
                self._member_id,
                share,
                target.error,
                target.assignor_version,
                target.assignor_metadata,
            ),
            self._notices,
        )

    @property
    def keeps_share(self) -> bool:
        """Whether the notification is withheld, since each process that got it has ended."""
        return self._unnoted is not None and self._ends > ENDS_BORNE

    def take_notified(self, reply: NotifyAssignmentReply) -> None:
        """Record that this process has acknowledged the last notification."""
        if self._share is not None and reply.number == self._notices:
            self._unnoted, self._ends = None, 0

    def next_tick_ms(self) -> int | None:
        """Return when `tick` or `find_hung` has something to do, None if never."""
        since_ms = self._waits_since_ms
        ask_ms = None if self.pid is None else self._ask_at_ms
        return earliest(ask_ms, None if since_ms is None else since_ms + self._timeout_ms)


class AssignorClient:
    """A worker's messages to the assignor process, and its reports of that to the supervisor.

    It sends questions for metadata and computations. Without an assignor process nothing is sent;
    pending questions are sent to the next one.
    """

    def __init__(self, name: str, questions: AssignorQuestions, computing: Computing) -> None:
        """Speak for the worker of that name."""
        self.computing = computing
        self._name = name
        self.questions = questions
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
                self.questions.take_notified(message)
            case _:
                pass
        return []

    def _move(self, pid: int, epoch: int, now_ms: int) -> list[Effect]:
        """Switch to a new process, and ask it what the old one has not answered."""
        self._pid = pid
        self.questions.move_to(pid)
        asked = self._ask(self.questions.tick(now_ms))
        computation = self.computing.ask_anew(epoch, now_ms)
        if isinstance(computation, Install):
            return [*asked, SendToGroup(computation)]
        return asked + self._ask(computation)

    def tick(self, epoch: int, now_ms: int, wall_ms: int) -> list[Effect]:
        """Send the questions that are due, and report a process that does not answer."""
        effects = self._ask(self.questions.tick(now_ms))
        effects += self._tell_wait(self.questions.silent_ms(now_ms), wall_ms)
        hung = self.questions.find_hung(now_ms)
        effects += self._ask(self.computing.ask_again(now_ms))
        if self.computing.overdue(now_ms):
            hung = self._pid
        if hung is not None:
            effects.append(TellSupervisor(AssignorHangs(hung, self._name)))
        message = self.computing.tick(epoch, now_ms)
        return effects if message is None else [*effects, SendToGroup(message)]

    def next_tick_ms(self) -> int | None:
        """Return when `tick` has something to do, None if never."""
        silent_ms = None if self._trouble.startswith(WAITS) else self.questions.silent_at_ms()
        return earliest(self.computing.next_tick_ms(), self.questions.next_tick_ms(), silent_ms)

    def take(
        self, reply: DescribeAssignorsReply, now_ms: int
    ) -> tuple[list[Effect], tuple[ClientAssignor, ...] | None]:
        """Return the effects, and the new metadata for heartbeats; None: unchanged."""
        withheld = [UNTOLD] if self.questions.keeps_share else []
        effects = self._tell("; ".join([*reply.errors, *withheld]))
        return effects, self.questions.take_answer(reply, now_ms)

    def tell_share(self, target: TargetAssignment, share: Resources) -> list[Effect]:
        """Notify the assignor of the worker's share if it has changed."""
        return self._ask(self.questions.take_share(target, share))

    def _ask(self, message: AssignorMessage | None) -> list[Effect]:
        return [] if message is None or self._pid is None else [AskAssignor(message)]

    def _tell_wait(self, silent_ms: int, wall_ms: int) -> list[Effect]:
        """Report that a worker waits for its assignors, which may keep it from joining."""
        if silent_ms <= REPEAT_MS or self._trouble.startswith(WAITS):
            return []
        since = time.localtime((wall_ms - silent_ms) / 1000)
        return self._tell(f"{WAITS} {time.strftime('%H:%M:%S', since)}")

    def _tell(self, trouble: str) -> list[Effect]:
        """Report a problem to the supervisor if it is new; "" once it is over."""
        if trouble == self._trouble:
            return []
        self._trouble = trouble
        return [TellSupervisor(WorkerSays(self._name, trouble))]
