"""A worker core that a test drives by hand, with a transcript of inputs and effects.

Lines that begin with `<` are inputs of the core, those with `>` are its effects, in order.
"""

from dataclasses import dataclass, field
from typing import TypeVar

from fairlead.actors.messages.assignors import DescribeAssignors, DescribeAssignorsReply, Worker
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import (
    CommitOffsets,
    Heartbeat,
    HeartbeatReply,
    PutTaskConfigs,
    ReportStatus,
)
from fairlead.actors.worker.instructions import Identity
from fairlead.actors.worker.membership import Membership
from fairlead.events.commits import Commit, CommitId, Manifest
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.model import (
    ClientAssignor,
    MemberState,
    Resource,
    Resources,
    TaskConfig,
    Token,
)
from fairlead.events.records import (
    ConnectorConfig,
    CurrentAssignment,
    MemberMetadata,
    Record,
    TaskConfigs,
)
from fairlead.runtime.cluster.messages import AssignorAt
from fairlead.runtime.node.worker.core.contract import (
    AbandonAll,
    AnswerCommit,
    AskAssignor,
    CoreReport,
    Effect,
    Exit,
    PresentReached,
    SendToGroup,
    StartResource,
    StopResource,
    TellSupervisor,
    TurnResource,
)
from fairlead.runtime.node.worker.core.worker_core import WorkerCore
from fairlead.runtime.pipeline.tasks.reports import Ending, Stopped
from fairlead_tests.membership.driver import TIMING, resources, spelled

M = TypeVar("M")
WALL_MS = 1_700_000_000_000
PID = 77


class FixedLog:
    """A log with the records of a test."""

    def __init__(self, member_id: str = "m") -> None:
        self.member_id = member_id
        self.group = Group("g")
        self._seen_end = -1

    def write(self, *records: Record) -> None:
        """Append records."""
        for record in records:
            evolve(self.group, record, self.group.end)

    def rename(self, member_id: str) -> None:
        """Follow the member under another id."""
        self.member_id = member_id

    def watch(self, reported: Resources) -> None:
        """Show everything."""

    def catch_up(self) -> Group:
        """Return the whole group."""
        return self.group

    def take_changed(self) -> Resources:
        """Return all resources of the member if anything has changed."""
        if self.group.end == self._seen_end:
            return frozenset()
        self._seen_end = self.group.end
        member = self.group.members.get(self.member_id)
        return frozenset(member.current.assigned) if member else frozenset()


