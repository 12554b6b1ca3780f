"""Tells what the default assignor makes of groups of equals: a process for a test to start."""

import random
from dataclasses import replace

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.messages.computing import Snapshot
from fairlead.events.model import Resource
from fairlead_tests.assignors.snapshots import member, snapshot


def entangled(seed: int) -> Snapshot:
    """Return a group in which many equals could give and get this or that."""
    dice = random.Random(seed)
    names = [f"W{number}" for number in range(6)]
    tasks = [Resource("ABC"[number % 3], number // 3) for number in range(36)]
    homes = {task: dice.choice(names[:4]) for task in tasks}
    crew = [
        replace(
            member(name, frozenset(task for task in tasks if homes[task] == name)),
            worker=name,
            rack=zone,
        )
        for name, zone in zip(names, "ababab", strict=True)
    ]
    pins = {task: tuple(dice.sample(names, dice.randint(2, 5))) for task in tasks}
    return replace(snapshot(frozenset(tasks), *crew), pins=pins)


if __name__ == "__main__":
    for number in range(20):
        made = assign(entangled(number))
        print([(name, sorted(share)) for name, share in made.members.items()])
