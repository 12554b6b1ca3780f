"""The host of members, as an actor knows it: its packets of calls, and the answers to them.

A host has two lines: on one it sends the calls of a tick and is answered at once, with all that is
known by then; on the other it waits for what had to wait. So neither side ever speaks unasked.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..door.actor import Address
from ..messages.groups import AwaitReplies, GroupCalls, GroupReplies
from .packets import Undelivered

WAIT_SECONDS: Final = 1.0
"""How long a host waits for later answers at most: then it is told that there are none."""


@dataclass(frozen=True, slots=True)
class EndWait:
    """A host has waited for long enough; the number is that of its question."""

    number: int


class HostSide:
    """The latest host that has spoken; what others wait for is said to nobody."""

    def __init__(
        self,
        send: Callable[[Address, GroupReplies], None],
        wake_after: Callable[[float, EndWait], None],
    ) -> None:
        """Take how its actor sends, and how it is woken with an `EndWait`."""
        self._send, self._wake_after = send, wake_after
        self.epoch = 0
        """That of the actor's process, as the host is told it."""
        self.number = 0
        """Which host it is."""
        self._calling: Address | None = None
        """Where the host waits for the answer to its last packet of calls."""
        self._seen = 0
        """The number of the host's last packet: one that comes a second time is dropped."""
        self._waiting: Address | None = None
        """Where the host waits for later answers."""
        self._waits = 0
        """How often it has begun to."""
        self._outbox = Undelivered()
        """What the host is to be told next."""
        self._told: dict[type, GroupReplies] = {}
        """What each of the host's two ways was told last, which may be lost; by what it asks."""
        self._tellings = 0

    @property
    def is_waiting(self) -> bool:
        """Whether the host waits for later answers at this moment."""
        return self._waiting is not None

    def begin(self, host: int) -> None:
        """Take a host for the latest; it has asked nothing yet."""
        self.number, self._seen, self._waiting, self._calling = host, 0, None, None
        self._outbox.clear()
        self._told.clear()

    def take(self, message: GroupCalls | AwaitReplies, sender: Address) -> Sequence[Any]:
        """Return the calls that the host brings, to be decided now; none where it waits."""
        if isinstance(message, AwaitReplies):
            self._tell_anew(message)
            self._waiting, self._waits = sender, self._waits + 1
            self._wake_after(WAIT_SECONDS, EndWait(self._waits))
            if self._outbox:
                self._tell_waiting()
        elif message.number > self._seen:
            self._tell_anew(message)
            self._seen = message.number
            self._calling = sender
            return message.calls
        return ()

    def say(self, replies: Iterable[Any]) -> None:
        """Tell the host, if it asks; what it does not ask for now it is told later."""
        self._outbox.add(replies)
        calling, self._calling = self._calling, None
        if calling is not None:
            self._tell(calling, GroupCalls)
        if self._outbox:
            self._tell_waiting()

    def end_wait(self, wait: EndWait) -> None:
        """Tell the host that there is nothing, if this is still what it waits for."""
        if wait.number == self._waits:
            self._tell_waiting()

    def _tell_waiting(self) -> None:
        if (waiting := self._waiting) is not None:
            self._waiting = None
            self._tell(waiting, AwaitReplies)

    def _tell(self, sender: Address, way: type) -> None:
        self._tellings += 1
        number = (self.epoch << 32) + self._tellings
        told = self._told[way] = GroupReplies(self.epoch, tuple(self._outbox.take()), number)
        self._send(sender, told)

    def _tell_anew(self, message: GroupCalls | AwaitReplies) -> None:
        """Tell once more what has not come to who asks: by now it waits for that no longer."""
        told = self._told.pop(type(message), None)
        if told is not None and told.number != message.heard:
            self._outbox.put_back(told.replies)
