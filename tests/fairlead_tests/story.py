"""The language of the stories.

Resources are written as in the proposals: a letter for the connector, `C0` for the connector
itself and `T1`, `T2` and so on for its tasks (task 0 is `T1`), so `AC0 AT1` is connector A with
its first task. A passage begins with remarks (`#`) and one command; what the command led to
stands behind `----`: the records, the answer, and the boxes of the proposals.

    given AC0 AT1 BC0               what the group is to run, as its log already says
    given at 35: W1=AC0, W2=BC0     a group at rest at that epoch
    join W1 [at w2] [as i]          a worker joins, at a url of its own or another's, or as static
    heartbeat W1 [at 35] [owns AC0 AT1] [full]
    leave W1 [for a while]
    compute W1                      the default assignor, from Prepare to Install
    gently W1                       the incremental assignor, with one move in half a minute
    prepare W1
    install W1: W1=AC0 AT1, W2=BC0 [parked BT1 until 300]
    install W1 fails: out of luck
    expire W1 | overdue W1          the session's timer, the rebalance's timer
    release | retry                 the timers of parked work and of failed attempts
    continue                        the timer of the moves that are left
    create A | split A 2 by W1 | delete A | bury A
    wait 300                        seconds pass
    restart                         the coordinator loses all but its log
"""

import re
from collections.abc import Callable, Iterable

from fairlead.actors.assignors.built_in import incremental
from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.group.state.soft_state import Decision
from fairlead.actors.messages.commands import (
    Command,
    CommandReply,
    ContinueMoves,
    ExpireRebalance,
    ExpireSession,
    FinishDeletion,
    ReleaseParked,
    Reply,
    RetryAssignor,
)
from fairlead.actors.messages.computing import Assignment, Install, Prepare, PrepareReply, Snapshot
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply, PutTaskConfigs
from fairlead.actors.messages.orders import DeleteConnector, PutConnector
from fairlead.events.group import token_of
from fairlead.events.model import Cause, MemberState, Resource, Resources, Why
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    Loss,
    MemberMetadata,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    Tombstone,
)
from fairlead_tests.decider import JOIN, Decider

RESOURCE = re.compile(r"([A-Z])([CT])(\d+)")
HEARTBEAT = re.compile(
    r"(?P<member>\w+)( at (?P<epoch>-?\d+))?( owns(?P<owned>[^f]*))?(?P<full>full)?"
)
INSTALL = re.compile(r"(?P<shares>.*?)( parked (?P<parked>.*) until (?P<due>\d+))?")


def read(text: str) -> Resources:
    """Read `AC0 AT1`."""
    return frozenset(
        Resource(name) if kind == "C" else Resource(name, int(number) - 1)
        for name, kind, number in RESOURCE.findall(text)
    )


def spell(resources: Iterable[Resource]) -> str:
    """Write `AC0 AT1`."""
    return " ".join(
        f"{name}C0" if task < 0 else f"{name}T{task + 1}" for name, task in sorted(resources)
    )


