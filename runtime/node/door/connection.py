"""A connection to the node that owns a group: messages are answered in their order.

Over Kafka's wire one request of a connection is decided at a time, and a group holds heartbeats and
rounds of classic members back until there is news. So each sender has a connection for heartbeats,
one for rounds and one for all else. A heartbeat that is held is answered as soon as the next one
has arrived behind it. A round would keep the next one waiting: that goes on a new connection, where
it reaches the group at once, as on the owner's host.

A connection that ends, is late or is refused gives up its messages: their senders ask again.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from ....actors.messages.classic import ClassicHeartbeat, JoinGroup, SyncGroup
from ....actors.messages.commands import RequestedCommand
from ....actors.messages.errors import MEANINGS, Error
from ....actors.messages.members import Heartbeat
from ....actors.transport.actor import Address
from ...kafka.client.stream import Stream
from ...kafka.wire.bounds import IDLE_SECONDS, LONGEST_ANSWER, LONGEST_OF_NODE, FrameRefused
from ...kafka.wire.calls.asks import LEFT_UNANSWERED
from ...kafka.wire.calls.carried import CarriedReply, CarriedRequest, read_reply, write_message
from ...kafka.wire.connect_messages import ConnectGroupAskRequest
from ...kafka.wire.frames import LENGTH, Head, Request, read_response, write_request
from ...kafka.wire.served import CONNECT_ASK
from .delivery import LogEnds

ANSWER_SECONDS: Final = 10.0
"""How long an answer is waited for that the group does not hold back."""
UNUSED_SECONDS: Final = IDLE_SECONDS / 10
"""After which time without messages a connection is closed."""
PAUSE_SECONDS: Final = 0.1
"""The pause after a connection that failed, before the next one is made."""
CLIENT_ID: Final = "fairlead-node"
_UNSENT: Final = MEANINGS[Error.COORDINATOR_LOAD_IN_PROGRESS].code
"""The owner's node had a message, and no process of the group was sent it."""
_REASONS: Final = {meaning.code: error.value for error, meaning in MEANINGS.items()}


class OwnerRefused(Exception):  # noqa: N818  # says what happened
    """The other end is no node of this cluster, or is not known."""


class Lane(Enum):
    """The kinds of messages that have a connection of their own."""

    HEARTBEATS = "heartbeats"
    ROUNDS = "rounds"
    OTHERS = "others"


def lane_of(message: CarriedRequest) -> Lane:
    """Return the connection that a message takes."""
    if isinstance(message, Heartbeat | ClassicHeartbeat):
        return Lane.HEARTBEATS
    return Lane.ROUNDS if isinstance(message, JoinGroup | SyncGroup) else Lane.OTHERS


class LineAnswer(NamedTuple):
    """The end of a message: an answer of the owner, or none."""

    sender: Address
    reply: CarriedReply | None
    """None: the group leaves the message unanswered, or it is given up and may be carried out."""
    ends: LogEnds = LogEnds()
    """The ends of the logs that it rests on."""
    why: str = ""
    """Why it is given up; "": it is not."""
    is_sent: bool = True
    """Whether the owner may have it."""


@dataclass(frozen=True, slots=True)
class _Sent:
    number: int
    frame: bytes
    sender: Address
    at: float
    """When it was sent, monotonic clock."""


