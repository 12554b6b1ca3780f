"""What a worker says to its assignors, and of them to its supervisor."""

import logging
import time
from collections.abc import Callable

from ...actors.door.actor import Address
from ...actors.messages.assignors import Assign, Introduced, Noted
from ...actors.messages.computing import Install
from ...events.group import Group
from ...events.model import ClientAssignor
from ..cluster.spec import AssignorAt, AssignorHangs, StartWorker, WorkerSays
from .computing import Computing
from .counsel import REPEAT_MS, Counsel
from .identity import facts_of

LOGGER = logging.getLogger(__name__)
WAITS = "waits for its assignors' word since"
UNTOLD = "its assignor is not told of its share: on_assignment ended each process that was"


class AssignorTalk:
    """Carries a worker's questions to the assignor process, wherever that is."""

    def __init__(
        self,
        order: StartWorker,
        counsel: Counsel,
        computing: Computing,
        say: Callable[[Address, object], None],
        supervisor: Address,
    ) -> None:
        self._order = order
        self._counsel = counsel
        self._computing = computing
        self._say = say
        self._supervisor = supervisor
        self._address: Address | None = None
        self._trouble = ""

    @property
    def may_join(self) -> bool:
        """Whether all has been said that a join has to say; the group's own assignor says none."""
        return self._order.node.server_assignor is not None or self._counsel.is_known

    def ask(self, message: object | None) -> None:
        """Send the assignor process what there is to be sent, if there is such a process."""
        if message is not None and self._address is not None:
            self._say(self._address, message)

    def moved(self, news: AssignorAt, epoch: int, now_ms: int) -> Install | None:
        """Turn to a new process; return what is to be handed in instead of asking it as well."""
        self._address = news.address
        if self._order.node.server_assignor is None:
            self._counsel.moved(news.pid)
            self.ask(self._counsel.tick(now_ms))
        asked = self._computing.assignor_moved(epoch, now_ms)
        if not isinstance(asked, Assign):
            return asked
        self.ask(asked)
        return None

    def tick(self, now_ms: int) -> None:
        """Ask what is to be asked by now, and report a process that does not answer."""
        self.ask(self._counsel.tick(now_ms))
        self._tell_wait(self._counsel.silent_ms(now_ms))
        self.ask(self._computing.ask_again(now_ms))
        pid = self._counsel.overdue(now_ms)
        if self._computing.overdue(now_ms):
            pid = self._counsel.pid
        if pid is not None:
            self._say(self._supervisor, AssignorHangs(pid, self._order.name))

    def introduced(self, reply: Introduced, now_ms: int) -> tuple[ClientAssignor, ...] | None:
        """Return what heartbeats are to say from now on; None: what they said before."""
        withheld = [UNTOLD] if self._counsel.keeps_share else []
        self._tell("; ".join([*reply.errors, *withheld]))
        return self._counsel.introduced(reply, now_ms)

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
        self._counsel.is_now(facts_of(self._order, is_warm=is_warm))

    def tell_share(self, group: Group, member_id: str) -> None:
        """Have the assignor know what this member has been given, as the log says."""
        member = group.members.get(member_id)
        if member is not None:
            self.ask(self._counsel.give(group.target, frozenset(member.current.assigned)))

    def noted(self, reply: Noted) -> None:
        """Take note that the assignor was told, and that its process goes on."""
        self._counsel.noted(reply)
