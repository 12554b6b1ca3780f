"""A worker's side of its assignors: what they say for it, and whether they answer at all.

They live in the node's assignor process. A worker joins with what they say; that is asked
again when its facts change, when the process is another, and from time to time, since an
assignor may come to say something else. One that fails to say it has not changed its mind:
what it said of the same facts stands. A process that owes an answer for too long is
reported, once, and replaced by the supervisor; no heartbeat waits for any of this. A new
process is told the worker's share as well, but not one that ended several in a row.
"""

import logging
import time
from collections.abc import Callable, Sequence

from ...actors.backoff import Backoff
from ...actors.door.actor import Address
from ...actors.messages.assignors import (
    Assign,
    Given,
    Introduce,
    Introduced,
    MemberAssignment,
    Noted,
    Worker,
)
from ...actors.messages.computing import Install
from ...events.group import Group
from ...events.model import ClientAssignor, Resources
from ...events.records import TargetAssignment
from ..cluster.spec import AssignorAt, AssignorHangs, StartWorker, WorkerSays
from .computing import Computing
from .identity import facts_of

REPEAT_MS = 5_000
"""After which a question is asked again that was not answered well; the least for no answer."""
REFRESH_MS = 10_000
"""How often the assignors may change their minds."""
ENDS_BORNE = 2
"""After how many ends of its process over a share the assignor is told it once more."""
LONGEST_REFRESH_MS = 300_000
"""How often those may that say something else each time: each change is an epoch."""
REFRESH_BACKOFF_MS = Backoff(REFRESH_MS, LONGEST_REFRESH_MS)


class AssignorClient:
    """One worker's questions to its assignors; times in milliseconds on any one clock."""

    def __init__(
        self, member_id: str, worker: Worker, names: Sequence[str], timeout_ms: int
    ) -> None:
        """`names` are those of its assignors, in the order of preference."""
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
        self._waits_since_ms: int | None = None
        self._ask_at_ms = 0
        self._changes = 0
        """How many answers in a row said something else than the one before."""
        self._said: dict[str, ClientAssignor] = {}
        """The last word of each assignor on the worker as it is now."""
        self._share: Resources | None = None
        """What this process was told of last."""
        self._unnoted: Resources | None = None
        """What some process was told of last, until one has come through it."""
        self._given = 0
        self._ends = 0

    @property
    def is_known(self) -> bool:
        """Whether some assignor has spoken for the worker as it is now: it can join."""
        return bool(self._said)

    def moved(self, pid: int | None) -> None:
        """Turn to another process: nothing was asked of it, and it was told nothing."""
        self.pid = pid
        self._number += 1
        self._waits_since_ms, self._ask_at_ms, self._asked_ms = None, 0, []
        if self._share is not None and self._share == self._unnoted:
            self._ends += 1
        self._share = None

    def is_now(self, worker: Worker) -> None:
        """Have the assignors say anew what they say, if the worker's facts are others.

        What they said before is of no more use: that of a cold worker would keep work away.
        """
        if self._worker != worker:
            self._worker = worker
            self._number += 1
            self._ask_at_ms, self._changes, self._said = 0, 0, {}

    def tick(self, now_ms: int) -> Introduce | None:
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
        return Introduce(self._member_id, self._worker, self._number)

    def introduced(self, reply: Introduced, now_ms: int) -> tuple[ClientAssignor, ...] | None:
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
        """Note what was said; who says something else each time is asked ever less often."""
        is_new = any(self._said.get(each.name, each) != each for each in assignors)
        self._changes = self._changes + 1 if is_new else 0
        self._said |= {each.name: each for each in assignors}

    def silent_ms(self, now_ms: int) -> int:
        """Return for how long nobody has answered for a worker that is not known."""
        since_ms = self._silent_since_ms
        return 0 if self.is_known or since_ms is None else now_ms - since_ms

    def overdue(self, now_ms: int) -> int | None:
        """Return the process that has owed an answer for too long, once."""
        since_ms = self._waits_since_ms
        if since_ms is None or now_ms < since_ms + self._timeout_ms:
            return None
        self._waits_since_ms = None
        return self.pid

    def give(self, target: TargetAssignment, share: Resources) -> Given | None:
        """Return what its assignor is to be told of the worker's share, if that is another."""
        if self.pid is None or not target.assignor or share == self._share:
            return None
        if share != self._unnoted:
            self._ends = 0
        self._unnoted = share
        if self.keeps_share:
            return None
        self._share = share
        self._given += 1
        return Given(
            target.assignor,
            MemberAssignment(
                self._member_id,
                share,
                target.error,
                target.assignor_version,
                target.assignor_metadata,
            ),
            self._given,
        )

    @property
    def keeps_share(self) -> bool:
        """Whether the worker's share is not told, since each process that was told it ended."""
        return self._unnoted is not None and self._ends > ENDS_BORNE

    def noted(self, reply: Noted) -> None:
        """Take note that this process has come through what it was told last."""
        if self._share is not None and reply.number == self._given:
            self._unnoted, self._ends = None, 0


