"""One simulated cluster: a group, its nodes with their workers, and the faults of its schedule.

A `World` has one of all that a cluster shares: clock, network, the group's process, the logs,
and the invariants that all of it is checked against. A `Node` has one worker at a time and an
assignor process; successors of a worker have the same url, and may speak another protocol. The
supervisor of all nodes reports ended workers to the group: at once or late, once or twice, rightly
or not.

Workers and engines know the world only by what they use of it (`WorkerSurroundings`, `Home`), so
that this module, which builds them, leans on theirs and not the other way round.

After the last fault the world is calm: it settles, and then its group writes nothing (invariant 6).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from ...actors.assignors.built_in import balanced, counting
from ...actors.group.orders.lifecycle import is_stopping
from ...actors.group.state.settings import GroupSettings
from ...actors.messages.commands import GroupCommand, Reply
from ...actors.messages.orders import (
    ConfigureGroup,
    EndMember,
    Expect,
    PutConnector,
    SetPlacement,
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
from ..cluster.messages import AssignorAt
from .environment.assignor import SimulatedAssignor
from .environment.clock import SimulatedClock, Story, Violation, random_stream
from .environment.network import Network
from .group.durable_state import GROUP_ID, DurableState, list_resources
from .group.group_process import GroupProcess
from .group.place import GroupPlace, OneHost
from .hosts.cluster import HostPlan, SimulatedHosts
from .hosts.host import SimulatedHost
from .invariants.classic import RoundInvariants
from .invariants.hosts import SimulatedSink
from .invariants.running import Exclusivity, LifecycleInvariants, Wanted
from .schedule import Schedule
from .worker import SimulatedWorker

PATTERN: Final = 3
"""Traits in which nodes differ alternate in a pattern of so many."""
SERVED: Final = (counting.UNIFORM, counting.RANGE)
AGAIN_MS: Final = 500
"""How often one that is to come looks whether the worker before has ended."""
ASSIGNOR_DOWN_MS: Final = 2_000
"""How long it takes at most until a new assignor process is there."""
SOON_MS: Final = (1, 20, 500)
LATE_MS: Final = (4_000, 15_000, 40_000)
MISTAKE_EVERY_MS: Final = 20_000
"""How often, on the mean, a member that lives is reported, where that happens at all."""
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
OWNED_MS: Final = (2_000, 8_000)
"""When one of several hosts is likely to own the group."""
TIMING_OF_HOSTS: Final = (1_000, 15_000)
"""The heartbeat interval and the session of members where there is a store."""
RESUMED: Final = 0.6
"""How many of the connectors that are paused or stopped run again in the end."""


class Node:
    """A node with one worker at a time; its successors have the same url."""

    def __init__(self, world: "World", number: int) -> None:
        self.number = number
        self.url = f"http://w{number}"
        self.place = world.place_of(number)
        traits = world.schedule.traits
        self.instance_id = f"i{number}" if number % PATTERN < traits.statics else None
        self.is_foreign = number % PATTERN < traits.foreign
        is_served = self.is_foreign or number % PATTERN < traits.served
        served = SERVED[number % len(SERVED)] if is_served else None
        self.server_assignor = served
        self.classic_mode = traits.modes[number % PATTERN]
        """What it speaks whenever it speaks the classic protocol."""
        self.mode = self.classic_mode if number % PATTERN < traits.classic else ""
        """What its next worker speaks, one of `connect.protocol`; empty: the connect protocol."""
        self.worker: SimulatedWorker | None = None
        self.assignor = SimulatedAssignor(
            world.clock,
            random_stream(world.schedule.seed, "assignor", number),
            world.assignor_names,
        )
        self._rng = random_stream(world.schedule.seed, "assignor process", number)
        self.awaited = 0
        """How many are on their way here."""
        self._world = world
        self._lives = 0

    @property
    def live(self) -> SimulatedWorker | None:
        """The worker that lives here, if any does."""
        return self.worker if self.worker is not None and self.worker.is_alive else None

    def hear(self, message: object) -> None:
        """Deliver a message to the present worker, whichever one it was meant for."""
        if self.live is not None:
            self.live.hear(message)

    def comes(self) -> None:
        """Start a worker here, unless one lives, or the host is down."""
        if self.live is None and self.place.is_up:
            self._lives += 1
            self.worker = SimulatedWorker(self._world, self, f"w{self.number}.{self._lives}")
            self._world.story.tell("{} comes", self.worker.name)
            self.worker.begin()

    def membership(self, name: str) -> GroupMembership:
        """Return a new member for a worker here, of the protocol that the node speaks now."""
        traits, served = self._world.schedule.traits, self.server_assignor
        identity = Identity(GROUP_ID, name, name, self.url, instance_id=self.instance_id)
        timing = replace(self._world.timing, rebalance_timeout_ms=traits.rebalance_timeout_ms)
        if self.mode:
            identity = replace(identity, client_id=name)
            return ClassicMembership(identity, timing, self.mode, traits.max_delay_ms)
        assignors = () if served else tuple(map(ClientAssignor, self._world.assignor_names))
        return Membership(identity, timing, assignors, server_assignor=served)

    def replace_assignor(self, pid: int) -> None:
        """End an assignor process, and start another one, unless that was done already."""
        if pid == self.assignor.pid:
            self._world.story.tell("the assignor process of w{} ends", self.number)
            self.assignor.end()
            delay_ms = self._rng.randint(1, ASSIGNOR_DOWN_MS)
            self._world.clock.after(delay_ms, self._tell_of_assignor)

    def _tell_of_assignor(self) -> None:
        self.assignor.is_starting = False
        self.hear(AssignorAt(None, self.assignor.pid))

    def comes_back(self, delay_ms: int) -> None:
        """Start a worker here after a while, unless one lives by then."""
        self.awaited += 1
        self._world.clock.after(delay_ms, self._arrives)

    def _arrives(self) -> None:
        if self.place.is_up:
            self.awaited -= 1
            self.comes()
        else:
            self._world.clock.after(AGAIN_MS, self._arrives)

    def roll(self, delay_ms: int, *, to_classic: bool) -> None:
        """Replace the worker here by one that speaks this protocol."""
        self.mode = self.classic_mode if to_classic else ""
        worker = self.live
        if worker is not None and worker.is_classic is not to_classic:
            self._world.story.tell("{} leaves for one of the other protocol", worker.name)
            worker.leave()
            self.awaited += 1
            self._world.clock.after(delay_ms, self._follow, worker)

    def _follow(self, worker: SimulatedWorker) -> None:
        """Start the next worker as soon as the one before has ended."""
        if worker.is_alive:
            worker.leave()
            self._world.clock.after(AGAIN_MS, self._follow, worker)
        else:
            self._arrives()


class SimulatedSupervisor:
    """The supervisor of all nodes in one world.

    It names exactly the process that it means. After a wrong report the group may at once give to
    others what a living worker runs; its commits are refused by then, so it does not count as
    running anything until it joins again.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rng = random_stream(world.schedule.seed, "supervisor")
        if world.schedule.traits.mistakes:
            self._schedule_mistake()

    def sees_end(self, worker: SimulatedWorker) -> None:
        """Report a worker's end to the group, unless a fault hides it."""
        if self._rng.random() >= self._world.schedule.traits.seen:
            return
        is_late = self._rng.random() < 1 / 3 and not self._world.is_calm
        self._report_after(self._rng.choice(LATE_MS if is_late else SOON_MS), worker)
        if self._rng.random() < 1 / 3:
            self._report_after(self._rng.choice(LATE_MS), worker)

    def _report_after(self, delay_ms: int, worker: SimulatedWorker) -> None:
        self._world.clock.after(self._rng.randint(1, delay_ms), self._report, worker)

    def _report(self, worker: SimulatedWorker) -> None:
        ended_ms = self._world.clock.wall_ms
        member_id = worker.member_id if worker.is_classic else worker.name
        self._world.command(EndMember(GROUP_ID, member_id, worker.incarnation, ended_ms))

    def _schedule_mistake(self) -> None:
        delay_ms = self._rng.randint(1, 2 * MISTAKE_EVERY_MS)
        self._world.clock.after(delay_ms, self._mistake)

    def _mistake(self) -> None:
        if self._world.is_calm:
            return
        living = [each for each in self._world.workers() if each.foreign is None]
        if living and not self._world.process.is_down:
            worker = self._rng.choice(living)
            self._world.exclusivity.disown(worker.name)
            self._report(worker)
        self._schedule_mistake()


