"""Runs schedules of many seeds, until one of them breaks a rule, and shrinks that one.

A schedule is shrunk to the faults that are needed to break the rule. That is delta debugging
(Zeller and Hildebrandt, 2002) over the faults of a schedule: leave out halves, then quarters, and
so on, as long as the same rule is still broken.
"""

import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from .environment.clock import Violation
from .faults import schedule_faults
from .schedule import Crew, Schedule, Size, draw
from .world import World, calm, settle

IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # the folder in it goes with the simulation


@dataclass(frozen=True, slots=True)
class PlayResult:
    """The result of one simulation: its figures, and the `violation` that it found, if any.

    `steps` are the decisions of the group's coordinator and the records that it wrote.
    """

    schedule: Schedule
    violation: str
    story: tuple[str, ...]
    cluster_ms: int
    steps: int
    records: int
    commits: int
    moves: int
    restarts: int
    checks: int


def play(schedule: Schedule, *, is_told: bool = False, on_disk: bool = False) -> PlayResult:
    """Run a schedule to its end; any error on the way is a violation.

    A story that is told is slower; with a log on disk it is slower still.
    """
    if not on_disk:
        return _play(World(schedule, is_told=is_told))
    with TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        return _play(World(schedule, is_told=is_told, folder=Path(folder) / "control"))


def _play(world: World) -> PlayResult:
    schedule, violation = world.schedule, ""
    gc.disable()  # a world is one large cycle until it ends: to look for small ones takes long
    try:
        schedule_faults(world)
        world.clock.run(schedule.end_ms)
        calm(world)
        settle(world)
    except Violation as found:
        violation = str(found)
    except Exception as error:  # noqa: BLE001  # a rule that raises is broken as well
        violation = f"{type(error).__name__}: {error}"
    finally:
        gc.enable()
        world.durable_state.close()
    if violation:
        world.story.tell("VIOLATION {}", violation)
    return _outcome(world, violation)


def _outcome(world: World, violation: str) -> PlayResult:
    records = world.durable_state.control.end
    return PlayResult(
        world.schedule,
        violation,
        tuple(world.story.lines),
        world.clock.now_ms,
        world.process.decisions + records,
        records,
        world.durable_state.progress.commits.total(),
        world.exclusivity.moves,
        world.process.generation,
        world.durable_state.checks.count,
    )


PLAYS_MAX: Final = 600
"""After so many plays the shortest story so far has to do."""

Play = Callable[[Schedule], PlayResult]


class Shrinker:
    """Looks for a shorter schedule that breaks the same rule."""

    def __init__(self, found: PlayResult, run: Play = play) -> None:
        self._shortest = found
        self._rule = rule_of(found)
        self._run = run
        self._plays = 0

    def shrink(self) -> PlayResult:
        """Return the result of the shortest schedule that breaks the rule."""
        self._drop_what_came_after()
        parts = 2
        while parts <= len(self._numbers()):
            if self._drop_a_part(parts):
                parts = max(2, parts - 1)
            else:
                parts *= 2
        while self._drop_one() or self._make_smaller():
            pass
        return self._shortest

    def _numbers(self) -> Sequence[int]:
        return [fault.number for fault in self._shortest.schedule.faults]

    def _breaks(self, schedule: Schedule) -> bool:
        if self._plays >= PLAYS_MAX:
            return False
        self._plays += 1
        outcome = self._run(schedule)
        if rule_of(outcome) != self._rule:
            return False
        self._shortest = outcome
        return True

    def _drop_what_came_after(self) -> None:
        schedule, end_ms = self._shortest.schedule, self._shortest.cluster_ms
        self._breaks(
            schedule.with_only([each.number for each in schedule.faults if each.at_ms <= end_ms])
        )

    def _drop_a_part(self, parts: int) -> bool:
        numbers = self._numbers()
        for part in _parts(numbers, parts):
            if self._breaks(self._shortest.schedule.with_only(set(numbers) - set(part))):
                return True
        return False

    def _drop_one(self) -> bool:
        return bool(self._numbers()) and self._drop_a_part(len(self._numbers()))

    def _make_smaller(self) -> bool:
        schedule = self._shortest.schedule
        numbers = self._numbers()
        size = schedule.size
        for smaller in (
            replace(size, workers=size.workers - 1),
            replace(size, connectors=size.connectors - 1),
        ):
            is_possible = smaller.workers > 0 and smaller.connectors > 0
            if is_possible and self._breaks(draw(schedule.seed, smaller).with_only(numbers)):
                return True
        return False


def rule_of(outcome: PlayResult) -> str:
    """Return which rule an outcome broke: the invariant's number, or an error's name."""
    return outcome.violation.partition(":")[0]


def _parts(numbers: Sequence[int], parts: int) -> Iterator[Sequence[int]]:
    length = max(1, -(-len(numbers) // parts))
    return (numbers[at : at + length] for at in range(0, len(numbers), length))


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """Totals over all seeds, and the last run; it is narrated if it broke a rule."""

    seeds: int = 0
    cluster_ms: int = 0
    steps: int = 0
    records: int = 0
    commits: int = 0
    moves: int = 0
    restarts: int = 0
    checks: int = 0
    last: PlayResult | None = None

    def and_also(self, outcome: PlayResult) -> "CampaignResult":
        """Return these totals with those of one more seed."""
        return CampaignResult(
            self.seeds + 1,
            self.cluster_ms + outcome.cluster_ms,
            self.steps + outcome.steps,
            self.records + outcome.records,
            self.commits + outcome.commits,
            self.moves + outcome.moves,
            self.restarts + outcome.restarts,
            self.checks + outcome.checks,
            outcome,
        )


def search(
    seeds: Iterable[int],
    size: Size,
    *,
    go_on: Callable[[], bool] = lambda: True,
    on_disk: bool = False,
) -> CampaignResult:
    """Play seeds while `go_on` is true; the first violation ends it, shrunk and narrated."""
    findings = CampaignResult()
    for seed in seeds:
        outcome = play(draw(seed, size), on_disk=on_disk)
        if outcome.violation:
            shortest = Shrinker(outcome).shrink().schedule
            return findings.and_also(play(shortest, is_told=True, on_disk=on_disk))
        findings = findings.and_also(outcome)
        if not go_on():
            break
    return findings


def replay(
    seed: int, size: Size, numbers: Collection[int], *, on_disk: bool = False
) -> CampaignResult:
    """Play only these faults of a seed, and narrate the run."""
    schedule = draw(seed, size).with_only(numbers)
    return CampaignResult().and_also(play(schedule, is_told=True, on_disk=on_disk))


def again(schedule: Schedule) -> str:
    """Return the command that replays a schedule and narrates it."""
    size = schedule.size
    only = f" --only {','.join(kind.name.lower() for kind in size.only)}" if size.only else ""
    crew = f" --crew {size.crew.value}" if size.crew is not Crew.CONNECT else ""
    kept = ",".join(str(fault.number) for fault in schedule.faults) or "none"
    return (
        f"fairlead simulate --seed {schedule.seed} --steps {size.steps} --workers {size.workers}"
        f" --connectors {size.connectors} --pace {size.pace_ms}{crew}{only} --keep {kept}"
    )
