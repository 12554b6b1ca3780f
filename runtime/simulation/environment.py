"""What a simulated process finds around it: time, chance, the network, and who tells its story.

All of it is the same for the same seed. The order in which things happen depends on nothing but
the seed. For each thing there is a random generator of its own, out of the seed and the
thing's name. So what happens to one worker does not shift what happens to another, in any process:
a text seeds `Random` by its SHA-512, not by its hash.

Messages between workers and their group arrive on time, late, twice, or never. Some clients are
foreign: they say nothing of their process, as those of Kafka's own protocols. Such a client has no
member id until the group gives it one, no incarnation, no sequence, and it does not know of
coordinator epochs. It speaks through a connection, one request at a time, so it knows which request
an answer answers. Otherwise it does what every member does.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import replace
from enum import Enum, StrEnum
from itertools import count
from random import Random
from typing import Any, Final

from ...actors.group.shard import Now
from ...actors.messages.members import (
    NO_COORDINATOR_EPOCH,
    CommitOffsets,
    Heartbeat,
    HeartbeatReply,
    PutTaskConfigs,
    ReportStatus,
)
from ..node.worker.core.contract import GroupMessage

WALL_MS = 1_700_000_000_000
"""The wall clock at the beginning, in milliseconds since 1970."""

NEVER = 1 << 60
"""Later than anything."""

Deed = Callable[..., None]


class SimulatedClock:
    """Two clocks in milliseconds: a steady one that drives everything, and a wall clock.

    The wall clock may be set forwards and backwards (`skew_ms`), the steady one never is.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self.skew_ms = 0
        self._agenda: list[tuple[int, int, Deed, tuple[Any, ...]]] = []
        self._order = count()
        self._now = Now(WALL_MS, 0)

    @property
    def wall_ms(self) -> int:
        """The time of day, as far as this machine knows."""
        return WALL_MS + self.now_ms + self.skew_ms

    def set_wall(self, skew_ms: int) -> None:
        """Set the wall clock to be so far off from now on."""
        self.skew_ms = skew_ms
        self._now = Now(self.wall_ms, self.now_ms)

    def now(self) -> Now:
        """Return this moment on both clocks."""
        if self._now.steady_ms != self.now_ms:
            self._now = Now(self.wall_ms, self.now_ms)
        return self._now

    def after(self, delay_ms: int, deed: Deed, *args: object) -> None:
        """Have something happen once, when the delay is over."""
        heapq.heappush(self._agenda, (self.now_ms + delay_ms, next(self._order), deed, args))

    def run(self, until_ms: int) -> None:
        """Let happen all that falls due up to a moment: by time, then as it was asked for."""
        agenda = self._agenda
        while agenda and agenda[0][0] <= until_ms:
            self.now_ms, _, deed, args = heapq.heappop(agenda)
            deed(*args)
        self.now_ms = until_ms


def stream(*names: object) -> Random:
    """Return the random generator of these names; the same names, the same numbers."""
    return Random("/".join(map(str, names)))  # noqa: S311  # nobody is to be kept from guessing


class Story:
    """The lines so far; a story that is not told costs next to nothing."""

    def __init__(self, clock: SimulatedClock, *, is_told: bool) -> None:
        self.is_told = is_told
        self.lines: list[str] = []
        self._clock = clock

    def tell(self, template: str, *args: object) -> None:
        """Add a line, if the story is told; `template` is filled in only then."""
        if self.is_told:
            seconds = self._clock.now_ms / 1_000
            self.lines.append(f"{seconds:9.3f}  {template.format(*args)}")


class Violation(Exception):  # noqa: N818  # what was violated is the news, not that it is an error
    """Something happened that must never happen; the number is that of PROTOCOL §11."""


class Way(StrEnum):
    """Which way a message goes."""

    TO_GROUP = "to the group"
    TO_WORKER = "to the worker"


class MessageFault(Enum):
    """What may befall one message."""

    LOSE = "is lost"
    DOUBLE = "arrives again, late"
    DELAY = "is late"


Line = tuple[int, Way]
"""A node where workers live, and a direction: what one line suffers, no other does."""

SOONEST_MS: Final = 1
REMEMBERED: Final = 60
"""So many of the last messages of a line may arrive once more."""
NEVER_REPEATED: Final = (CommitOffsets, ReportStatus)
"""Messages that are not among them."""


