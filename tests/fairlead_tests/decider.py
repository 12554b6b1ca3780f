"""A group's coordinator without its actor: `decide`, a log and `evolve`, with invariant checks."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.group.computing.compute import schedule_target
from fairlead.actors.group.decide import decide
from fairlead.actors.group.orders.configuration import open_soft_state
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.group.state.soft_state import Decision, DecisionFacts, SoftState
from fairlead.actors.messages.commands import Command, CommandReply, ExpireSession
from fairlead.actors.messages.computing import (
    Assignment,
    Install,
    InstallReply,
    Prepare,
    PrepareReply,
    Snapshot,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.events.entries.codec import restore
from fairlead.events.evolve import evolve
from fairlead.events.group import Group, Member
from fairlead.events.model import ClientAssignor, Resource, Resources, TaskConfig
from fairlead.events.record_parts import lay_out
from fairlead.events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    CurrentAssignment,
    Record,
    TaskConfigs,
)
from fairlead_tests.invariants import Witness

COMPUTE = Error.COMPUTE_ASSIGNMENT
COOPERATIVE = (ClientAssignor("balanced"),)
JOIN = Heartbeat(
    "connect", "", 0, rebalance_timeout_ms=60_000, assignors=COOPERATIVE, owned=(), incarnation="1"
)


def resources(text: str) -> Resources:
    """Read `A A-0 A-1`."""
    return frozenset(map(resource, text.split()))


def resource(text: str) -> Resource:
    """Parse `A` or `A-0`; a name may contain hyphens."""
    name, hyphen, number = text.rpartition("-")
    return Resource(name, int(number)) if hyphen and number.isdigit() else Resource(text)


class Decider:
    """Decides, writes and folds, and checks all invariants after each step."""

    def __init__(self, settings: GroupSettings = GroupSettings()) -> None:  # noqa: B008  # frozen
        self.group = Group("connect")
        self.soft = SoftState(settings)
        self.now_ms = 0
        self.witness = Witness("connect")

    def carry_out(self, command: Command) -> Decision:
        """Decide a command, and write its records."""
        decision = decide(self.group, self.soft, command, self.now_ms)
        self.soft = decision.soft
        if decision.records:
            wrote = command.assignment if isinstance(command, Install) else None
            self.write(*decision.records, wrote=wrote)
        return decision

    def write(self, *records: Record, wrote: Assignment | None = None) -> None:
        """Write records, all or none."""
        for whole, parts in lay_out(self.group.record_parts, records):
            for part in (*parts[:-1], whole):
                evolve(self.group, part, self.group.end)
        self.witness.see(self.group, records, wrote)

    def expire(self, member_id: str, *, acknowledged: bool) -> Decision:
        """Expire the session of a member, which may have acknowledged an assignment or not."""
        with self.knowing(DecisionFacts(has_acknowledged=lambda _: acknowledged)):
            return self.carry_out(ExpireSession(member_id))

    @contextmanager
    def knowing(self, facts: DecisionFacts) -> Generator[None]:
        """Use other settings in the context."""
        before = self.soft.facts
        self.soft = replace(self.soft, facts=facts)
        yield
        self.soft = replace(self.soft, facts=before)

    def restart(self) -> None:
        """Drop all state but the log, and recover the group from it."""
        entries = self.witness.entries
        self.group = restore(self.group.group_id, entries, len(entries))
        self.soft = open_soft_state(self.soft.node or self.soft.settings, self.group)

    # Shortcuts for tests.

    def configure(self, text: str) -> None:
        """Write configs as if the connectors had reported these tasks."""
        configured = resources(text)
        names = sorted({each.connector for each in configured})
        for name in names:
            count = sum(each.is_task for each in configured if each.connector == name)
            tasks = tuple(TaskConfig({"task": str(n)}, 1) for n in range(count))
            self.write(ConnectorConfig(name, {"name": name}, 1, 0), TaskConfigs(name, 1, tasks))
        self.write(ConnectorsTasksMetadata(configured))

    def heartbeat(self, request: Heartbeat) -> HeartbeatReply:
        """Handle a heartbeat, and return its reply."""
        reply = self.carry_out(request).reply
        assert isinstance(reply, HeartbeatReply)
        return reply

    def join(self, member_id: str, request: Heartbeat = JOIN) -> HeartbeatReply:
        """Let a member join, with a unique url."""
        url = request.url or f"http://{member_id.lower()}"
        return self.heartbeat(replace(request, member_id=member_id, url=url))

    def beat(self, member_id: str, owned: str | None = None) -> HeartbeatReply:
        """Send a member's heartbeat with its current epoch."""
        member = self.member(member_id)
        epoch, incarnation = member.current.member_epoch, member.metadata.incarnation
        said = None if owned is None else tuple(resources(owned))
        return self.heartbeat(Heartbeat("connect", member_id, epoch, incarnation, owned=said))

    def prepare(self, member_id: str) -> Snapshot:
        """Let the elected member fetch its snapshot."""
        epoch = self.member(member_id).current.member_epoch
        reply = self.carry_out(Prepare("connect", member_id, epoch)).reply
        assert isinstance(reply, PrepareReply)
        assert reply.snapshot is not None, reply
        return reply.snapshot

    def install(
        self, member_id: str, snapshot: Snapshot, assignment: Assignment | None = None
    ) -> InstallReply:
        """Let the elected member install an assignment, by default that of the default assignor."""
        epoch = self.member(member_id).current.member_epoch
        computed = assignment or assign(snapshot)
        command = Install(
            "connect",
            member_id,
            epoch,
            snapshot.group_epoch,
            computed,
            snapshot_id=snapshot.snapshot_id,
        )
        reply = self.carry_out(command).reply
        assert isinstance(reply, InstallReply)
        return reply

    def compute(self) -> None:
        """Let the elected member compute the target that is due."""
        self.soft = schedule_target(self.group, self.soft, (), self.now_ms).soft
        assert self.soft.computation is not None, "no target is due"
        member_id = self.soft.computation.member_id
        assert self.install(member_id, self.prepare(member_id)) == InstallReply(Error.NONE)

    def settle(self) -> None:
        """Let all members acknowledge their assignment until nothing more is written."""
        for _ in range(5 * (len(self.group.members) + 1)):
            end = self.group.end
            for member_id in sorted(self.group.members):
                assigned = self.member(member_id).current.assigned
                if self.beat(member_id, " ".join(map(str, assigned))).error is COMPUTE:
                    self.compute()
            if self.group.end == end:
                return
        raise AssertionError("the group does not come to rest")

    def member(self, member_id: str) -> Member:
        """Return a member of the group."""
        return self.group.members[member_id]

    def current(self, member_id: str) -> CurrentAssignment:
        """Return the current assignment of a member."""
        return self.member(member_id).current

    def command(self, command: Command) -> CommandReply:
        """Execute an operator order, or an internal command of the group."""
        reply = self.carry_out(command).reply
        assert isinstance(reply, CommandReply)
        return reply
