"""Schedules: the faults of a simulation, drawn from a seed before it begins.

A fault has a node, a time and an amount; what it does there is decided when it happens. So any
fault can be left out without changing the others, which is how a failing schedule is shrunk.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import Final, NamedTuple, TypedDict

from ...actors.assignors.built_in import balanced, counting, incremental
from .environment.clock import random_stream
from .environment.kinds import (
    CREW_WEIGHTS,
    HOST_WEIGHTS,
    LIFECYCLE_WEIGHTS,
    SPANS_MS,
    WEIGHTS,
    Fault,
)
from .hosts.wires import GOOD_WIRES, WireTraits

STEPS_PER_ROLL: Final = 6
"""Of so many steps one is of that, in such a crew."""

LIFECYCLE: Final = 0.5
"""In how many simulations any of that comes."""

STEPS_PER_LIFECYCLE: Final = 4
"""Of so many steps one is of that."""

STEPS_PER_HOST_FAULT: Final = 8
"""Of so many steps one befalls a host, where there are several."""

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

MOST_KINDS: Final = 0.7
"""How many kinds of faults of hosts happen in one simulation."""

MODES: Final = ("sessioned", "compatible", "eager")
MODE_WEIGHTS: Final = (4, 2, 1)
"""How often classic workers speak each of these."""

MISTAKES: Final = 0.3
"""In how many simulations workers that live are reported to have ended."""

FOREIGN: Final = (0, 0, 0, 1, 2)
"""At so many of three nodes lives a foreign client."""

BURST: Final = 0.5
"""How many faults follow close upon another: bad luck comes in bursts."""


class ScheduledFault(NamedTuple):
    """One fault at a time; each kind has its own meaning of `who` and `much`."""

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


class Crew(Enum):
    """Which protocols the workers of a simulation speak, and whether there are several hosts."""

    CONNECT = "connect"
    CLASSIC = "classic"
    MIXED = "mixed"
    """Some speak the one and some the other, and they are rolled between both."""
    HOSTS = "hosts"
    """All speak the connect protocol, on several hosts with one store."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a simulation is: `steps` faults, with a mean of `pace_ms` from one to the next."""

    steps: int = 120
    workers: int = 3
    connectors: int = 2
    pace_ms: int = 800
    only: tuple[Fault, ...] = ()
    """What may go wrong; where nothing is named, anything."""
    crew: Crew = Crew.CONNECT


@dataclass(frozen=True, slots=True)
class ClusterTraits:
    """The constant traits of a simulated cluster; times in milliseconds."""

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
    classic: int = 0
    """At so many of three nodes the first worker speaks the classic protocol."""
    modes: tuple[str, ...] = ("sessioned",) * 3
    """What workers of that protocol speak at each of three nodes, one of `connect.protocol`."""
    classic_delay_ms: int = 3_000
    """How long an empty classic group waits for more members."""
    hosts: int = 1
    """How many hosts there are; more than one have a store."""
    wires: WireTraits = GOOD_WIRES
    """How bad the wires between hosts and their store are."""
    assignor: str = balanced.NAME
    """Which one the other workers like best; the default one comes second."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The input of one simulation: its size, protocols and faults."""

    seed: int
    size: Size
    traits: ClusterTraits
    faults: tuple[ScheduledFault, ...]

    @property
    def end_ms(self) -> int:
        """The time of the last fault."""
        return self.size.steps * self.size.pace_ms

    def with_only(self, numbers: Collection[int]) -> "Schedule":
        """Return the same schedule with these faults only."""
        kept = tuple(each for each in self.faults if each.number in numbers)
        return replace(self, faults=kept)


