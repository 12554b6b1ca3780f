"""All that is going to befall a group, drawn from a seed before anything happens.

A trouble names a place, a time and how much; what it meets there is decided when it comes.
So any of them can be left out, and the others stay what they were: that is how a story is
cut down to what matters.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import Final, NamedTuple

from ...actors.assignors.built_in import balanced, deferred, incremental
from .chance import stream


class Kind(Enum):
    """What may go wrong, or what somebody may want."""

    LOSE = "messages are lost"
    DOUBLE = "messages arrive twice"
    DELAY = "messages are late"
    REPEAT = "messages of long ago arrive again"
    CUT = "a worker is cut off"
    CRASH = "a worker dies"
    FREEZE = "a worker freezes"
    LEAVE = "a worker leaves"
    STEP_AWAY = "a static worker leaves for a while"
    JOIN = "a worker comes"
    HANG = "the next stop hangs"
    KILL_GROUP = "the group's process dies"
    KILL_WRITING = "the group's process dies as it writes"
    FREEZE_GROUP = "the group's process freezes"
    BAD_ASSIGNOR = "the next assignment goes wrong"
    SLOW_ASSIGNOR = "the next assignment takes long"
    REASON = "a worker asks for a rebalance"
    EXODUS = "all workers leave, and the group is deleted"
    PUT = "a connector is created or changed"
    DELETE = "a connector is deleted"
    SPLIT = "a connector splits anew"
    CLOCK = "the wall clock jumps"
    CORDON = "a worker is cordoned or drained"
    UNCORDON = "a worker is uncordoned"
    EXPECT = "a worker is expected back"
    PLACE = "somebody says what a resource weighs, and where it may run"
    REBALANCE = "somebody wants a rebalance"
    REMOVE = "a worker is removed"
    CONFIGURE = "a setting of the group is changed, and taken back"


WEIGHTS: Final = {
    Kind.LOSE: 12,
    Kind.DOUBLE: 8,
    Kind.DELAY: 24,
    Kind.REPEAT: 12,
    Kind.CUT: 4,
    Kind.CRASH: 7,
    Kind.FREEZE: 12,
    Kind.LEAVE: 4,
    Kind.STEP_AWAY: 4,
    Kind.JOIN: 7,
    Kind.HANG: 5,
    Kind.KILL_GROUP: 3,
    Kind.KILL_WRITING: 4,
    Kind.FREEZE_GROUP: 4,
    Kind.BAD_ASSIGNOR: 2,
    Kind.SLOW_ASSIGNOR: 3,
    Kind.REASON: 2,
    Kind.PUT: 3,
    Kind.DELETE: 2,
    Kind.SPLIT: 22,
    Kind.EXODUS: 1,
    Kind.CLOCK: 2,
    Kind.CORDON: 3,
    Kind.UNCORDON: 2,
    Kind.EXPECT: 1,
    Kind.PLACE: 2,
    Kind.REBALANCE: 1,
    Kind.REMOVE: 2,
    Kind.CONFIGURE: 5,
}
"""How often each kind comes, compared with the others."""

SPANS_MS: Final[dict[Kind, tuple[int, ...]]] = {
    Kind.DOUBLE: (100, 2_000, 9_000),
    Kind.DELAY: (500, 2_000, 4_000, 9_000),
    Kind.REPEAT: (100, 1_000, 9_000),
    Kind.CUT: (1_000, 5_000, 15_000),
    Kind.CRASH: (100, 2_000, 15_000, 30_000),
    Kind.FREEZE: (500, 3_000, 8_000, 9_500, 12_000, 25_000),
    Kind.LEAVE: (1_000, 20_000),
    Kind.STEP_AWAY: (500, 5_000, 20_000),
    Kind.KILL_GROUP: (100, 4_000, 12_000),
    Kind.KILL_WRITING: (100, 4_000),
    Kind.FREEZE_GROUP: (500, 4_000, 15_000),
    Kind.SLOW_ASSIGNOR: (1_000, 5_000, 25_000),
    Kind.EXODUS: (10_000, 30_000),
    Kind.CLOCK: (1_000, 30_000, 600_000),
    Kind.EXPECT: (5_000, 60_000),
    Kind.CONFIGURE: (5_000, 30_000),
}
"""The longest that a trouble lasts, one of these; what is not named here has no length."""

ALWAYS: Final = frozenset({Kind.SPLIT, Kind.JOIN})
"""Without these nothing ever moves."""

ALL_KINDS: Final = 0.3
"""In how many simulations everything happens."""

SOME_KINDS: Final = 0.4
"""How many kinds happen in the others."""

ASSIGNORS: Final = (
    *[balanced.NAME] * 5,
    *[incremental.NAME] * 3,
    deferred.NAME,
    deferred.SIMPLE,
)
"""What workers like best, in so many of ten simulations."""

MISTAKES: Final = 0.3
"""In how many simulations workers that live are reported to have ended."""

FOREIGN: Final = (0, 0, 0, 1, 2)
"""At so many of three places lives a foreign client."""

BURST: Final = 0.5
"""How many troubles follow close upon another: bad luck comes in bursts."""


class Trouble(NamedTuple):
    """One thing that happens at a time; `who` and `much` mean what the kind makes of them."""

    number: int
    at_ms: int
    kind: Kind
    who: int
    span_ms: int
    much: int

    def __str__(self) -> str:
        """Return the form in which stories list it."""
        span = f" for {self.span_ms} ms" if self.span_ms else ""
        return f"{self.at_ms / 1_000:9.3f}  [{self.number}] {self.kind.value}{span}"


@dataclass(frozen=True, slots=True)
class Size:
    """How large a simulation is: `pace_ms` is the mean time from one trouble to the next."""

    steps: int = 120
    workers: int = 3
    connectors: int = 2
    pace_ms: int = 800
    only: tuple[Kind, ...] = ()
    """What may go wrong; where nothing is named, anything."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What a simulated cluster is like throughout; times in milliseconds."""

    jitter_ms: int = 30
    slowest_stop_ms: int = 200
    rebalance_timeout_ms: int = 20_000
    max_delay_ms: int = 30_000
    commit_every_ms: int = 3_000
    tasks: int = 3
    statics: int = 0
    """At so many of three places the worker is static: it has an instance id."""
    served: int = 0
    """At so many of three places the worker names one of the group's own assignors."""
    seen: float = 0.0
    """How many of the workers' ends are seen, and reported to the group, as a share of one."""
    mistakes: bool = False
    """Whether workers that live are reported as well."""
    foreign: int = 0
    """At so many of three places lives a client that says nothing of its process."""
    assignor: str = balanced.NAME
    """Which one the other workers like best; the default one comes second."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One simulation before it begins."""

    seed: int
    size: Size
    traits: Traits
    troubles: tuple[Trouble, ...]

    @property
    def end_ms(self) -> int:
        """When the last trouble has come."""
        return self.size.steps * self.size.pace_ms

    def keeping(self, numbers: Collection[int]) -> "Plan":
        """Return the same plan with these troubles only."""
        kept = tuple(each for each in self.troubles if each.number in numbers)
        return replace(self, troubles=kept)


