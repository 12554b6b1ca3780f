"""What a plan says is what then happens, when the group really goes that way."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from fairlead.actors.messages.commands import CommandReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, PutTaskConfigs
from fairlead.actors.messages.orders import Cordon, DeleteConnector, PutConnectors, RemoveMember
from fairlead.events.group import token_of
from fairlead.events.model import ClientAssignor, Resource
from fairlead.events.placement import Abilities
from fairlead.runtime.planning.changes import (
    Change,
    ConnectorDeleted,
    ConnectorScaled,
    ConnectorsPut,
    PlannedConfig,
    WorkerDrained,
    WorkerRemoved,
    WorkersJoined,
)
from fairlead.runtime.planning.compare import make_plan
from fairlead.runtime.planning.report import ExpectedDowntimes, Plan
from fairlead.runtime.planning.sandbox import built_in_assignors
from fairlead_tests.decider import JOIN, Decider, resource

PLACE = "127.0.0.1:8083"
TASKS_MAX = 7
OWN = built_in_assignors()


@dataclass
class Cluster:
    """A group and what its node does with it; a worker's member id is new each time."""

    decider: Decider = field(default_factory=Decider)
    started: int = 0

    @property
    def workers(self) -> dict[str, str]:
        """The member ids by the workers' urls."""
        members = self.decider.group.members.values()
        return {member.metadata.url: member.member_id for member in members}

    def homes(self) -> dict[Resource, str]:
        """The url of whoever holds each resource."""
        members, holders = self.decider.group.members, self.decider.group.owner
        return {each: members[member_id].metadata.url for each, member_id in holders.items()}

    def add(self, change: WorkersJoined) -> None:
        for _ in range(change.count):
            self.started += 1
            number = next(n for n in range(1, 99) if f"{PLACE}/w{n}" not in self.workers)
            # An id that sorts now before the others, now behind them.
            member_id = f"{'AZ'[self.started % 2]}{self.started}"
            says = f'{{"capacity":{change.abilities.capacity}}}'.encode()
            assignors = (ClientAssignor("balanced", metadata=says),)
            join = replace(JOIN, url=f"{PLACE}/w{number}", assignors=assignors)
            self.decider.join(member_id, join)
            self.decider.settle()

    def remove(self, change: WorkerRemoved) -> None:
        member_id = self.workers[change.worker]
        self._command(RemoveMember("connect", change.worker))
        self.decider.carry_out(Heartbeat("connect", member_id, -1, "1"))

    def put(self, change: ConnectorsPut) -> None:
        configs = {each.connector: each.config for each in change.connectors}
        known = {name: each.version for name, each in self.decider.group.connectors.items()}
        self._command(PutConnectors("connect", configs))
        for each in change.connectors:
            self.decider.settle()
            # A connector splits its work when it starts, and starts anew with each version.
            group = self.decider.group
            is_new = group.connectors[each.connector].version != known.get(each.connector)
            if is_new or each.connector not in group.task_configs:
                self.split(ConnectorScaled(each.connector, each.tasks))

    def split(self, change: ConnectorScaled) -> None:
        group, name = self.decider.group, change.connector
        holder = group.owner.get(Resource(name))
        token = token_of(group, holder, Resource(name)) if holder else None
        if holder and token:
            configs = tuple({"task": str(n)} for n in range(change.tasks))
            self._command(PutTaskConfigs("connect", holder, name, token, configs))

    def make(self, change: Change) -> None:
        """Really make a change, and let the group settle on it."""
        match change:
            case WorkersJoined():
                self.add(change)
            case WorkerRemoved():
                self.remove(change)
            case WorkerDrained():
                self._command(Cordon("connect", change.worker, drain=True))
            case ConnectorsPut():
                self.put(change)
            case ConnectorScaled():
                self.split(change)
            case ConnectorDeleted():
                self._command(DeleteConnector("connect", change.connector))
        self.decider.settle()

    def _command(
        self, command: PutConnectors | DeleteConnector | Cordon | PutTaskConfigs | RemoveMember
    ) -> None:
        reply = self.decider.carry_out(command).reply
        assert isinstance(reply, CommandReply)
        assert reply.error is Error.NONE, reply


def possible(cluster: Cluster) -> st.SearchStrategy[Change]:
    """Draw a change that can be made as the group is."""
    group = cluster.decider.group
    workers = sorted(cluster.workers)
    names = sorted(name for name, each in group.connectors.items() if not each.deleting)
    tasks = st.integers(1, TASKS_MAX)
    new = f"C{len(group.connectors)}"
    changed = st.sampled_from([f"{new}a", f"{new}b", *names])
    put = st.tuples(changed, st.sampled_from("12"), tasks).map(
        lambda one: PlannedConfig(one[0], {"name": one[0], "v": one[1]}, one[2])
    )
    found: list[st.SearchStrategy[Change]] = [
        st.builds(
            WorkersJoined, st.integers(1, 2), abilities=st.sampled_from((1, 1, 2)).map(Abilities)
        ),
        st.lists(put, min_size=1, max_size=3, unique_by=lambda each: each.connector)
        .map(tuple)
        .map(ConnectorsPut),
    ]
    if workers:
        found.append(st.sampled_from(workers).map(WorkerDrained))
    if len(workers) > 1:
        found.append(st.sampled_from(workers).map(WorkerRemoved))
    if names:
        found.append(st.builds(ConnectorScaled, st.sampled_from(names), tasks))
        found.append(st.sampled_from(names).map(ConnectorDeleted))
    return st.one_of(found)


def told(plan: Plan, before: Mapping[Resource, str]) -> dict[Resource, str]:
    """Where a plan leaves everything, by the workers' urls; what comes new by its name there."""
    homes = dict(before)
    homes.update({resource(move.id): move.taker.worker for move in plan.moves})
    homes.update({resource(start.id): start.taker.worker for start in plan.starts})
    for stop in plan.stops:
        del homes[resource(stop.id)]
    return homes


@given(st.data(), st.integers(1, 6))
def test_what_a_plan_says_is_what_then_happens(data: st.DataObject, length: int) -> None:
    cluster = Cluster()
    cluster.make(WorkersJoined(data.draw(st.integers(0, 3))))
    for _ in range(length):
        change = data.draw(possible(cluster))
        decider, before = cluster.decider, cluster.homes()
        there = set(cluster.workers)
        plan = make_plan(
            decider.group,
            [change],
            OWN,
            ExpectedDowntimes(),
            decider.now_ms,
        )
        cluster.make(change)
        came = [url for url in cluster.workers if url not in there]
        names = {url: f"new-{number}" for number, url in enumerate(came, 1)}
        happened = {each: names.get(url, url) for each, url in cluster.homes().items()}
        assert told(plan, before) == happened, change
        left_out = {resource(each.id) for each in plan.unplaceable}
        assert left_out == decider.group.configured - happened.keys()
        assert plan.stays == sum(happened.get(each) == url for each, url in before.items())