class World:
    """All parts of one simulation: the group's process, nodes, network, clock and checks."""

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
        self.timing = Timing()
        self.hosts: SimulatedHosts | None = None
        """The hosts of a cluster with a store; None: there is one host, and none."""
        self.process: GroupProcess | SimulatedHosts = self._begin(settings)
        self.supervisor = SimulatedSupervisor(self)
        self.echoes: list[Callable[[int], None]] = []
        """What repeats old messages as soon as the group's next process is there."""
        self._rng = random_stream(schedule.seed, "news")
        liked = dict.fromkeys((schedule.traits.assignor, balanced.NAME))
        self.assignor_names = tuple(liked)
        """The assignors of all workers that have some of their own, the best liked first."""
        self.nodes = [Node(self, number) for number in range(schedule.size.workers + SPARE_NODES)]
        self.network.connected.update(each.number for each in self.nodes if each.is_foreign)
        for node in self.nodes[: schedule.size.workers]:
            node.comes()
        for at_ms in (100,) if self.hosts is None else OWNED_MS:
            for number in range(schedule.size.connectors):
                put = PutConnector(GROUP_ID, f"c{number}", {"v": "0"})
                self.clock.after(at_ms, self.command, put)

    def _begin(self, settings: GroupSettings) -> GroupProcess | SimulatedHosts:
        """Begin the process of the group, or the hosts of which one owns it."""
        traits, shared = self.schedule.traits, (self.clock, self.story)
        if traits.hosts > 1:
            self.timing = Timing(*TIMING_OF_HOSTS)
            interval_ms, session_ms = TIMING_OF_HOSTS
            settings = replace(
                settings, heartbeat_interval_ms=interval_ms, session_timeout_ms=session_ms
            )
            plan = HostPlan(self.schedule.seed, traits.hosts, traits.wires)
            self.hosts = SimulatedHosts(*shared, settings, self.durable_state, plan)
            self.hosts.on_new_owner(self._tell_of_owner)
            return self.hosts
        process = GroupProcess(*shared, settings, self.durable_state)
        process.on_reopened(self._tell_of_group)
        self._one_host = OneHost(process, self.durable_state)
        return process

    def place_of(self, node: int) -> GroupPlace:
        """Return what stands for the group on a node."""
        if self.hosts is None:
            return self._one_host
        return self.hosts.hosts[node % len(self.hosts.hosts)]

    def nodes_at(self, host: SimulatedHost) -> Sequence[Node]:
        """Return the nodes on a host."""
        return [node for node in self.nodes if node.place is host]

    @property
    def sink(self) -> SimulatedSink | None:
        """Where tasks publish what they have committed; None: they have nothing to publish."""
        return None if self.hosts is None else self.hosts.sink

    @property
    def group(self) -> Group:
        """The group, as its process has it in memory."""
        return self.process.group

    def workers(self) -> Iterator[SimulatedWorker]:
        """Yield the workers that live, in order of their nodes."""
        return (node.worker for node in self.nodes if node.worker and node.worker.is_alive)

    def command(self, command: GroupCommand) -> None:
        """Send a command to the group; it is lost while the group's process is down."""
        self.story.tell("somebody wants {}", command)
        self.process.submit(None, partial(self._take_reply, self.lifecycle.ask(command)), command)

    def roll_all(self, span_ms: int, *, to_classic: bool) -> None:
        """Roll all workers to one protocol, one after the other."""
        for node in self.nodes:
            at_ms, delay_ms = span_ms * node.number // len(self.nodes), span_ms // 16
            self.clock.after(at_ms, partial(node.roll, delay_ms, to_classic=to_classic))

    def worker_ended(self, worker: SimulatedWorker) -> None:
        """Report a worker's end to the group, unless a fault hides it."""
        self.supervisor.sees_end(worker)

    def _take_reply(self, wanted: Sequence[Wanted], reply: Reply) -> None:
        self.story.tell("somebody is told {}", reply)
        self.lifecycle.take_reply(wanted, reply)

    def _tell_of_owner(self, host: SimulatedHost) -> None:
        """Tell the workers on a host that another process has the group."""
        self._repeat_echoes()
        for node in self.nodes_at(host):
            if node.live is not None:
                self.clock.after(self._rng.randint(0, 300), node.live.hears_of_group)

    def _repeat_echoes(self) -> None:
        echoes, self.echoes = self.echoes, []
        for repeat in echoes:
            repeat(ECHO_MS)

    def _tell_of_group(self) -> None:
        self._repeat_echoes()
        for worker in self.workers():
            self.clock.after(self._rng.randint(0, 300), worker.hears_of_group)


