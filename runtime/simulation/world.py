"""One simulated cluster: a group, its nodes, and the faults of its schedule.

After the last fault it settles, and then its group writes nothing (invariant 6).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from ...actors.assignors.built_in import balanced
from ...actors.group.orders.lifecycle import is_stopping
from ...actors.group.state.settings import GroupSettings
from ...actors.messages.commands import GroupCommand, Reply
from ...actors.messages.orders import (
    ConfigureGroup,
    Expect,
    Place,
    PutConnector,
    SetTargetState,
    Uncordon,
)
from ...actors.worker.classic.membership import ClassicMembership
from ...actors.worker.group_membership import GroupMembership
from ...actors.worker.instructions import Identity, Timing
from ...actors.worker.membership import Membership
from ...actors.worker.states import State
from ...events.group import Group
from ...events.model import ClientAssignor, GroupState, Resource, RunState
from .crews import RoundInvariants
from .durable_state import GROUP_ID, DurableState, list_resources
from .environment.clock import SimulatedClock, Story, Violation, stream
from .environment.network import Network
from .group_process import GroupProcess
from .node import Node, SimulatedSupervisor
from .running import Exclusivity, LifecycleInvariants, Wanted
from .schedule import Schedule
from .worker import SimulatedWorker

SPARE_NODES: Final = 3
"""So many more workers may come than there were to begin with."""
ECHO_MS: Final = 300
"""How long after a group's process is there what was sent to an earlier one may arrive."""
PATIENCE_MS: Final = 180_000
"""Sessions, revocations, fences, the longest back-off: all over by then."""
AFTERMATH_MS: Final = 30_000
"""How long it may take until the last that was begun is over, and a session after it."""
LOOK_EVERY_MS: Final = 1_000
LONGEST_PROMISE_MS: Final = 60_000
"""The longest that a worker is expected within, and the longest back-off."""
QUIET_MS: Final = 8_000
"""How long a group at rest is watched: two heartbeats of each member, two commits of each task."""
RESUMED: Final = 0.6
"""How many of the connectors that are paused or stopped run again in the end."""


class World:
    """Everything there is in one simulation."""

    def __init__(
        self, schedule: Schedule, *, is_told: bool = False, folder: Path | None = None
    ) -> None:
        """Make the world of a schedule; in a folder the group's log is a real one."""
        self.schedule = schedule
        self.is_calm = False
        self.clock = SimulatedClock()
        self.story = Story(self.clock, is_told=is_told)
        self.exclusivity = Exclusivity(self.story)
        self.network = Network(self.clock, self.story, schedule.seed, schedule.traits.jitter_ms)
        self.lifecycle = LifecycleInvariants(self.exclusivity)
        self.rounds = RoundInvariants()
        self.durable_state = DurableState(
            self.clock, self.story, schedule.seed, folder, self.lifecycle
        )
        settings = GroupSettings(
            max_delay_ms=schedule.traits.max_delay_ms,
            connect_initial_delay_ms=schedule.traits.initial_delay_ms,
            initial_delay_ms=schedule.traits.classic_delay_ms,
        )
        self.process = GroupProcess(self.clock, self.story, settings, self.durable_state)
        self.process.on_reopened(self._tell_of_group)
        self.supervisor = SimulatedSupervisor(self)
        self.echoes: list[Callable[[int], None]] = []
        """What repeats old messages as soon as the group's next process is there."""
        self._rng = stream(schedule.seed, "news")
        liked = dict.fromkeys((schedule.traits.assignor, balanced.NAME))
        self.assignor_names = tuple(liked)
        """The assignors of all workers that have some of their own, the best liked first."""
        self.nodes = [Node(self, number) for number in range(schedule.size.workers + SPARE_NODES)]
        self.network.connected.update(each.number for each in self.nodes if each.is_foreign)
        for node in self.nodes[: schedule.size.workers]:
            node.comes()
        for number in range(schedule.size.connectors):
            self.clock.after(100, self.command, PutConnector(GROUP_ID, f"c{number}", {"v": "0"}))

    @property
    def group(self) -> Group:
        """The group, as its process has it in memory."""
        return self.process.group

    def workers(self) -> Iterator[SimulatedWorker]:
        """Yield the workers that live, in order of their nodes."""
        return (node.worker for node in self.nodes if node.worker and node.worker.is_alive)

    def command(self, command: GroupCommand) -> None:
        """Have the group do what somebody wants, if its process is there to hear of it."""
        self.story.tell("somebody wants {}", command)
        self.process.take(None, partial(self._take_reply, self.lifecycle.ask(command)), command)

    def roll_all(self, span_ms: int, *, to_classic: bool) -> None:
        """Have all workers speak one protocol after a while, rolled one by one."""
        for node in self.nodes:
            at_ms, delay_ms = span_ms * node.number // len(self.nodes), span_ms // 16
            self.clock.after(at_ms, partial(node.roll, delay_ms, to_classic=to_classic))

    def membership(self, node: Node, name: str) -> GroupMembership:
        """Return a new member for a worker at a node, of the protocol that the node speaks now."""
        instance_id, served = node.instance_id, node.server_assignor
        identity = Identity(GROUP_ID, name, name, node.url, instance_id=instance_id)
        timing = Timing(rebalance_timeout_ms=self.schedule.traits.rebalance_timeout_ms)
        if node.mode:
            max_delay_ms, identity = (
                self.schedule.traits.max_delay_ms,
                replace(identity, client_id=name),
            )
            return ClassicMembership(identity, timing, node.mode, max_delay_ms)
        assignors = () if served else tuple(map(ClientAssignor, self.assignor_names))
        return Membership(identity, timing, assignors, server_assignor=served)

    def _take_reply(self, wanted: Sequence[Wanted], reply: Reply) -> None:
        self.story.tell("somebody is told {}", reply)
        self.lifecycle.take_reply(wanted, reply)

    def _tell_of_group(self) -> None:
        echoes, self.echoes = self.echoes, []
        for repeat in echoes:
            repeat(ECHO_MS)
        for worker in self.workers():
            self.clock.after(self._rng.randint(0, 300), worker.hears_of_group)