def draw(seed: int, size: Size) -> Schedule:
    """Return the schedule of a seed; the same seed and size, the same schedule."""
    rng = random_stream(seed, "plan")
    # From a stream of its own: seeds that are known for what befell them keep their faults.
    assignor = random_stream(seed, "which assignor").choice(ASSIGNORS)
    watch = random_stream(seed, "which ends are seen")
    seen, mistakes = watch.choice([0.0, 0.7, 1.0]), watch.random() < MISTAKES
    foreign = random_stream(seed, "how many are foreign").choice(FOREIGN)
    delay_ms = random_stream(seed, "how long an empty group waits").choice([0, 0, 0, 3_000])
    traits = replace(_traits(rng), assignor=assignor, seen=seen, mistakes=mistakes, foreign=foreign)
    traits = replace(traits, initial_delay_ms=delay_ms, **_crew(seed, size.crew))
    has_hosts = not size.only and size.crew is Crew.HOSTS
    of_hosts = size.steps // STEPS_PER_HOST_FAULT if has_hosts else 0
    lifecycle = random_stream(seed, "what befalls connectors")
    has_lifecycle = not size.only and lifecycle.random() < LIFECYCLE
    of_lifecycle = size.steps // STEPS_PER_LIFECYCLE if has_lifecycle else 0
    is_rolled = not size.only and size.crew is Crew.MIXED
    of_crew = size.steps // STEPS_PER_ROLL if is_rolled else 0
    faults = _faults(
        rng, size.only or _mood(rng), size, size.steps - of_lifecycle - of_crew - of_hosts
    )
    faults += _faults(lifecycle, list(LIFECYCLE_WEIGHTS), size, of_lifecycle, len(faults))
    faults += _faults(random_stream(seed, "rolls"), list(CREW_WEIGHTS), size, of_crew, len(faults))
    of_seed = random_stream(seed, "what befalls hosts")
    faults += _faults(of_seed, _some_of(of_seed, HOST_WEIGHTS), size, of_hosts, len(faults))
    return Schedule(seed, size, traits, tuple(faults))


class _CrewTraits(TypedDict, total=False):
    hosts: int
    wires: WireTraits
    jitter_ms: int
    rebalance_timeout_ms: int
    foreign: int
    commit_every_ms: int
    classic: int
    modes: tuple[str, ...]
    classic_delay_ms: int


def _crew(seed: int, crew: Crew) -> _CrewTraits:
    """Return which workers speak the classic protocol, and how."""
    if crew is Crew.CONNECT:
        return {}
    if crew is Crew.HOSTS:
        rng = random_stream(seed, "which hosts")
        wires = WireTraits(
            rng.choice([3, 8, 40]), *rng.choice([(0, 0), (0.002, 0.005), (0.01, 0.03)])
        )
        return {
            "hosts": rng.choice([2, 3, 3]),
            "wires": wires,
            "jitter_ms": rng.choice([5, 30, 30, 400]),
            "rebalance_timeout_ms": rng.choice([16_000, 20_000]),
            "foreign": 0,
            "commit_every_ms": rng.choice([500, 1_500]),
        }
    rng = random_stream(seed, "which protocols")
    return {
        "modes": tuple(rng.choices(MODES, MODE_WEIGHTS, k=3)),
        "classic": rng.choice([0, 1, 2, 3, 3]) if crew is Crew.MIXED else 3,
        "classic_delay_ms": rng.choice([0, 0, 3_000]),
    }


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
    """Return the kinds of faults in one simulation: mostly not all.

    What is left out leaves room for more of the rest, and deep trouble needs the same few
    kinds again and again (swarm testing: Groce and others, 2012).
    """
    if rng.random() < ALL_KINDS:
        return list(WEIGHTS)
    return [kind for kind in WEIGHTS if kind in ALWAYS or rng.random() < SOME_KINDS]


def _some_of(rng: Random, kinds: Collection[Fault]) -> Sequence[Fault]:
    """Return some of these kinds, at least one."""
    return [kind for kind in kinds if rng.random() < MOST_KINDS] or list(kinds)


def _faults(
    rng: Random, kinds: Sequence[Fault], size: Size, count: int, first: int = 0
) -> list[ScheduledFault]:
    """Return so many faults of these kinds, in their order and numbered from the first."""
    all_weights = WEIGHTS | LIFECYCLE_WEIGHTS | CREW_WEIGHTS | HOST_WEIGHTS
    weights = [all_weights[kind] for kind in kinds]
    end_ms, at_ms = size.steps * size.pace_ms, 0
    faults: list[tuple[int, Fault, int, int, int]] = []
    for _ in range(count):
        is_close = faults and rng.random() < BURST
        at_ms = at_ms + rng.randint(1, 3_000) if is_close else rng.randint(0, end_ms)
        kind = rng.choices(kinds, weights)[0]
        longest_ms = rng.choice(SPANS_MS.get(kind, (0,)))
        span_ms = rng.randint(longest_ms // 3, longest_ms)
        faults.append((min(at_ms, end_ms), kind, rng.randrange(1 << 16), span_ms, rng.randrange(8)))
    faults.sort(key=lambda each: each[0])
    return [ScheduledFault(number, *each) for number, each in enumerate(faults, first)]