def calm(world: World) -> None:
    """End all faults, and cancel later ones."""
    world.story.tell("from now on nothing goes wrong any more")
    world.is_calm = True
    world.network.calm()
    world.process.spare()
    for node in world.nodes:
        node.assignor.heal()


def settle(world: World) -> None:
    """Run until the group is stable, and check that it stays so; raises `Violation`."""
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
    copied = world.durable_state.ends
    world.clock.run(world.clock.now_ms + QUIET_MS)
    if world.hosts is not None:
        world.hosts.check_copies(copied)
    if world.durable_state.control.end != end:
        raise Violation("6: a group at rest writes")
    world.lifecycle.check_orders(world.group)
    world.durable_state.see_alterations()
    _see_work(world, before)
    for worker in world.workers():
        worker.engine.see_answers(world.clock.now_ms)


def _see_work(world: World, before: Mapping[Resource, int]) -> None:
    """Check that exactly the tasks that should run have committed since; raises `Violation`."""
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
    """Undo the operators' orders that keep a group from settling.

    Of the connectors that are paused or stopped some stay so.
    """
    group = world.durable_state.group
    for name, order in sorted(group.worker_orders.items()):
        world.command(Uncordon(GROUP_ID, name))
        if order.expected_back_ms:
            world.command(Expect(GROUP_ID, name, 0))
    for resource in sorted(group.resource_orders):
        world.command(SetPlacement(GROUP_ID, resource, weight=1, pins=()))
    resumed = random_stream(world.schedule.seed, "what is resumed in the end")
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
    """Return why the group is not stable; "" if it is."""
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
