"""A worker's side of its assignors: what they say for it, and whether they answer at all.

They live in the node's assignor process. A worker joins with what they say; that is asked
again when its facts change, when the process is another, and from time to time, since an
assignor may come to say something else. One that fails to say it has not changed its mind:
what it said of the same facts stands. A process that owes an answer for too long is
reported, once, and replaced by the supervisor; no heartbeat waits for any of this. A new
process is told the worker's share as well, but not one that ended several in a row.
"""

import time
from collections.abc import Sequence

from .....actors.backoff import Backoff, earliest
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
from .....events.model import ClientAssignor, Resources
from .....events.records import TargetAssignment
from ....cluster.messages import AssignorAt, AssignorHangs, WorkerSays
from .computing import Computing
from .contract import AskAssignor, AssignorMessage, Effect, SendToGroup, TellSupervisor

REPEAT_MS = 5_000
"""After which a question is asked again that was not answered well; the least for no answer."""
REFRESH_MS = 10_000
"""How often the assignors may change their minds."""
ENDS_BORNE = 2
"""After how many ends of its process over a share the assignor is told it once more."""
LONGEST_REFRESH_MS = 300_000
"""How often those may that say something else each time: each change is an epoch."""
REFRESH_BACKOFF_MS = Backoff(REFRESH_MS, LONGEST_REFRESH_MS)

WAITS = "waits for its assignors' word since"
UNTOLD = "its assignor is not told of its share: on_assignment ended each process that was"


class AssignorQuestions:
    """One worker's questions to its assignors; times in milliseconds on any one clock."""

    def __init__(
        self, member_id: str, worker: Worker, names: Sequence[str], timeout_ms: int
    ) -> None:
        """`names` are those of its assignors, in the order of preference.

        Where there are none, as the group itself runs one, nobody is ever asked.
        """
        self._member_id = member_id
        self._worker = worker
        self._names = names
        self._timeout_ms = timeout_ms
        self.pid: int | None = None
        """The assignor process, if there is one to be asked."""
        self._number = 0
        """That of the question, however often it is asked."""
        self._asked_ms: list[int] = []
        """When this process was asked it."""
        self._silent_since_ms: int | None = None
        """Since when no process has answered a question; None: one has."""
        self._waits_since_ms: int | None = None
        """Since when this process owes an answer; None: it owes none."""
        self._ask_at_ms = 0
        """When to ask next."""
        self._changes = 0
        """How many answers in a row said something else than the one before."""
        self._said: dict[str, ClientAssignor] = {}
        """The last word of each assignor on the worker as it is now."""
        self._share: Resources | None = None
        """What this process was told of last."""
        self._unnoted: Resources | None = None
        """What some process was told of last, until one has come through it."""
        self._notices = 0
        """The number of the last notice of a share."""
        self._ends = 0
        """How many processes in a row have ended over the share."""

    @property
    def is_known(self) -> bool:
        """Whether all is known that a join has to say of the worker as it is now."""
        return bool(self._said) or not self._names

    def move_to(self, pid: int | None) -> None:
        """Turn to another process: nothing was asked of it, and it was told nothing."""
        self.pid = pid if self._names else None
        self._number += 1
        self._waits_since_ms, self._ask_at_ms, self._asked_ms = None, 0, []
        if self._share is not None and self._share == self._unnoted:
            self._ends += 1
        self._share = None

    def see_worker(self, worker: Worker) -> None:
        """Have the assignors say anew what they say, if the worker's facts are others.

        What they said before is of no more use: that of a cold worker would keep work away.
        """
        if self._worker != worker:
            self._worker = worker
            self._number += 1
            self._ask_at_ms, self._changes, self._said = 0, 0, {}

    def tick(self, now_ms: int) -> DescribeAssignors | None:
        """Return what is to be asked by now, if anything.

        A question is repeated seldom: the process may be slow, and would fall behind for good.
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
        """Return what heartbeats are to say from now on; None: what they said before."""
        self._waits_since_ms = None
        if reply.number != self._number:
            return None  # its facts were others, or it was answered already
        self._number += 1
        self._silent_since_ms, rest_ms = None, self._rest_ms(now_ms)
        if not reply.assignors:
            self._ask_at_ms = now_ms + max(REPEAT_MS, rest_ms)
            return None
        self._take(reply.assignors)
        self._ask_at_ms = now_ms + max(REFRESH_BACKOFF_MS.pause(1 + self._changes), rest_ms)
        return tuple(self._said[name] for name in self._names if name in self._said)

    def _rest_ms(self, now_ms: int) -> int:
        """Return for how long a process may be busy with what this question was repeated."""
        asked_ms, self._asked_ms = self._asked_ms, []
        return (now_ms - asked_ms[0]) * len(asked_ms) if asked_ms else 0

    def _take(self, assignors: tuple[ClientAssignor, ...]) -> None:
        """Note what was said; assignors that say something else each time are asked less often."""
        is_new = any(self._said.get(each.name, each) != each for each in assignors)
        self._changes = self._changes + 1 if is_new else 0
        self._said |= {each.name: each for each in assignors}

    def silent_ms(self, now_ms: int) -> int:
        """Return for how long nobody has answered for a worker that is not known."""
        since_ms = self._silent_since_ms
        return 0 if self.is_known or since_ms is None else now_ms - since_ms

    def silent_at_ms(self) -> int | None:
        """Return when that is worth telling, None while somebody has answered."""
        since_ms = self._silent_since_ms
        return None if self.is_known or since_ms is None else since_ms + REPEAT_MS + 1

    def find_hung(self, now_ms: int) -> int | None:
        """Return the process that has owed an answer for too long, once."""
        since_ms = self._waits_since_ms
        if since_ms is None or now_ms < since_ms + self._timeout_ms:
            return None
        self._waits_since_ms = None
        return self.pid

    def take_share(self, target: TargetAssignment, share: Resources) -> NotifyAssignment | None:
        """Return what its assignor is to be told of the worker's share, if that is another."""
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
        """Whether the worker's share is not told, since each process that was told it ended."""
        return self._unnoted is not None and self._ends > ENDS_BORNE

    def take_notified(self, reply: NotifyAssignmentReply) -> None:
        """Take note that this process has come through what it was told last."""
        if self._share is not None and reply.number == self._notices:
            self._unnoted, self._ends = None, 0

    def next_tick_ms(self) -> int | None:
        """Return when `tick` or `overdue` has something to tell, None if never."""
        since_ms = self._waits_since_ms
        ask_ms = None if self.pid is None else self._ask_at_ms
        return earliest(ask_ms, None if since_ms is None else since_ms + self._timeout_ms)