class Teller:
    """Executes a story's commands on one group, and prints the results."""

    def __init__(self) -> None:
        self.decider = Decider()
        self.snapshot: Snapshot | None = None

    def tell(self, line: str) -> str:
        """Execute one command; return the text of its records, reply and boxes."""
        verb, _, rest = line.partition(" ")
        lines = self._set_up(verb, rest)
        if lines is None:
            commands = self._commands(verb, rest)
            lines = [said for command in commands for said in self._told(command)]
        self.decider.witness.compacted(self.decider.group)
        return "\n".join([*lines, *self._boxes()]) + "\n"

    # What is written before a story begins, and between its commands.

    def _set_up(self, verb: str, rest: str) -> list[str] | None:
        if verb == "given" and rest.startswith("at "):
            self._given_at(rest.removeprefix("at "))
        elif verb == "given":
            names = sorted(map(str, read(rest)))
            self.decider.configure(" ".join(names))
        elif verb == "wait":
            self.decider.now_ms += 1_000 * int(rest)
            return [f"time {self.decider.now_ms // 1_000} s"]
        elif verb == "restart":
            self.decider.restart()
        else:
            return None
        return []

    def _given_at(self, rest: str) -> None:
        epoch, _, shares = rest.partition(": ")
        members = self._shares(shares)
        configured = frozenset[Resource]().union(*members.values())
        self.decider.configure(" ".join(sorted(map(str, configured))))
        at = int(epoch)
        records: list[Record] = [GroupMetadata(at, Cause(Why.OPERATOR, "given"), 0)]
        for member_id, share in members.items():
            url = f"http://{member_id.lower()}"
            records += [
                MemberMetadata(member_id, "1", at, 60_000, JOIN.assignors or (), url=url),
                CurrentAssignment(
                    member_id, at, at - 1, MemberState.STABLE, dict.fromkeys(share, at), {}
                ),
            ]
        records.append(TargetAssignment(at, members))
        self.decider.write(*records)

    def _shares(self, text: str) -> dict[str, Resources]:
        pairs = (share.split("=", 1) for share in text.split(", "))
        return {member_id: read(share) for member_id, share in pairs}

    # Commands.

    def _commands(self, verb: str, rest: str) -> Iterable[Command]:
        match verb:
            case "join":
                yield self._join(rest)
            case "heartbeat":
                yield self._heartbeat(rest)
            case "leave":
                yield self._leave(rest)
            case "prepare":
                yield Prepare("connect", rest, self._epoch(rest))
            case "install":
                yield self._install(rest)
            case "compute":
                yield Prepare("connect", rest, self._epoch(rest))
                assert self.snapshot is not None
                yield self._install_of(rest, assign(self.snapshot))
            case "gently":
                yield Prepare("connect", rest, self._epoch(rest))
                assert self.snapshot is not None
                yield self._install_of(rest, incremental.assign(self.snapshot, 1, 30_000))
            case _:
                yield self._order(verb, rest)

    def _order(self, verb: str, rest: str) -> Command:
        orders: dict[str, Callable[[], Command]] = {
            "expire": lambda: ExpireSession(rest),
            "overdue": lambda: ExpireRebalance(rest, self.decider.member(rest).offset),
            "release": ReleaseParked,
            "continue": ContinueMoves,
            "retry": RetryAssignor,
            "create": lambda: PutConnector("connect", rest, {"name": rest}),
            "delete": lambda: DeleteConnector("connect", rest),
            "bury": lambda: FinishDeletion(rest),
            "split": lambda: self._split(rest),
        }
        return orders[verb]()

    def _epoch(self, member_id: str) -> int:
        return self.decider.current(member_id).member_epoch

    def _leave(self, rest: str) -> Heartbeat:
        member_id, _, returns = rest.partition(" ")
        member = self.decider.group.members.get(member_id)
        instance_id = member.metadata.instance_id if member and returns else None
        return Heartbeat("connect", member_id, -2 if returns else -1, "1", instance_id=instance_id)

    def _join(self, rest: str) -> Heartbeat:
        rest, _, instance_id = rest.partition(" as ")
        member_id, _, at = rest.partition(" at ")
        return Heartbeat(
            "connect",
            member_id,
            0,
            "1",
            instance_id=instance_id or None,
            url=f"http://{at or member_id.lower()}",
            rebalance_timeout_ms=60_000,
            assignors=JOIN.assignors,
            owned=(),
        )

    def _heartbeat(self, rest: str) -> Heartbeat:
        said = HEARTBEAT.fullmatch(rest)
        assert said is not None, rest
        owned = None if said["owned"] is None else tuple(sorted(read(said["owned"])))
        member_id = said["member"]
        epoch = int(said["epoch"]) if said["epoch"] else self._epoch(member_id)
        return Heartbeat(
            "connect",
            member_id,
            epoch,
            "1",
            rebalance_timeout_ms=60_000 if said["full"] else -1,
            assignors=JOIN.assignors if said["full"] else None,
            owned=owned,
        )

    def _install(self, rest: str) -> Install:
        member_id, _, error = rest.partition(" fails: ")
        if error:
            return self._install_of(member_id, None, error)
        member_id, _, told = rest.partition(": ")
        said = INSTALL.fullmatch(told)
        assert said is not None, rest
        parked = dict.fromkeys(read(said["parked"] or ""), 1_000 * int(said["due"] or 0))
        return self._install_of(member_id, Assignment(self._shares(said["shares"]), parked))

    def _install_of(
        self, member_id: str, assignment: Assignment | None, error: str = ""
    ) -> Install:
        assert self.snapshot is not None, "prepare comes first"
        epoch = self.snapshot.group_epoch
        return Install("connect", member_id, self._epoch(member_id), epoch, assignment, error)

    def _split(self, rest: str) -> PutTaskConfigs:
        name, count, _, member_id = rest.split()
        token = token_of(self.decider.group, member_id, Resource(name))
        assert token is not None, f"{member_id} does not run {name}"
        configs = tuple({"task": str(number)} for number in range(int(count)))
        return PutTaskConfigs("connect", member_id, name, token, configs)

    # What is told.

    def _told(self, command: Command) -> list[str]:
        decision: Decision = self.decider.carry_out(command)
        if isinstance(decision.reply, PrepareReply):
            self.snapshot = decision.reply.snapshot
        lines = [f"record {_tell_record(record)}" for record in decision.records]
        return [*(lines or ["nothing written"]), *_tell_reply(decision.reply)]

    def _boxes(self) -> list[str]:
        group = self.decider.group
        lines = [f"group epoch={group.group_epoch} {group.state.value}"]
        lines.append(f"target epoch={group.assignment_epoch}{_bracket(group.target_of)}")
        if group.schedule.parked:
            until = {due // 1_000 for due in group.schedule.parked.values()}
            lines[-1] += f" parked=[{spell(group.schedule.parked)}] until {min(until)} s"
        if group.schedule.again_at_ms:
            lines[-1] += f" more moves at {group.schedule.again_at_ms // 1_000} s"
        for member_id, member in sorted(group.members.items()):
            current = member.current
            pending = f" -[{spell(current.pending)}]" if current.pending else ""
            lines.append(
                f"{member_id} epoch={current.member_epoch} {current.state.name}"
                f" [{spell(current.assigned)}]{pending}"
            )
        return lines


def _bracket(shares: dict[str, Resources]) -> str:
    return "".join(f" {member_id}=[{spell(share)}]" for member_id, share in sorted(shares.items()))


def _tell_reply(reply: Reply) -> list[str]:
    if isinstance(reply, HeartbeatReply):
        said = f"reply {reply.error.name} epoch={reply.member_epoch}"
        shown = "" if reply.assignment is None else f" [{spell(reply.assignment)}]"
        return [f"{said}{shown}" + (f" ({reply.message})" if reply.message else "")]
    if isinstance(reply, CommandReply) and reply.log_offset == 0 and not reply.message:
        return []
    message = f" ({reply.message})" if reply.message else ""
    return [f"reply {reply.error.name}{message}"]


def _tell_record(record: Record) -> str:
    kind = type(record).__name__
    match record:
        case GroupMetadata(epoch, cause):
            told = f"{epoch}: {cause}"
        case Tombstone(of, key):
            told = " ".join([of.__name__, *map(str, key)])
        case Loss(member_id):
            told = f"{member_id} [{spell(record.resources)}]"
        case ScheduledRebalance(parked, fired, again_at_ms):
            told = f"[{spell(parked)}] fired [{spell(fired)}]"
            told += f" again at {again_at_ms}" if again_at_ms else ""
        case TargetAssignment(epoch):
            told = f"{epoch} failed: {record.error}" if record.error else str(epoch)
        case MemberMetadata(member_id) | CurrentAssignment(member_id):
            told = member_id
        case _:
            told = ""
    return f"{kind} {told}".rstrip()