def draw(seed: int, size: Size) -> Plan:
    """Return what a seed has in store; the same seed and size, the same plan."""
    dice = stream(seed, "plan")
    # From a stream of its own: seeds that are known for what befell them keep their troubles.
    assignor = stream(seed, "which assignor").choice(ASSIGNORS)
    watch = stream(seed, "which ends are seen")
    seen, mistakes = watch.choice([0.0, 0.7, 1.0]), watch.random() < MISTAKES
    foreign = stream(seed, "how many are foreign").choice(FOREIGN)
    traits = replace(
        _traits(dice), assignor=assignor, seen=seen, mistakes=mistakes, foreign=foreign
    )
    return Plan(seed, size, traits, tuple(_troubles(dice, size)))


def _traits(dice: Random) -> Traits:
    return Traits(
        jitter_ms=dice.choice([5, 30, 30, 400, 2_500, 2_500]),
        slowest_stop_ms=dice.choice([200, 4_000, 9_000, 14_000]),
        rebalance_timeout_ms=dice.choice([10_000, 12_000, 20_000]),
        max_delay_ms=dice.choice([0, 0, 0, 5_000, 30_000]),
        commit_every_ms=dice.choice([1_000, 3_000]),
        tasks=dice.choice([1, 3, 6]),
        statics=dice.choice([0, 0, 1, 3, 3]),
        served=dice.choice([0, 0, 0, 1, 3, 3]),
    )


def _mood(dice: Random) -> Sequence[Kind]:
    """Return the kinds that come in one simulation: in most of them not all.

    What is left out leaves room for more of the rest, and deep trouble needs the same few
    kinds again and again (swarm testing: Groce and others, 2012).
    """
    if dice.random() < ALL_KINDS:
        return list(WEIGHTS)
    return [kind for kind in WEIGHTS if kind in ALWAYS or dice.random() < SOME_KINDS]


def _troubles(dice: Random, size: Size) -> Sequence[Trouble]:
    kinds = size.only or _mood(dice)
    weights = [WEIGHTS[kind] for kind in kinds]
    end_ms, at_ms = size.steps * size.pace_ms, 0
    found: list[tuple[int, Kind, int, int, int]] = []
    for _ in range(size.steps):
        is_close = found and dice.random() < BURST
        at_ms = at_ms + dice.randint(1, 3_000) if is_close else dice.randint(0, end_ms)
        kind = dice.choices(kinds, weights)[0]
        longest_ms = dice.choice(SPANS_MS.get(kind, (0,)))
        span_ms = dice.randint(longest_ms // 3, longest_ms)
        found.append(
            (min(at_ms, end_ms), kind, dice.randrange(1 << 16), span_ms, dice.randrange(8))
        )
    found.sort(key=lambda each: each[0])
    return [Trouble(number, *each) for number, each in enumerate(found)]
