"""The network of a simulation: messages arrive on time, late, twice, or never."""

from collections import defaultdict, deque
from enum import Enum, StrEnum
from random import Random
from typing import Final

from ....actors.messages.classic import JoinGroup
from ....actors.messages.members import CommitOffsets, ReportStatus
from .clock import Deed, SimulatedClock, Story, random_stream


class Way(StrEnum):
    """The direction of a message."""

    TO_GROUP = "to the group"
    TO_WORKER = "to the worker"


class MessageFault(Enum):
    """The faults of one message."""

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
        """Apply a fault to the next messages of a line."""
        if fault is MessageFault.LOSE or line[0] not in self.connected:
            self._faults[line].extend([(fault, span_ms)] * messages)

    def repeat(self, line: Line, messages: int, span_ms: int) -> None:
        """Deliver some of the last messages of a line once more."""
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
        """Deliver every message from now on, and quickly."""
        self._faults.clear()
        self._cut_until_ms.clear()
        self._jitter_ms = min(self._jitter_ms, 30)

    def send(self, line: Line, deed: Deed, *args: object) -> None:
        """Deliver a message: `deed` is called with it once, twice, or not at all."""
        if line[0] not in self.connected and not _is_never_repeated(args[-1]):
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
            rng = self._rng[line] = random_stream(self._seed, line[0], line[1].value)
        return rng


def _is_never_repeated(message: object) -> bool:
    """Return whether no copy of a message may arrive much later.

    A copy of a worker's first JoinGroup takes its static seat over from the next one (KIP-345). The
    group's process that took it knows it for a copy, but not the one after.
    """
    is_first = isinstance(message, JoinGroup) and not message.member_id
    return is_first or isinstance(message, NEVER_REPEATED)