class OwnerConnection:
    """One lane of one sender; the event loop alone uses it."""

    def __init__(
        self,
        lane: Lane,
        dial: Callable[[], Awaitable[Stream]],
        deliver: Callable[[LineAnswer], None],
    ) -> None:
        """`dial` raises `OSError`, `TimeoutError`, `OwnerRefused`."""
        self._lane, self._dial, self._deliver = lane, dial, deliver
        self._pending: deque[_Sent] = deque()
        """The messages without an answer, in order."""
        self._stream: Stream | None = None
        """None: it is not open."""
        self._task: asyncio.Task[None] | None = None
        self._last_number = 0
        self._sent_at = self._answered_at = time.monotonic()
        """When anything was sent, and answered, last."""

    def send(self, message: CarriedRequest, sender: Address) -> None:
        """Send a message, on a connection that is opened if there is none."""
        try:
            frame = self._encode(message)
        except (TypeError, ValueError, OverflowError) as error:
            why = f"{type(message).__name__} cannot be sent to the owner: {error}"
            self._deliver(LineAnswer(sender, None, why=why, is_sent=False))
            return
        if self._pending and self._lane is Lane.ROUNDS:
            self.close("its sender asks again")
        self._sent_at = time.monotonic()
        self._pending.append(_Sent(self._last_number, frame, sender, self._sent_at))
        if self._stream is not None:
            self._stream.transport.write(frame)
        elif self._task is None:
            self._task = asyncio.create_task(self._run())

    def close(self, why: str) -> None:
        """Close it, and give up its messages."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        self._hang_up(why)

    def close_if_late(self, now: float) -> None:
        """Close it if an answer is late."""
        waits_since = self._waits_since()
        if waits_since is not None and now - waits_since > ANSWER_SECONDS:
            self.close(f"the owner has not answered for {ANSWER_SECONDS:g} s")

    def is_unused(self, now: float) -> bool:
        """Return whether nothing was sent or answered for a while."""
        return not self._pending and now - self._sent_at > UNUSED_SECONDS

    def _waits_since(self) -> float | None:
        """Return since when the oldest message should have an answer; None: it may wait."""
        due = 1 if self._lane is Lane.HEARTBEATS else 0
        if len(self._pending) <= due or self._lane is Lane.ROUNDS:
            return None
        return max(self._pending[due].at, self._answered_at)

    def _encode(self, message: CarriedRequest) -> bytes:
        """Return the frame of a message; raises `TypeError`, `ValueError`, `OverflowError`."""
        kind, body = write_message(message)
        self._last_number += 1
        named = message.command if isinstance(message, RequestedCommand) else message
        ask = ConnectGroupAskRequest(group_id=named.group_id, member_id="", kind=kind, body=body)
        frame = write_request(Request(self._head(self._last_number), CLIENT_ID, ask))
        if len(frame) > LONGEST_OF_NODE:
            raise ValueError(f"it has {len(frame)} bytes, and at most {LONGEST_OF_NODE} are taken")
        return LENGTH.pack(len(frame)) + frame

    @staticmethod
    def _head(number: int) -> Head:
        return Head(CONNECT_ASK, 0, number)

    async def _run(self) -> None:
        """Open it and hand on answers until it ends, again and again while there are messages."""
        while self._pending:
            try:
                await self._converse()
            except (OSError, EOFError, FrameRefused, OwnerRefused) as error:
                self._hang_up(str(error) or type(error).__name__)
            await asyncio.sleep(PAUSE_SECONDS)
        self._task = None

    async def _converse(self) -> None:
        self._stream = stream = await self._dial()
        for each in self._pending:
            stream.transport.write(each.frame)
        while True:
            (size,) = LENGTH.unpack(await stream.read_exactly(LENGTH.size))
            if not LENGTH.size < size <= LONGEST_ANSWER:
                raise FrameRefused("length", str(size))
            self._take_answer(await stream.read_exactly(size))

    def _take_answer(self, frame: bytes) -> None:
        (number,) = LENGTH.unpack_from(frame)
        if not self._pending or self._pending[0].number != number:
            raise FrameRefused("malformed", "an answer to another message")
        response = read_response(self._head(number), frame)
        answer = _read_answer(self._pending[0].sender, response)
        self._pending.popleft()
        self._answered_at = time.monotonic()
        self._deliver(answer)

    def _hang_up(self, why: str) -> None:
        stream, self._stream = self._stream, None
        is_sent = stream is not None  # what arrives before it is open waits for that
        if stream is not None:
            stream.transport.abort()
        given_up = [*self._pending]
        self._pending.clear()
        for each in given_up:
            self._deliver(LineAnswer(each.sender, None, why=why, is_sent=is_sent))


def _read_answer(sender: Address, response: Any) -> LineAnswer:  # noqa: ANN401  # of kio
    """Return the answer in a response; raises `FrameRefused`."""
    if response.error_code == LEFT_UNANSWERED:
        return LineAnswer(sender, None)
    if response.error_code:
        reason = _REASONS.get(response.error_code, f"error {response.error_code}")
        why, is_sent = response.error_message or reason, response.error_code != _UNSENT
        return LineAnswer(sender, None, why=why, is_sent=is_sent)
    reply = read_reply(response.kind, response.body)
    return LineAnswer(sender, reply, LogEnds(response.control_end, response.offsets_end))
