"""Many seeds, one after the other, until one of them breaks a rule."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from .play import PlayResult, play
from .schedule import Schedule, Size, draw
from .shrink import Shrinker


@dataclass(frozen=True, slots=True)
class CampaignResult:
    """What the seeds did together, and the last of them: told where it broke a rule."""

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
        """Return these findings with those of one seed more."""
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
    """Play seeds as long as `go_on`; the first that breaks a rule ends it, cut short and told."""
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
    """Play only these faults of a seed, and tell the story."""
    schedule = draw(seed, size).keeping(numbers)
    return CampaignResult().and_also(play(schedule, is_told=True, on_disk=on_disk))


def again(schedule: Schedule) -> str:
    """Return the command that plays a schedule once more, and tells it."""
    size = schedule.size
    only = f" --only {','.join(kind.name.lower() for kind in size.only)}" if size.only else ""
    kept = ",".join(str(fault.number) for fault in schedule.faults) or "none"
    return (
        f"fairlead simulate --seed {schedule.seed} --steps {size.steps} --workers {size.workers}"
        f" --connectors {size.connectors} --pace {size.pace_ms}{only} --keep {kept}"
    )
