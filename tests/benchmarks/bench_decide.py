"""What a heartbeat costs the coordinator: decide and evolve, without log and transport."""

import gc
import itertools
from functools import partial

from fairlead.actors.group.decide import decide
from fairlead.actors.messages.members import Heartbeat
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.records import TargetAssignment
from fairlead_tests.benchmarks.figures import median, percentile, tell, times_us
from fairlead_tests.benchmarks.groups import heartbeat, resting, settled, share

SIZES = (10, 10_000)
IDLE_BEATS = 50_000


def idle(group: Group, members: int) -> list[float]:
    """Time heartbeats that change nothing."""
    beats = itertools.cycle([heartbeat(group, number) for number in range(min(members, 1_000))])
    at_rest = resting()

    def beat() -> None:
        decision = decide(group, at_rest, next(beats), 0)
        assert not decision.records

    return times_us(beat, IDLE_BEATS)


def changing(group: Group, members: int) -> list[float]:
    """Time the heartbeats by which each member reaches a new target of the same ten tasks."""
    taken: list[float] = []
    for _ in range(max(1, 10_000 // members)):
        epoch = group.group_epoch = group.group_epoch + 1
        evolve(group, TargetAssignment(epoch, dict(group.target_of), "balanced"), group.end)
        for number in range(members):
            request = heartbeat(group, number, share(number))
            taken += times_us(partial(step, group, request), 1)
    return sorted(taken)


def step(group: Group, request: Heartbeat) -> None:
    """Decide a heartbeat, and evolve the group by what it leads to."""
    for record in decide(group, resting(), request, 0).records:
        evolve(group, record, group.end)


def main() -> None:
    """Print the figures of both sizes, and how they compare."""
    medians: dict[int, float] = {}
    for members in SIZES:
        group = settled(members)
        gc.collect()
        gc.freeze()
        conditions = f"{members} members, {members * 10} tasks, collector frozen"
        quiet = idle(group, members)
        medians[members] = median(quiet)
        tell(f"heartbeat.idle.{members}", median(quiet), "us", conditions=conditions)
        busy = changing(group, members)
        tell(f"heartbeat.changing.{members}.p50", median(busy), "us", conditions=conditions)
        tell(
            f"heartbeat.changing.{members}.p99", percentile(busy, 0.99), "us", conditions=conditions
        )
    small, large = SIZES
    tell(
        "heartbeat.idle.growth",
        medians[large],
        "us",
        peer=f"{small} members",
        peer_value=medians[small],
        conditions="the same in one run",
    )


if __name__ == "__main__":
    main()