LOGGER = logging.getLogger(__name__)
WAITS = "waits for its assignors' word since"
UNTOLD = "its assignor is not told of its share: on_assignment ended each process that was"


class AssignorTalk:
    """Carries a worker's questions to the assignor process, wherever that is."""

    def __init__(
        self,
        order: StartWorker,
        client: AssignorClient,
        computing: Computing,
        say: Callable[[Address, object], None],
        supervisor: Address,
    ) -> None:
        self._order = order
        self._client = client
        self._computing = computing
        self._say = say
        self._supervisor = supervisor
        self._address: Address | None = None
        self._trouble = ""

    @property
    def may_join(self) -> bool:
        """Whether all has been said that a join has to say; the group's own assignor says none."""
        return self._order.node.server_assignor is not None or self._client.is_known

    def ask(self, message: object | None) -> None:
        """Send the assignor process what there is to be sent, if there is such a process."""
        if message is not None and self._address is not None:
            self._say(self._address, message)

    def moved(self, news: AssignorAt, epoch: int, now_ms: int) -> Install | None:
        """Turn to a new process; return what is to be handed in instead of asking it as well."""
        self._address = news.address
        if self._order.node.server_assignor is None:
            self._client.moved(news.pid)
            self.ask(self._client.tick(now_ms))
        asked = self._computing.assignor_moved(epoch, now_ms)
        if not isinstance(asked, Assign):
            return asked
        self.ask(asked)
        return None

    def tick(self, now_ms: int) -> None:
        """Ask what is to be asked by now, and report a process that does not answer."""
        self.ask(self._client.tick(now_ms))
        self._tell_wait(self._client.silent_ms(now_ms))
        self.ask(self._computing.ask_again(now_ms))
        pid = self._client.overdue(now_ms)
        if self._computing.overdue(now_ms):
            pid = self._client.pid
        if pid is not None:
            self._say(self._supervisor, AssignorHangs(pid, self._order.name))

    def introduced(self, reply: Introduced, now_ms: int) -> tuple[ClientAssignor, ...] | None:
        """Return what heartbeats are to say from now on; None: what they said before."""
        withheld = [UNTOLD] if self._client.keeps_share else []
        self._tell("; ".join([*reply.errors, *withheld]))
        return self._client.introduced(reply, now_ms)

    def _tell_wait(self, silent_ms: int) -> None:
        """Say since when a worker waits that nobody speaks for: it may be kept from joining."""
        if silent_ms > REPEAT_MS and not self._trouble.startswith(WAITS):
            since = time.localtime(time.time() - silent_ms / 1000)
            self._tell(f"{WAITS} {time.strftime('%H:%M:%S', since)}")

    def _tell(self, trouble: str) -> None:
        """Have the supervisor show what is wrong; nothing, once all is well."""
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if trouble:
            LOGGER.error("%s: %s", self._order.name, trouble)
        self._say(self._supervisor, WorkerSays(self._order.name, trouble))

    def tell_warmth(self, *, is_warm: bool) -> None:
        """Have the assignors know whether the worker can take work."""
        self._client.is_now(facts_of(self._order, is_warm=is_warm))

    def tell_share(self, group: Group, member_id: str) -> None:
        """Have the assignor know what this member has been given, as the log says."""
        member = group.members.get(member_id)
        if member is not None:
            self.ask(self._client.give(group.target, frozenset(member.current.assigned)))

    def noted(self, reply: Noted) -> None:
        """Take note that the assignor was told, and that its process goes on."""
        self._client.noted(reply)
