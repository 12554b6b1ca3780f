"""Messages between workers and their group: on time, late, twice, or never."""

from collections import defaultdict, deque
from enum import Enum
from random import Random
from typing import Final

from .chance import stream
from .clock import Clock, Deed
from .story import Story


class Way(Enum):
    """Which way a message goes."""

    TO_GROUP = "to the group"
    TO_WORKER = "to the worker"


class Fault(Enum):
    """What may befall one message."""

    LOSE = "is lost"
    DOUBLE = "arrives again, late"
    DELAY = "is late"


Line = tuple[int, Way]
"""A place where workers live, and a direction: what one line suffers, no other does."""

SOONEST_MS: Final = 1


class Network:
    """Carries each message within `jitter_ms`, but for the faults that wait on its line."""

    def __init__(self, clock: Clock, story: Story, seed: int, jitter_ms: int) -> None:
        self._clock = clock
        self._story = story
        self._seed = seed
        self._jitter_ms = jitter_ms
        self._dice: dict[Line, Random] = {}
        self._faults: defaultdict[Line, deque[tuple[Fault, int]]] = defaultdict(deque)
        self._cut_until_ms: dict[Line, int] = {}

    def strike(self, line: Line, fault: Fault, span_ms: int, messages: int) -> None:
        """Have the next messages of a line go wrong."""
        self._faults[line].extend([(fault, span_ms)] * messages)

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
        if self._faults or self._cut_until_ms:
            if self._cut_until_ms.get(line, 0) > self._clock.now_ms:
                self._story.tell("w{} is cut off {}: a message is lost", line[0], line[1].value)
                return
            if waiting := self._faults.get(line):
                self._spoil(line, *waiting.popleft(), deed, args)
                return
        self._clock.after(self._delay_ms(line), deed, *args)

    def _spoil(
        self, line: Line, fault: Fault, span_ms: int, deed: Deed, args: tuple[object, ...]
    ) -> None:
        name = type(args[-1]).__name__
        self._story.tell("w{} {}: {} {}", line[0], line[1].value, name, fault.value)
        if fault is Fault.LOSE:
            return
        late_ms = self._delay_ms(line) + self._dice[line].randint(span_ms // 4, span_ms)
        if fault is Fault.DOUBLE:
            self._clock.after(self._delay_ms(line), deed, *args)
        self._clock.after(late_ms, deed, *args)

    def _delay_ms(self, line: Line) -> int:
        dice = self._dice.get(line)
        if dice is None:
            dice = self._dice[line] = stream(self._seed, line[0], line[1].value)
        return SOONEST_MS + int(dice.random() * self._jitter_ms)
