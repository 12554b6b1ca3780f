"""Liveness: a group that is left alone comes to rest, and then writes nothing (invariant 6)."""

from typing import Final

from ...actors.messages.orders import ConfigureGroup, Expect, Place, Uncordon
from ...actors.worker.states import State
from ...events.model import GroupState
from .durable_state import GROUP_ID, listed
from .exclusivity import Violation
from .world import World

PATIENCE_MS: Final = 180_000
"""Sessions, revocations, fences, the longest back-off: all over by then."""
AFTERMATH_MS: Final = 30_000
"""How long it may take until the last that was begun is over, and a session after it."""
LOOK_EVERY_MS: Final = 1_000
LONGEST_PROMISE_MS: Final = 60_000
"""The longest that a worker is expected within, and the longest back-off."""
QUIET_MS: Final = 8_000
"""How long a group at rest is watched: more than two heartbeats of each member."""


def come_to_rest(world: World) -> None:
    """Let time pass until the group is at rest and see it stay so; raises `Violation`."""
    world.clock.run(world.clock.now_ms + AFTERMATH_MS)
    _tidy(world)
    world.clock.run(world.clock.now_ms + QUIET_MS)
    until_ms = world.clock.now_ms + _promised_ms(world) + PATIENCE_MS
    while missing := what_is_missing(world):
        if world.clock.now_ms > until_ms:
            raise Violation(f"6: the group does not come to rest: {missing}")
        if not any(world.workers()):
            world.nodes[0].comes()
        world.clock.run(world.clock.now_ms + LOOK_EVERY_MS)
    end = world.durable_state.control.end
    world.clock.run(world.clock.now_ms + QUIET_MS)
    if world.durable_state.control.end != end:
        raise Violation("6: a group at rest writes")
    for worker in world.workers():
        worker.engine.see_answers(world.clock.now_ms)


def _tidy(world: World) -> None:
    """Take back what operators ordered: not all of it lets a group come to rest."""
    group = world.durable_state.group
    for name, order in sorted(group.worker_orders.items()):
        world.command(Uncordon(GROUP_ID, name))
        if order.expected_back_ms:
            world.command(Expect(GROUP_ID, name, 0))
    for resource in sorted(group.resource_orders):
        world.command(Place(GROUP_ID, resource, weight=1, pins=()))
    if group.configs:
        world.command(ConfigureGroup(GROUP_ID, dict.fromkeys(sorted(group.configs))))


def _promised_ms(world: World) -> int:
    """Return how long the group may wait for a time that it has written down.

    That may lie anywhere, since the wall clock jumps: the wait is bounded all the same.
    """
    group, wall_ms = world.durable_state.group, world.clock.wall_ms
    again_at_ms = group.schedule.again_at_ms
    promised = (group.next_deadline_ms or 0, group.target.retry_at_ms, again_at_ms)
    left_ms = min(max(promised) - wall_ms, LONGEST_PROMISE_MS)
    return world.schedule.traits.max_delay_ms + max(0, left_ms)


def what_is_missing(world: World) -> str:
    """Return why the group is not at rest, nothing if it is."""
    group = world.group
    live = {worker.member_id for worker in world.workers()}
    names = {worker.member_id: worker.name for worker in world.workers()}
    held = {each: names.get(member_id, member_id) for each, member_id in group.owner.items()}
    running = world.exclusivity.running()
    placed = group.configured - group.target.unplaceable.keys()
    doubts = {
        f"its process is down or the group is {group.state.value}": world.process.is_down
        or group.state is not GroupState.STABLE,
        f"parked: {listed(group.schedule.parked)}": bool(group.schedule.parked),
        "moves are left": bool(group.schedule.again_at_ms),
        f"the last computation failed: {group.target.error}": bool(group.target.error),
        f"members {sorted(group.members)}, alive {sorted(live)}": set(group.members) != live,
        f"held by nobody: {listed(placed - held.keys())}": placed != held.keys(),
        f"running {running}, held {held}": running != held,
        "somebody comes or goes": any(node.awaited for node in world.nodes)
        or any(each.is_frozen or each.member.state is not State.STABLE for each in world.workers()),
        "a connector is being deleted": any(e.deleting for e in group.connectors.values()),
    }
    return "; ".join(doubt for doubt, holds in doubts.items() if holds)
