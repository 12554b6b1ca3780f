"""What a simulated group costs: its steps with all checks on, and a day of its life."""

import time

from fairlead.runtime.simulation.campaign import CampaignResult, play
from fairlead.runtime.simulation.schedule import ClusterTraits, Schedule, Size, draw
from fairlead_tests.benchmarks.figures import tell

SEEDS = range(60)
DAY_MS = 86_400_000
MINUTE_S = 60
FAULTS_A_DAY = 48
EVERYDAY = ClusterTraits(commit_every_ms=30_000)


def storms() -> None:
    """Time groups to which everything happens at once."""
    findings, begun = CampaignResult(), time.process_time()
    for seed in SEEDS:
        findings = findings.and_also(play(draw(seed, Size())))
        assert findings.last is not None
        assert not findings.last.violation
    took_s = time.process_time() - begun
    conditions = f"{len(SEEDS)} seeds, 3 workers and more, 120 faults in 96 s, all checks"
    tell("simulation.steps", findings.steps / took_s, "decisions+records/s", conditions=conditions)
    tell("simulation.seed", took_s / len(SEEDS), "CPU s", conditions=conditions)


def day() -> None:
    """Time a day of ten workers, with a fault every half hour."""
    size = Size(FAULTS_A_DAY, workers=10, connectors=4, pace_ms=DAY_MS // FAULTS_A_DAY)
    schedule = Schedule(1, size, EVERYDAY, draw(1, size).faults)
    begun = time.process_time()
    outcome = play(schedule)
    took_s = time.process_time() - begun
    assert not outcome.violation
    conditions = f"10 workers, {FAULTS_A_DAY} faults, {outcome.steps} steps, all checks"
    days = outcome.cluster_ms / DAY_MS
    tell("simulation.days", days * MINUTE_S / took_s, "days/CPU min", conditions=conditions)
    tell("simulation.day.steps", outcome.steps / took_s, "1/s", conditions=conditions)


def main() -> None:
    """Print the figures of both."""
    storms()
    day()


if __name__ == "__main__":
    main()
