"""Nothing runs twice while everything goes wrong, and once it stops, the group comes to rest."""

import os
from functools import partial

import pytest
from simulation.whole import Worker, World

from fairlead.actors.messages import DeleteConnector, PutConnector, PutTaskConfigs
from fairlead.events.model import GroupState, Resource
from fairlead.events.tokens import token_of

TROUBLE_MS, REST_MS = 120_000, 200_000


def seeds() -> range:
    """Return the seeds to run; WHOLE_SEEDS=1000-2000 runs others."""
    first, _, last = os.environ.get("WHOLE_SEEDS", "0-40").partition("-")
    return range(int(first), int(last))


@pytest.mark.parametrize("seed", seeds())
def test_whatever_happens_nothing_runs_twice_and_the_group_comes_to_rest(seed: int) -> None:
    world = World(seed)
    for number in range(world.chance.randint(2, 4)):
        Worker(world, f"u{number}")
    for name in ("c0", "c1"):
        world.after(100, partial(world.command, PutConnector("connect", name, {"name": "x"})))
    end_ms = world.now_ms + TROUBLE_MS
    while world.now_ms < end_ms:
        world.run(world.chance.randint(200, 6_000))
        trouble(world)
    world.run(30_000)
    world.is_rough = False
    world.run(REST_MS)
    assert world.doubled == []

    group = world.coordinator.group
    live = {worker.name: worker for worker in world.workers if worker.is_alive}
    assert group.state in {GroupState.STABLE, GroupState.EMPTY}
    assert set(group.holders) == set(group.configured)
    assert set(group.members) == set(live)
    for name, worker in live.items():
        assert worker.running == worker.member.owned == set(group.members[name].current.assigned)
    end = len(world.log)
    world.run(20_000)
    assert len(world.log) == end, "a group that is left alone writes nothing"


def trouble(world: World) -> None:
    """Do one thing that goes wrong, or that somebody wants."""
    chance = world.chance
    live = [worker for worker in world.workers if worker.is_alive]
    name = f"c{chance.randint(0, 1)}"
    kind = chance.choices(
        ["freeze", "die", "kill", "hang", "split", "delete", "put", "none"],
        [20, 8, 8, 6, 38, 3, 4, 13],
    )[0]
    if kind == "freeze" and live:
        chance.choice(live).freeze()
    elif kind == "die" and live:
        chance.choice(live).die()
    elif kind == "kill":
        world.kill_group()
    elif kind == "hang":
        world.freeze_group()
    elif kind == "split":
        split(world, name, chance.randint(1, 5))
    elif kind == "delete":
        world.command(DeleteConnector("connect", name))
    elif kind == "put":
        world.command(PutConnector("connect", name, {"name": "x"}))


def split(world: World, name: str, tasks: int) -> None:
    """Have whoever holds a connector split it anew."""
    group = world.coordinator.group
    for member_id in group.members:
        token = token_of(group, member_id, Resource(name))
        if token is not None:
            configs = tuple({"task": str(number)} for number in range(tasks))
            world.command(PutTaskConfigs("connect", member_id, name, token, configs))
            return
