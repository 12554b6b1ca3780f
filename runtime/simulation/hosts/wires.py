"""Carries what hosts send to each other and to their store: on time, late, or never.

Messages may overtake each other, as they do on connections that are made anew. Whoever a message
reaches may be down or frozen: that is the receiver's business.
"""

from collections import defaultdict, deque
from collections.abc import Iterable
from random import Random
from typing import Final, NamedTuple

from ..environment.clock import Deed, SimulatedClock, Story, random_stream

STORE: Final = "the store"
"""The name of the store as an end of a wire."""
LATEST_MS: Final = 12_000
"""By how much a message may be late."""

Wire = tuple[str, str]
"""From whom to whom."""


class WireTraits(NamedTuple):
    """How bad the wires of a simulation are."""

    jitter_ms: int = 3
    lost: float = 0.0
    """How many messages are lost, as a share of one."""
    late: float = 0.0
    """How many messages are late."""


GOOD_WIRES: Final = WireTraits()
"""No message is lost, and none is late."""


class Wires:
    """Carries messages between hosts and their store."""

    def __init__(self, clock: SimulatedClock, story: Story, seed: int, traits: WireTraits) -> None:
        self._clock, self._story, self._traits = clock, story, traits
        self._rng: Random = random_stream(seed, "wires")
        self._cut_until_ms: dict[Wire, int] = {}
        self._spoilt: defaultdict[Wire, deque[int | None]] = defaultdict(deque)
        """By how much the next messages of a wire are late; None: the message is lost."""

    def cut(self, wires: Iterable[Wire], span_ms: int) -> None:
        """Lose all messages of these wires for a while."""
        until_ms = self._clock.now_ms + span_ms
        self._cut_until_ms |= dict.fromkeys(wires, until_ms)

    def spoil(self, wire: Wire, late_ms: int | None) -> None:
        """Delay the next message of a wire by that time, or lose it."""
        self._spoilt[wire].append(late_ms)

    def calm(self) -> None:
        """Deliver every message from now on, and quickly."""
        self._cut_until_ms.clear()
        self._spoilt.clear()
        self._traits = GOOD_WIRES

    def send(self, source: str, target: str, deed: Deed, *args: object) -> None:
        """Deliver a message: `deed` is called with it once, or not at all."""
        wire, rng, traits = (source, target), self._rng, self._traits
        delay_ms = 1 + int(rng.random() * traits.jitter_ms)
        if self._cut_until_ms.get(wire, 0) > self._clock.now_ms:
            return
        if waiting := self._spoilt.get(wire):
            late_ms = waiting.popleft()
            self._story.tell("{} to {}: {} ms late", source, target, late_ms or "for ever")
            if late_ms is None:
                return
            delay_ms += late_ms
        elif traits.lost and rng.random() < traits.lost:
            return
        elif traits.late and rng.random() < traits.late:
            delay_ms += rng.choice((rng.randint(100, 2_000), rng.randint(2_000, LATEST_MS)))
        self._clock.after(delay_ms, deed, *args)

    def send_in_order(self, source: str, target: str, deed: Deed, *args: object) -> None:
        """Deliver a message in the same time as all others that are sent so, unless it is cut."""
        if self._cut_until_ms.get((source, target), 0) <= self._clock.now_ms:
            self._clock.after(1, deed, *args)
