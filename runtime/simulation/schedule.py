"""All that is going to befall a group, drawn from a seed before anything happens.

A fault names a node, a time and how much; what it meets there is decided when it comes.
So any of them can be left out, and the others stay what they were: that is how a story is
cut down to what matters.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import Final, NamedTuple

from ...actors.assignors.built_in import balanced, counting, incremental
from .environment.clock import stream


class Fault(Enum):
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
    PAUSE = "a connector is paused"
    STOP = "a connector is stopped"
    RESUME = "a connector is resumed"
    RESTART = "a connector or a task is restarted"
    FAIL = "a task fails"
    ALTER = "a connector is stopped, its offsets are set, and it is resumed"


WEIGHTS: Final = {
    Fault.LOSE: 12,
    Fault.DOUBLE: 8,
    Fault.DELAY: 24,
    Fault.REPEAT: 12,
    Fault.CUT: 4,
    Fault.CRASH: 7,
    Fault.FREEZE: 12,
    Fault.LEAVE: 4,
    Fault.STEP_AWAY: 4,
    Fault.JOIN: 7,
    Fault.HANG: 5,
    Fault.KILL_GROUP: 3,
    Fault.KILL_WRITING: 4,
    Fault.FREEZE_GROUP: 4,
    Fault.BAD_ASSIGNOR: 2,
    Fault.SLOW_ASSIGNOR: 3,
    Fault.REASON: 2,
    Fault.PUT: 3,
    Fault.DELETE: 2,
    Fault.SPLIT: 22,
    Fault.EXODUS: 1,
    Fault.CLOCK: 2,
    Fault.CORDON: 3,
    Fault.UNCORDON: 2,
    Fault.EXPECT: 1,
    Fault.PLACE: 2,
    Fault.REBALANCE: 1,
    Fault.REMOVE: 2,
    Fault.CONFIGURE: 5,
}
"""How often each kind comes, compared with the others."""

LIFECYCLE_WEIGHTS: Final = {
    Fault.PAUSE: 4,
    Fault.STOP: 5,
    Fault.RESUME: 8,
    Fault.RESTART: 7,
    Fault.FAIL: 4,
    Fault.ALTER: 7,
}
"""The same for what befalls connectors."""

LIFECYCLE: Final = 0.5
"""In how many simulations any of that comes."""

STEPS_PER_LIFECYCLE: Final = 4
"""Of so many steps one is of that."""

SPANS_MS: Final[dict[Fault, tuple[int, ...]]] = {
    Fault.DOUBLE: (100, 2_000, 9_000),
    Fault.DELAY: (500, 2_000, 4_000, 9_000),
    Fault.REPEAT: (100, 1_000, 9_000),
    Fault.CUT: (1_000, 5_000, 15_000),
    Fault.CRASH: (100, 2_000, 15_000, 30_000),
    Fault.FREEZE: (500, 3_000, 8_000, 9_500, 12_000, 25_000),
    Fault.LEAVE: (1_000, 20_000),
    Fault.STEP_AWAY: (500, 5_000, 20_000),
    Fault.KILL_GROUP: (100, 4_000, 12_000),
    Fault.KILL_WRITING: (100, 4_000),
    Fault.FREEZE_GROUP: (500, 4_000, 15_000),
    Fault.SLOW_ASSIGNOR: (1_000, 5_000, 25_000),
    Fault.EXODUS: (10_000, 30_000),
    Fault.CLOCK: (1_000, 30_000, 600_000),
    Fault.EXPECT: (5_000, 60_000),
    Fault.CONFIGURE: (5_000, 30_000),
    Fault.ALTER: (4_000, 20_000),
}
"""The longest that a fault lasts, one of these; what is not named here has no length."""

ALWAYS: Final = frozenset({Fault.SPLIT, Fault.JOIN})
"""Without these nothing ever moves."""

ALL_KINDS: Final = 0.3
"""In how many simulations everything happens."""

SOME_KINDS: Final = 0.4
"""How many kinds happen in the others."""

ASSIGNORS: Final = (
    *[balanced.NAME] * 5,
    *[incremental.NAME] * 3,
    counting.DEFERRED,
    counting.SIMPLE,
)
"""What workers like best, in so many of ten simulations."""

MISTAKES: Final = 0.3
"""In how many simulations workers that live are reported to have ended."""

FOREIGN: Final = (0, 0, 0, 1, 2)
"""At so many of three nodes lives a foreign client."""

BURST: Final = 0.5
"""How many faults follow close upon another: bad luck comes in bursts."""


class ScheduledFault(NamedTuple):
    """One thing that happens at a time; `who` and `much` mean what the kind makes of them."""

    number: int
    at_ms: int
    kind: Fault
    who: int
    span_ms: int
    much: int

    def __str__(self) -> str:
        """Return the form in which stories list it."""
        span = f" for {self.span_ms} ms" if self.span_ms else ""
        return f"{self.at_ms / 1_000:9.3f}  [{self.number}] {self.kind.value}{span}"


@dataclass(frozen=True, slots=True)
class Size:
    """How large a simulation is: `steps` faults, with a mean of `pace_ms` from one to the next."""

    steps: int = 120
    workers: int = 3
    connectors: int = 2
    pace_ms: int = 800
    only: tuple[Fault, ...] = ()
    """What may go wrong; where nothing is named, anything."""


@dataclass(frozen=True, slots=True)
class ClusterTraits:
    """What a simulated cluster is like throughout; times in milliseconds."""

    jitter_ms: int = 30
    slowest_stop_ms: int = 200
    rebalance_timeout_ms: int = 20_000
    max_delay_ms: int = 30_000
    initial_delay_ms: int = 0
    """How long the first target of the empty group waits for more members."""
    commit_every_ms: int = 3_000
    tasks: int = 3
    statics: int = 0
    """At so many of three nodes the worker is static: it has an instance id."""
    served: int = 0
    """At so many of three nodes the worker names one of the group's own assignors."""
    seen: float = 0.0
    """How many of the workers' ends are seen, and reported to the group, as a share of one."""
    mistakes: bool = False
    """Whether workers that live are reported as well."""
    foreign: int = 0
    """At so many of three nodes lives a client that says nothing of its process."""
    assignor: str = balanced.NAME
    """Which one the other workers like best; the default one comes second."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """One simulation before it begins."""

    seed: int
    size: Size
    traits: ClusterTraits
    faults: tuple[ScheduledFault, ...]

    @property
    def end_ms(self) -> int:
        """When the last fault has come."""
        return self.size.steps * self.size.pace_ms

    def keeping(self, numbers: Collection[int]) -> "Schedule":
        """Return the same schedule with these faults only."""
        kept = tuple(each for each in self.faults if each.number in numbers)
        return replace(self, faults=kept)


def draw(seed: int, size: Size) -> Schedule:
    """Return what a seed has in store; the same seed and size, the same schedule."""
    rng = stream(seed, "plan")
    # From a stream of its own: seeds that are known for what befell them keep their faults.
    assignor = stream(seed, "which assignor").choice(ASSIGNORS)
    watch = stream(seed, "which ends are seen")
    seen, mistakes = watch.choice([0.0, 0.7, 1.0]), watch.random() < MISTAKES
    foreign = stream(seed, "how many are foreign").choice(FOREIGN)
    delay_ms = stream(seed, "how long an empty group waits").choice([0, 0, 0, 3_000])
    traits = replace(_traits(rng), assignor=assignor, seen=seen, mistakes=mistakes, foreign=foreign)
    traits = replace(traits, initial_delay_ms=delay_ms)
    lifecycle = stream(seed, "what befalls connectors")
    has_lifecycle = not size.only and lifecycle.random() < LIFECYCLE
    of_lifecycle = size.steps // STEPS_PER_LIFECYCLE if has_lifecycle else 0
    faults = _faults(rng, size.only or _mood(rng), size, size.steps - of_lifecycle)
    faults += _faults(lifecycle, list(LIFECYCLE_WEIGHTS), size, of_lifecycle, len(faults))
    return Schedule(seed, size, traits, tuple(faults))


def _traits(rng: Random) -> ClusterTraits:
    return ClusterTraits(
        jitter_ms=rng.choice([5, 30, 30, 400, 2_500, 2_500]),
        slowest_stop_ms=rng.choice([200, 4_000, 9_000, 14_000]),
        rebalance_timeout_ms=rng.choice([10_000, 12_000, 20_000]),
        max_delay_ms=rng.choice([0, 0, 0, 5_000, 30_000]),
        commit_every_ms=rng.choice([1_000, 3_000]),
        tasks=rng.choice([1, 3, 6]),
        statics=rng.choice([0, 0, 1, 3, 3]),
        served=rng.choice([0, 0, 0, 1, 3, 3]),
    )


def _mood(rng: Random) -> Sequence[Fault]:
    """Return the kinds that come in one simulation: in most of them not all.

    What is left out leaves room for more of the rest, and deep trouble needs the same few
    kinds again and again (swarm testing: Groce and others, 2012).
    """
    if rng.random() < ALL_KINDS:
        return list(WEIGHTS)
    return [kind for kind in WEIGHTS if kind in ALWAYS or rng.random() < SOME_KINDS]


def _faults(
    rng: Random, kinds: Sequence[Fault], size: Size, count: int, first: int = 0
) -> list[ScheduledFault]:
    """Return so many faults of these kinds, in their order and numbered from the first."""
    all_weights = WEIGHTS | LIFECYCLE_WEIGHTS
    weights = [all_weights[kind] for kind in kinds]
    end_ms, at_ms = size.steps * size.pace_ms, 0
    found: list[tuple[int, Fault, int, int, int]] = []
    for _ in range(count):
        is_close = found and rng.random() < BURST
        at_ms = at_ms + rng.randint(1, 3_000) if is_close else rng.randint(0, end_ms)
        kind = rng.choices(kinds, weights)[0]
        longest_ms = rng.choice(SPANS_MS.get(kind, (0,)))
        span_ms = rng.randint(longest_ms // 3, longest_ms)
        found.append((min(at_ms, end_ms), kind, rng.randrange(1 << 16), span_ms, rng.randrange(8)))
    found.sort(key=lambda each: each[0])
    return [ScheduledFault(number, *each) for number, each in enumerate(found, first)]
