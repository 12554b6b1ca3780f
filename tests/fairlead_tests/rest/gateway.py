"""A double of the gateway to the actors: it uses a group's process, and can be made to fail."""

from fairlead.actors.messages.commands import (
    CommandReply,
    CompactHistory,
    CompactionProgress,
    CompactionState,
    DescribeCompaction,
    Traffic,
)
from fairlead.runtime.cluster.messages import (
    NodeView,
    OwnershipView,
    ProcessView,
    Whereabouts,
)
from fairlead.runtime.interfaces.rest.commands.connection import Command, Outcome
from fairlead.runtime.interfaces.rest.server.errors import Unanswered
from fairlead_tests.rest.group_process import GroupProcess

ASSIGNOR = ProcessView("assignor", 77, "", "running", 1, "process 76 was killed: w1 waited")


class FakeGateway:
    """Executes commands as the gateway does."""

    def __init__(self, group: GroupProcess | None) -> None:
        self.group = group
        self.why = ""
        """Why the group is not served."""
        self.loses_answers = False
        """Whether every first reply is lost, so that the command is repeated."""
        self.refusal: CommandReply | None = None
        """What the group answers instead of carrying a command out."""
        self.workers: tuple[ProcessView, ...] = ()
        self.heartbeats: Traffic | None = Traffic(1_000, 2)
        """What the group tells of its heartbeats; None: it does not answer."""
        self.owned = OwnershipView()
        """What the group's process tells of its owner."""
        self.sent: list[Command] = []
        self.announced = 0
        """How often new log levels were announced."""
        self.stopped_workers: list[tuple[str, bool]] = []
        self.compactions: list[CompactHistory] = []
        """The compactions that were asked for; each is running from then on."""

    async def carry_out(self, command: Command, *, is_of_clients: bool = False) -> Outcome:
        assert not is_of_clients, "there is no shard here"
        self.sent.append(command)
        if self.loses_answers:
            self._command(command)
        return Outcome(self._command(command), repeated=self.loses_answers)

    async def locate(self, group_id: str) -> Whereabouts:
        return Whereabouts(group_id, "somewhere" if self.group else None, 1, self.why)

    async def describe_node(self) -> NodeView:
        if self.group is None:
            raise Unanswered("nobody is here: try again")
        return NodeView(1, (), self.workers, (ASSIGNOR,))

    async def traffic(self, group_id: str) -> Traffic:
        if self.group is None or self.heartbeats is None:
            raise Unanswered(f"nobody serves {group_id}: try again")
        return self.heartbeats

    async def ownership(self, group_id: str) -> OwnershipView:
        if self.group is None:
            raise Unanswered(f"nobody serves {group_id}: try again")
        return self.owned

    async def compaction(self, question: CompactHistory | DescribeCompaction) -> CompactionProgress:
        was_running = bool(self.compactions)
        if isinstance(question, CompactHistory) and not was_running:
            self.compactions.append(question)
        if not self.compactions:
            return CompactionProgress(CompactionState.NONE)
        is_refused = was_running and isinstance(question, CompactHistory)
        return CompactionProgress(CompactionState.RUNNING, 500, is_refused=is_refused)

    async def announce_log_levels(self) -> None:
        if self.group is None:
            raise Unanswered("nobody is here: try again")
        self.announced += 1

    async def stop_worker(self, worker: str, *, force: bool) -> None:
        self.stopped_workers.append((worker, force))

    def _command(self, command: Command) -> CommandReply:
        if self.group is None:
            raise Unanswered("nobody is here: try again")
        reply = self.refusal or self.group.ask("command", command)
        assert isinstance(reply, CommandReply)
        return reply