class AssignorClient:
    """All that a worker asks of its assignors, and what it says of them to its supervisor.

    That is what they are to say for it, and what a computation asks for. Where there is no
    assignor process nothing is asked; the next one is asked anew.
    """

    def __init__(self, name: str, questions: AssignorQuestions, computing: Computing) -> None:
        """Speak for the worker of that name."""
        self.computing = computing
        self._name = name
        self.questions = questions
        self._pid: int | None = None
        """The assignor process, if there is one to be asked."""
        self._trouble = ""
        """What the supervisor was told last."""

    def receive(self, message: object, epoch: int, now_ms: int) -> list[Effect]:
        """Take what has to do with assignors, and with computing an assignment."""
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
        """Turn to a new process, and ask it what the old one has not answered."""
        self._pid = pid
        self.questions.move_to(pid)
        asked = self._ask(self.questions.tick(now_ms))
        computation = self.computing.ask_anew(epoch, now_ms)
        if isinstance(computation, Install):
            return [*asked, SendToGroup(computation)]
        return asked + self._ask(computation)

    def tick(self, epoch: int, now_ms: int, wall_ms: int) -> list[Effect]:
        """Ask what is to be asked by now, and report a process that does not answer."""
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
        """Return also what heartbeats are to say from now on; None: what they said before."""
        withheld = [UNTOLD] if self.questions.keeps_share else []
        effects = self._tell("; ".join([*reply.errors, *withheld]))
        return effects, self.questions.take_answer(reply, now_ms)

    def tell_share(self, target: TargetAssignment, share: Resources) -> list[Effect]:
        """Have the assignor know what the worker has been given, if that is another."""
        return self._ask(self.questions.take_share(target, share))

    def _ask(self, message: AssignorMessage | None) -> list[Effect]:
        return [] if message is None or self._pid is None else [AskAssignor(message)]

    def _tell_wait(self, silent_ms: int, wall_ms: int) -> list[Effect]:
        """Say since when a worker waits that nobody speaks for: it may be kept from joining."""
        if silent_ms <= REPEAT_MS or self._trouble.startswith(WAITS):
            return []
        since = time.localtime((wall_ms - silent_ms) / 1000)
        return self._tell(f"{WAITS} {time.strftime('%H:%M:%S', since)}")

    def _tell(self, trouble: str) -> list[Effect]:
        """Have the supervisor show what is wrong; nothing, once all is well."""
        if trouble == self._trouble:
            return []
        self._trouble = trouble
        return [TellSupervisor(WorkerSays(self._name, trouble))]