class Network:
    """Carries each message within `jitter_ms`, but for the faults that wait on its line."""

    def __init__(self, clock: SimulatedClock, story: Story, seed: int, jitter_ms: int) -> None:
        self._clock = clock
        self._story = story
        self._seed = seed
        self._jitter_ms = jitter_ms
        self._rng: dict[Line, Random] = {}
        self._faults: defaultdict[Line, deque[tuple[MessageFault, int]]] = defaultdict(deque)
        self._cut_until_ms: dict[Line, int] = {}
        self._past: defaultdict[Line, deque[tuple[Deed, tuple[object, ...]]]] = defaultdict(
            lambda: deque(maxlen=REMEMBERED)
        )
        self._busy_until_ms: dict[Line, int] = {}
        self.connected: set[int] = set()
        """The nodes whose messages go through a connection: in order, and never twice."""

    def strike(self, line: Line, fault: MessageFault, span_ms: int, messages: int) -> None:
        """Have the next messages of a line go wrong."""
        if fault is MessageFault.LOSE or line[0] not in self.connected:
            self._faults[line].extend([(fault, span_ms)] * messages)

    def repeat(self, line: Line, messages: int, span_ms: int) -> None:
        """Have some of the last messages of a line arrive once more."""
        past = self._past[line]
        for _ in range(min(messages, len(past))):
            rng = self._stream(line)
            deed, args = past[rng.randrange(len(past))]
            name = type(args[-1]).__name__
            self._story.tell("w{} {}: an old {} arrives again", line[0], line[1].value, name)
            self._clock.after(rng.randint(SOONEST_MS, span_ms), deed, *args)

    def cut(self, line: Line, span_ms: int) -> None:
        """Lose all messages of a line for a while."""
        self._cut_until_ms[line] = self._clock.now_ms + span_ms

    def calm(self) -> None:
        """Let every message through from now on, and quickly."""
        self._faults.clear()
        self._cut_until_ms.clear()
        self._jitter_ms = min(self._jitter_ms, 30)

    def send(self, line: Line, deed: Deed, *args: object) -> None:
        """Have a message arrive: `deed` is done with it once, twice, or not at all."""
        if line[0] not in self.connected and not isinstance(args[-1], NEVER_REPEATED):
            self._past[line].append((deed, args))
        if self._faults or self._cut_until_ms:
            if self._cut_until_ms.get(line, 0) > self._clock.now_ms:
                self._story.tell("w{} is cut off {}: a message is lost", line[0], line[1].value)
                return
            if waiting := self._faults.get(line):
                self._spoil(line, *waiting.popleft(), deed, args)
                return
        self._clock.after(self._delay_ms(line), deed, *args)

    def _spoil(
        self, line: Line, fault: MessageFault, span_ms: int, deed: Deed, args: tuple[object, ...]
    ) -> None:
        name = type(args[-1]).__name__
        self._story.tell("w{} {}: {} {}", line[0], line[1].value, name, fault.value)
        if fault is MessageFault.LOSE:
            return
        late_ms = self._delay_ms(line) + self._rng[line].randint(span_ms // 4, span_ms)
        if fault is MessageFault.DOUBLE:
            self._clock.after(self._delay_ms(line), deed, *args)
        self._clock.after(late_ms, deed, *args)

    def _delay_ms(self, line: Line) -> int:
        delay_ms = SOONEST_MS + int(self._stream(line).random() * self._jitter_ms)
        if line[0] in self.connected:
            now_ms = self._clock.now_ms
            delay_ms = max(delay_ms, self._busy_until_ms.get(line, 0) - now_ms)
            self._busy_until_ms[line] = now_ms + delay_ms
        return delay_ms

    def _stream(self, line: Line) -> Random:
        rng = self._rng.get(line)
        if rng is None:
            rng = self._rng[line] = stream(self._seed, line[0], line[1].value)
        return rng


class ForeignClient:
    """Takes from a member's messages what such a client would not say, and adds it to answers."""

    def __init__(self) -> None:
        self.member_id = ""

    def says(self, message: GroupMessage) -> GroupMessage:
        """Return what the client says in place of the message."""
        match message:
            case Heartbeat():
                return replace(
                    message,
                    member_id=self.member_id,
                    incarnation="",
                    sequence=0,
                    coordinator_epoch=NO_COORDINATOR_EPOCH,
                )
            case PutTaskConfigs() | ReportStatus() | CommitOffsets():
                return replace(message, member_id=self.member_id)
            case _:
                return message

    def hears(self, asked: object, reply: object) -> object:
        """Return the answer as one to the message that was asked."""
        if not isinstance(asked, Heartbeat) or not isinstance(reply, HeartbeatReply):
            return reply
        self.member_id = reply.member_id
        return replace(
            reply,
            member_id=asked.member_id,
            incarnation=asked.incarnation,
            sequence=asked.sequence,
            coordinator_epoch=NO_COORDINATOR_EPOCH,
        )
