"""All hosts of a simulation as the one process of the group that others take them for."""

from collections.abc import Callable
from typing import Final, NamedTuple

from ....actors.group.state.settings import GroupSettings
from ....actors.messages.commands import GroupRequest
from ....events.group import Group
from ...node.door.delivery import LogEnds
from ..environment.clock import SimulatedClock, Story, Violation, random_stream
from ..group.coordinating import Hear
from ..group.durable_state import DurableState
from ..group.group_process import Border
from ..invariants.hosts import HostInvariants, SimulatedSink
from .host import Cluster, SimulatedHost
from .owner import OwnerProcess
from .store import SimulatedStore
from .wires import STORE, Wires, WireTraits

AT_THE_OWNER, OF_FAULTS = 3, 5
"""So many of so many faults of hosts befall the owner's."""
BEGIN_MS: Final = 300
"""After how long at most a host begins to follow, once the simulation has begun."""


class HostPlan(NamedTuple):
    """How many hosts there are, and how bad their wires."""

    seed: int
    hosts: int
    wires: WireTraits


class SimulatedHosts:
    """The hosts of a cluster, their store, and what is checked of both."""

    def __init__(
        self,
        clock: SimulatedClock,
        story: Story,
        settings: GroupSettings,
        durable_state: DurableState,
        plan: HostPlan,
    ) -> None:
        seed = plan.seed
        self.checks = HostInvariants()
        self.sink = SimulatedSink()
        self.wires = Wires(clock, story, seed, plan.wires)
        self._durable_state = durable_state
        self._rng = random_stream(seed, "doors")
        self._clock = clock
        self._new_owner: list[Callable[[SimulatedHost], None]] = []
        store = SimulatedStore(clock, story, durable_state, self.checks, self.sink, seed)
        hosts: dict[str, SimulatedHost] = {}
        shared = clock, story, settings, durable_state, store, self.wires, self.checks, hosts
        cluster = Cluster(*shared, self._tell)
        for number in range(plan.hosts):
            host = SimulatedHost(number, cluster)
            hosts[host.name] = host
            clock.after(self._rng.randint(0, BEGIN_MS), host.follow)
        self.hosts = [*hosts.values()]

    def on_new_owner(self, deed: Callable[[SimulatedHost], None]) -> None:
        """Register a callback for each door that learns of another owner."""
        self._new_owner.append(deed)

    def _tell(self, host: SimulatedHost) -> None:
        for deed in self._new_owner:
            deed(host)

    # -- as the one process of the group

    @property
    def owner(self) -> SimulatedHost | None:
        """The host that owns the group; of several that think so the last one."""
        serving = [each for each in self.hosts if each.serves]
        return max(
            serving, key=lambda host: host.process.epoch if host.process else 0, default=None
        )

    @property
    def process(self) -> OwnerProcess | None:
        """The process that owns the group."""
        owner = self.owner
        return None if owner is None else owner.process

    @property
    def group(self) -> Group:
        """The group as its process has it in memory; as it counts, where there is none."""
        process = self.process
        return self._durable_state.group if process is None else process.group

    @property
    def is_down(self) -> bool:
        """Whether nobody serves."""
        return self.process is None

    @property
    def generation(self) -> int:
        """How many owners there were."""
        return self.checks.owners

    @property
    def decisions(self) -> int:
        """How many answers were told."""
        return self.checks.answers

    def submit(self, _: int | None, hear: Hear, message: GroupRequest) -> None:
        """Send a command of people to the door of some host that is well."""
        if doors := [each for each in self.hosts if each.is_up and not each.is_frozen]:
            self._rng.choice(doors).submit_in_order(hear, message)

    def die(self, downtime_ms: int) -> None:
        """Kill the process that owns the group: its host is well."""
        if process := self.process:
            process.die(downtime_ms)

    def doom(self, border: Border, downtime_ms: int) -> None:
        """Kill it the next time that it writes."""
        if process := self.process:
            process.doomed, process.downtime_ms = border, downtime_ms

    def freeze(self, span_ms: int, *, ticks_first: bool) -> None:
        """Freeze it for a while: its host is well."""
        if process := self.process:
            process.freeze(span_ms, ticks_first=ticks_first)

    def spare(self) -> None:
        """End all faults: every host is back, and hears all others."""
        self.wires.calm()
        for host in self.hosts:
            host.boot()
            if host.process is not None:
                host.process.doomed = None

    # -- faults

    def aim(self, who: int) -> SimulatedHost:
        """Return the host that a fault befalls: mostly the owner's."""
        owner = self.owner
        if owner is not None and who % OF_FAULTS < AT_THE_OWNER:
            return owner
        return self.hosts[who % len(self.hosts)]

    def cut(self, host: SimulatedHost, ways: int, span_ms: int, *, stores: bool) -> None:
        """Cut a host off from the store, or from the other hosts, one way or both."""
        others = [STORE] if stores else [each.name for each in self.hosts if each is not host]
        there = [(host.name, each) for each in others]
        back = [(each, host.name) for each in others]
        self.wires.cut(((*there, *back), there, back)[ways % 3], span_ms)

    def move(self, who: int) -> None:
        """Make the owner give the group up, to another host or to any."""
        if process := self.process:
            names = ["", *(each.name for each in self.hosts)]
            process.resign(names[who % len(names)])

    def check_copies(self, ends: LogEnds) -> None:
        """Check that every copy has what counted a while ago; raises `Violation`."""
        for host in self.hosts:
            if not host.ends.have(ends):
                raise Violation(f"12: the copy of {host.name} ends at {host.ends}, not at {ends}")