@dataclass
class Driven:
    """A core, its log, and the transcript of inputs and effects."""

    log: FixedLog = field(default_factory=FixedLog)
    now_ms: int = 1_000_000
    names: tuple[str, ...] = ("balanced",)
    is_warm: bool = True
    joins_warm: bool = False
    instance_id: str | None = None
    lines: list[str] = field(default_factory=list[str])
    effects: list[Effect] = field(default_factory=list[Effect])
    """All effects so far."""

    def __post_init__(self) -> None:
        server = None if self.names else "uniform"
        own = tuple(map(ClientAssignor, self.names))
        identity = Identity("g", "m", "i", "url", instance_id=self.instance_id)
        membership = Membership(identity, TIMING, own, server_assignor=server)
        self.core = WorkerCore(
            membership,
            self.log,
            Worker("w"),
            self.names,
            is_warm=self.is_warm,
            joins_warm=self.joins_warm,
        )

    def begin(self) -> None:
        """Begin, and deliver the assignor's metadata."""
        self._keep("begin", self.core.begin(self.now_ms))
        if self.names:
            self.hear(AssignorAt(None, PID))
            asked = self.last(DescribeAssignors)
            own = tuple(map(ClientAssignor, self.names))
            self.hear(DescribeAssignorsReply(asked.number, own))

    def hear(self, message: object) -> None:
        """Deliver a message."""
        name = type(message).__name__
        self._keep(name, self.core.receive(message, self.now_ms))

    def answer(
        self, target: str | None = None, *, epoch: int = 1, error: Error = Error.NONE
    ) -> None:
        """Deliver the group's reply to the latest heartbeat."""
        request = self.last(Heartbeat)
        assignment = None if target is None else resources(target)
        reply = HeartbeatReply(
            error,
            request.member_id,
            epoch,
            request.incarnation,
            request.sequence,
            log_offset=self.log.group.end,
            assignment=assignment,
        )
        told = "no news" if target is None else target or "nothing"
        self._keep(f"{error.value} at {epoch}: {told}", self.core.receive(reply, self.now_ms))

    def ends(self, text: str, ending: Ending = Ending.STOPPED) -> None:
        """Report resources as stopped."""
        found = sorted(resources(text))
        self.report(*[Stopped(each, self._token(each), ending) for each in found])

    def _token(self, resource: Resource) -> Token:
        started = [each.launch for each in self.effects if isinstance(each, StartResource)]
        return next(each.token for each in reversed(started) if each.resource == resource)

    def report(self, *reports: CoreReport) -> None:
        """Deliver reports."""
        told = ", ".join(type(each).__name__ for each in reports)
        self._keep(told, self.core.report(reports, self.now_ms, WALL_MS))

    def passes(self, milliseconds: int) -> None:
        """Advance the clock."""
        self.now_ms += milliseconds
        self._keep(f"{milliseconds} ms", self.core.tick(self.now_ms, WALL_MS))

    def grants(self, text: str, epoch: int = 1, **configs: dict[str, str]) -> None:
        """Append grants of the member, and the configs of their connectors."""
        found = sorted(resources(text))
        for name in sorted({each.connector for each in found}):
            config = {"name": name, **configs.get(name, {})}
            number = max([each.task for each in found if each.connector == name], default=-1)
            tasks = tuple(TaskConfig({"task": str(task)}, 1) for task in range(number + 1))
            self.log.write(ConnectorConfig(name, config, 1, 0), TaskConfigs(name, 1, tasks))
        grants = dict.fromkeys(found, epoch)
        step = CurrentAssignment("m", epoch, epoch, MemberState.STABLE, grants, {})
        self.log.write(MemberMetadata("m", joined_epoch=1), step)

    def last(self, kind: type[M]) -> M:
        """Return the latest sent message of a type."""
        for effect in reversed(self.effects):
            match effect:
                case SendToGroup(message) | AskAssignor(message) | TellSupervisor(message):
                    if isinstance(message, kind):
                        return message
                case _:
                    pass
        raise AssertionError(f"no {kind.__name__} was sent")

    def transcript(self) -> str:
        """Return the lines since the last call."""
        lines, self.lines = self.lines, []
        return "\n".join(lines)

    def _keep(self, told: str, effects: list[Effect]) -> None:
        self.effects += effects
        self.lines += [f"< {told}", *(f"> {_effect(each)}" for each in effects)]


def _effect(effect: Effect) -> str:
    match effect:
        case SendToGroup(message) | AskAssignor(message) | TellSupervisor(message):
            return _message(message)
        case AnswerCommit() | PresentReached() | Exit():
            return _other(effect)
        case StartResource(launch):
            return f"start {launch.resource} under {launch.token}"
        case StopResource(resource):
            return f"stop {resource}"
        case TurnResource(resource, state):
            return f"turn {resource} to {state.value}"
        case AbandonAll():
            return "abandon all"


def _other(effect: AnswerCommit | PresentReached | Exit) -> str:
    match effect:
        case AnswerCommit(commit_id, verdict, why):
            told = why if verdict is None else verdict.error.value
            return f"commit {commit_id.batch} of {Resource(*commit_id[:2])}: {told}"
        case PresentReached(asker, is_known):
            return f"{asker} may read" if is_known else f"{asker} has no answer"
        case Exit(reason):
            return f"exit: {reason}"


def _message(message: object) -> str:
    match message:
        case Heartbeat(member_epoch=epoch, owned=owned):
            told = "" if owned is None else f", owned: {spelled(owned) or 'nothing'}"
            return f"heartbeat at {epoch}{told}"
        case ReportStatus(updates=updates):
            states = (f"{each.resource} {each.state.value}" for each in updates)
            return f"status: {', '.join(states)}"
        case PutTaskConfigs(connector=connector, configs=configs):
            return f"{connector} has {len(configs)} tasks"
        case CommitOffsets(commits=commits, published=published):
            tasks = " ".join(str(Resource(*each.commit_id[:2])) for each in commits)
            return f"commits of {tasks or 'nothing'}, {len(published)} published"
        case _:
            return type(message).__name__


def commit(resource: str, batch: int = 0) -> Commit:
    """The commit of a task's batch."""
    (task,) = resources(resource)
    commit_id = CommitId(task.connector, task.task, Token(1, 1), batch)
    return Commit(commit_id, (), Manifest("/out", "staging", 1, 1, 1), 1)