def calm(world: World) -> None:
    """End all faults, and call off those that were still to come."""
    world.story.tell("from now on nothing goes wrong any more")
    world.is_calm = True
    world.network.calm()
    world.process.spare()
    for node in world.nodes:
        node.assignor.heal()


def settle(world: World) -> None:
    """Let time pass until the group is at rest and see it stay so; raises `Violation`."""
    world.clock.run(world.clock.now_ms + AFTERMATH_MS)
    _tidy(world)
    world.clock.run(world.clock.now_ms + QUIET_MS)
    until_ms = world.clock.now_ms + _promised_ms(world) + PATIENCE_MS
    while missing := what_is_missing(world):
        if world.clock.now_ms > until_ms:
            raise Violation(f"6: the group does not settle: {missing}")
        if not any(world.workers()):
            world.nodes[0].comes()
        world.clock.run(world.clock.now_ms + LOOK_EVERY_MS)
    end, before = world.durable_state.control.end, world.durable_state.progress.commits.copy()
    world.clock.run(world.clock.now_ms + QUIET_MS)
    if world.durable_state.control.end != end:
        raise Violation("6: a group at rest writes")
    world.lifecycle.check_orders(world.group)
    world.durable_state.see_alterations()
    _see_work(world, before)
    for worker in world.workers():
        worker.engine.see_answers(world.clock.now_ms)


def _see_work(world: World, before: Mapping[Resource, int]) -> None:
    """See that what is to work has committed since, and nothing else; raises `Violation`."""
    counts = world.durable_state.progress.commits
    committed = {each for each, count in counts.items() if count > before.get(each, 0)}
    tasks = {
        each.resource
        for worker in world.workers()
        for each in worker.engine.tasks.values()
        if each.resource.is_task and not each.has_failed and _is_to_run(world.group, each.resource)
    }
    if committed != tasks:
        told = f"{list_resources(tasks)} are to work, {list_resources(committed)} have committed"
        raise Violation(f"8: of a group at rest {told}")


def _is_to_run(group: Group, resource: Resource) -> bool:
    return group.target_state(resource.connector) is RunState.RUNNING


def _tidy(world: World) -> None:
    """Take back what operators ordered: not all of it lets a group settle.

    Of the connectors that are paused or stopped some stay so.
    """
    group = world.durable_state.group
    for name, order in sorted(group.worker_orders.items()):
        world.command(Uncordon(GROUP_ID, name))
        if order.expected_back_ms:
            world.command(Expect(GROUP_ID, name, 0))
    for resource in sorted(group.resource_orders):
        world.command(Place(GROUP_ID, resource, weight=1, pins=()))
    resumed = stream(world.schedule.seed, "what is resumed in the end")
    for name in sorted(group.target_states):
        if resumed.random() < RESUMED:
            world.command(SetTargetState(GROUP_ID, name, RunState.RUNNING))
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
    members = {each.member_id for each in group.workers()}
    names = {worker.member_id: worker.name for worker in world.workers()}
    held = {each: names.get(member_id, member_id) for each, member_id in group.owner.items()}
    running = world.exclusivity.running()
    outdated = [each for worker in world.workers() for each in worker.engine.find_outdated()]
    placed = group.configured - group.target.unplaceable.keys()
    doubts = {
        f"its process is down or the group is {group.state.value}": world.process.is_down
        or group.state is not GroupState.STABLE,
        f"parked: {list_resources(group.schedule.parked)}": bool(group.schedule.parked),
        "moves are left": bool(group.schedule.again_at_ms),
        f"the last computation failed: {group.target.error}": bool(group.target.error)
        and group.classic is None,
        f"members {sorted(members)}, alive {sorted(live)}": members != live,
        f"held by nobody: {list_resources(placed - held.keys())}": placed != held.keys(),
        f"running {running}, held {held}": running != held,
        "somebody comes or goes": any(node.awaited for node in world.nodes)
        or any(each.is_frozen or each.member.state is not State.STABLE for each in world.workers()),
        "a connector is being deleted": any(e.deleting for e in group.connectors.values()),
        "a connector is being stopped": any(map(is_stopping, group.target_states.values())),
        f"not yet as the log grants it: {list_resources(outdated)}": bool(outdated),
    }
    return "; ".join(doubt for doubt, holds in doubts.items() if holds)
