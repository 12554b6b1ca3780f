"""Random histories of a group, with the real code: any list of actions makes a valid log."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.messages.commands import (
    ContinueMoves,
    ExpireRebalance,
    ExpireSession,
    FinishDeletion,
    ReleaseParked,
    RetryAssignor,
    TimeOutAssignor,
)
from fairlead.actors.messages.computing import Install, Prepare, PrepareReply
from fairlead.actors.messages.members import Heartbeat, PutTaskConfigs, ReportStatus, StatusUpdate
from fairlead.actors.messages.orders import (
    ConfigureGroup,
    Cordon,
    DeleteConnector,
    DeleteGroup,
    Expect,
    PutConnector,
    Rebalance,
    SetPlacement,
    Uncordon,
)
from fairlead.events.group import token_of
from fairlead.events.model import Resource, RunState
from fairlead_tests.decider import JOIN, Decider

Deed = tuple[str, int, int]
"""An action, and two numbers from 0 to 5 that select its objects."""

NUMBERS = 6


OPENING: list[Deed] = [
    ("put", 0, 0),
    ("put", 1, 0),
    ("join", 0, 1),
    ("join", 1, 0),
    ("join", 2, 0),
    ("rest", 0, 0),
    ("split", 0, 4),
    ("rest", 0, 0),
]
"""Three members that share two connectors, one of them with four tasks."""


def member_named(number: int) -> str:
    """Return one of four members, so that each is used several times."""
    return f"W{number % 4}"


@dataclass
class Life:
    """One group, its members `W0` up to `W3`, and its connectors `A` up to `F`."""

    decider: Decider = field(default_factory=Decider)
    incarnations: dict[str, int] = field(default_factory=dict[str, int])

    def lead(self, deeds: list[Deed]) -> Decider:
        """Run all actions in order."""
        for name, first, second in deeds:
            self.decider.now_ms += 1_000
            DEEDS[name](self, first, second)
        return self.decider

    def _beat(self, number: int, epoch: int | None, owned: tuple[Resource, ...] | None) -> None:
        member_id = member_named(number)
        member = self.decider.group.members.get(member_id)
        if member is not None:
            at = member.current.member_epoch if epoch is None else epoch
            incarnation, instance_id = member.metadata.incarnation, member.metadata.instance_id
            self.decider.carry_out(
                Heartbeat(
                    "connect",
                    member_id,
                    at,
                    incarnation,
                    instance_id=instance_id,
                    owned=owned,
                )
            )

    def join(self, number: int, kind: int) -> None:
        """Join; odd kinds are static, and share two instance ids."""
        member_id = member_named(number)
        self.decider.carry_out(
            Heartbeat(
                "connect",
                member_id,
                0,
                JOIN.incarnation,
                url=f"http://n{number % 3}",
                instance_id=f"i{number % 2}" if kind % 2 else None,
                rebalance_timeout_ms=60_000,
                assignors=JOIN.assignors,
                owned=(),
            )
        )

    def acknowledge(self, number: int, _: int) -> None:
        """Send a heartbeat that acknowledges the assignment."""
        member = self.decider.group.members.get(member_named(number))
        if member is not None:
            self._beat(number, None, tuple(sorted(member.current.assigned)))

    def beat(self, number: int, _: int) -> None:
        """Send a heartbeat without changes."""
        self._beat(number, None, None)

    def linger(self, number: int, _: int) -> None:
        """Send a heartbeat that still owns revoked resources."""
        member = self.decider.group.members.get(member_named(number))
        if member is not None:
            current = member.current
            self._beat(number, None, tuple(sorted({*current.assigned, *current.pending})))

    def change(self, number: int, kind: int) -> None:
        """Send a heartbeat with changed metadata that need no new target."""
        member_id = member_named(number)
        member = self.decider.group.members.get(member_id)
        if member is not None:
            metadata, at = member.metadata, member.current.member_epoch
            self.decider.carry_out(
                Heartbeat(
                    "connect",
                    member_id,
                    at,
                    metadata.incarnation,
                    instance_id=metadata.instance_id,
                    rebalance_timeout_ms=60_000 + kind,
                )
            )

    def leave(self, number: int, kind: int) -> None:
        """Leave, permanently or temporarily."""
        self._beat(number, -2 if kind % 2 else -1, None)

    def expire(self, number: int, kind: int) -> None:
        """Miss the session timeout or the rebalance timeout."""
        member = self.decider.group.members.get(member_named(number))
        if member is not None and kind % 2:
            self.decider.carry_out(ExpireSession(member.member_id))
        elif member is not None:
            self.decider.carry_out(ExpireRebalance(member.member_id, member.offset))

    def compute(self, number: int, kind: int) -> None:
        """Let the elected member compute; one time in six it fails, or others act meanwhile."""
        decider = self.decider
        group = decider.group
        chosen = decider.soft.computation
        member = group.members.get(chosen.member_id) if chosen else None
        if member is None:
            return
        at = member.current.member_epoch
        reply = decider.carry_out(Prepare("connect", member.member_id, at)).reply
        if not isinstance(reply, PrepareReply) or reply.snapshot is None:
            return
        if number == 1:
            self.leave(kind, 0)
        snapshot = reply.snapshot
        assignment = None if number == 0 else assign(snapshot)
        if assignment is not None and number == 2:  # some moves are left for later
            assignment = replace(assignment, again_at_ms=snapshot.now_ms + 30_000)
        install = Install(
            "connect", member.member_id, at, snapshot.group_epoch, assignment, "no luck"
        )
        decider.carry_out(install)

    def put(self, number: int, kind: int) -> None:
        """Create a connector, or change it."""
        self.decider.carry_out(
            PutConnector("connect", "ABCDEF"[number], {"n": str(kind)}, principal="someone")
        )

    def delete(self, number: int, _: int) -> None:
        """Delete a connector, or finish it."""
        name = "ABCDEF"[number]
        self.decider.carry_out(DeleteConnector("connect", name))
        self.decider.carry_out(FinishDeletion(name))

    def split(self, number: int, tasks: int) -> None:
        """Report the tasks of a connector, and the status of the first one."""
        name, group = "ABCDEF"[number], self.decider.group
        holder = group.owner.get(Resource(name))
        token = token_of(group, holder, Resource(name)) if holder else None
        if holder is None or token is None:
            return
        configs = tuple({"task": str(each)} for each in range(tasks))
        self.decider.carry_out(PutTaskConfigs("connect", holder, name, token, configs))
        update = StatusUpdate(Resource(name), token, RunState.RUNNING, self.decider.now_ms)
        self.decider.carry_out(ReportStatus("connect", holder, (update,)))

    def wait(self, number: int, _: int) -> None:
        """Let time pass, and the group notice."""
        self.decider.now_ms += 60_000 * number
        number = self.decider.soft.begun
        due = (ReleaseParked(), ContinueMoves(), RetryAssignor(), TimeOutAssignor(number))
        for command in due:
            self.decider.carry_out(command)

    def order(self, number: int, kind: int) -> None:
        """Give an operator's order."""
        worker, resource = member_named(number), Resource("ABCDEF"[number])
        orders = (
            Cordon("connect", worker, principal="someone"),
            Cordon("connect", worker, drain=True),
            Uncordon("connect", worker),
            Expect("connect", worker, 90_000),
            SetPlacement("connect", resource, weight=2, pins=("http://n1",)),
            Rebalance("connect"),
        )
        self.decider.carry_out(orders[kind])

    def configure(self, number: int, kind: int) -> None:
        """Change a setting of the group."""
        value = str(60_000 * number) if kind else None
        configs = {"scheduled.rebalance.max.delay.ms": value}
        self.decider.carry_out(ConfigureGroup("connect", configs))

    def end(self, number: int, _: int) -> None:
        """Delete the group, once in a while."""
        if number == 0:
            self.decider.carry_out(DeleteGroup("connect"))

    def rest(self, _: int, __: int) -> None:
        """Let all members do their due actions, twice."""
        for number in (*range(4), *range(4)):
            self.compute(number + 2, 0)
            self.acknowledge(number, 0)

    def restart(self, _: int, __: int) -> None:
        """Restart the coordinator."""
        self.decider.restart()


DEEDS: Mapping[str, Callable[[Life, int, int], None]] = {
    "join": Life.join,
    "acknowledge": Life.acknowledge,
    "beat": Life.beat,
    "linger": Life.linger,
    "change": Life.change,
    "leave": Life.leave,
    "expire": Life.expire,
    "compute": Life.compute,
    "put": Life.put,
    "delete": Life.delete,
    "split": Life.split,
    "wait": Life.wait,
    "order": Life.order,
    "configure": Life.configure,
    "end": Life.end,
    "rest": Life.rest,
    "restart": Life.restart,
}
