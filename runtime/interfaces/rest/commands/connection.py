"""One thread's connection to the supervisor and the groups of a node.

The address of a group is cached while its process lives.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from .....actors.messages.commands import (
    CommandReply,
    CompactHistory,
    CompactionProgress,
    DescribeCompaction,
    DescribeTraffic,
    RequestedCommand,
    Traffic,
)
from .....actors.messages.orders import (
    ConfigureGroup,
    ConnectorOrder,
    DeleteGroup,
    MoveOwner,
    OperatorCommand,
)
from .....actors.transport.actor import Address
from .....actors.transport.system import System, SystemConnection, UnreachableError, connect
from .....events.entries.group_keys import shard_of_group
from .....events.log.process import ProcessId, is_alive, process_of
from .....events.log.space import disk_space_at
from ....cluster.messages import (
    SUPERVISOR,
    DescribeOwnership,
    OwnershipView,
    ShardsAt,
    Undecided,
    Whereabouts,
    WhereAreShards,
    WhereIs,
)
from ....cluster.run_folder import KeyRefusedError, NoNodeError, RunFolder
from ..server.errors import Unanswered

QUESTION_SECONDS = 2.0
"""The time limit for an answer of the supervisor."""
PAUSE_SECONDS = 0.1
UNKNOWN = (
    "the group did not answer in time: whether the command was carried out is not known; look at"
    " what it was about, and repeat the command, which does no harm"
)
WHY = "; `fairlead status` says why, if that lasts"
"""What ends an answer for a group that is not served: its reason may name a connector."""
_NO_SUPERVISOR = (
    "the supervisor of this node does not answer, it is being restarted or under load: nothing was"
    " changed, try again"
)

Command = ConnectorOrder | ConfigureGroup | DeleteGroup | OperatorCommand | MoveOwner
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The reply to a command; `repeated` if it was sent twice: both may have been executed."""

    reply: CommandReply
    repeated: bool = False


class Connection:
    """One thread's requests to the supervisor and the groups of a node."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._folder = RunFolder(data_dir)
        self._system: System | None = None
        self._connection: SystemConnection | None = None
        self._supervisor: Address | None = None
        self._groups: dict[str, tuple[Address, ProcessId]] = {}
        """The cached address and process of each group, by group id."""
        self._open = ExitStack()
        """Closes the actor system's context with the connection."""

    def carry_out(
        self,
        requested: RequestedCommand,
        deadline: float,
        *,
        is_of_clients: bool = False,
        is_repeated: bool = False,
    ) -> CommandReply | Undecided:
        """Send a command; one that may be repeated is waited for half of the time that is left.

        It is for a group of the node's workers, or for one `is_of_clients`, which is in a shard.
        Raises `Unanswered` if it could not be sent.
        """
        group_id = requested.command.group_id
        find = self._find_shard if is_of_clients else self._find_group
        address = self._await_group(group_id, deadline, find)
        left = deadline - time.monotonic()
        answer = self._ask(address, requested, object, left if is_repeated else left / 2)
        if isinstance(answer, CommandReply | Undecided):
            return answer
        self._groups.pop(group_id, None)
        return Undecided(UNKNOWN, is_sent=True)

    def traffic(self, group_id: str, deadline: float) -> Traffic:
        """Ask a group's actor for its traffic counters; raises `Unanswered`."""
        traffic = self._question(group_id, DescribeTraffic(group_id), Traffic, deadline)
        if traffic is None:
            raise Unanswered(f"group {group_id} does not tell its traffic at this moment")
        return traffic

    def ownership(self, group_id: str, deadline: float) -> OwnershipView:
        """Ask this node's process of a group who owns the group; raises `Unanswered`."""
        view = self._question(group_id, DescribeOwnership(group_id), OwnershipView, deadline)
        if view is None:
            raise Unanswered(
                f"the process of group {group_id} here does not answer: try again{WHY}"
            )
        return view

    def _question(
        self, group_id: str, question: object, kind: type[T], deadline: float
    ) -> T | None:
        """Ask a group of this node once, without waiting for it; None if it does not answer."""
        address = self._find_group(group_id, deadline)
        left = deadline - time.monotonic()
        return self._ask_group(group_id, address, question, kind, left) if address else None

    def compaction(
        self, question: CompactHistory | DescribeCompaction, deadline: float
    ) -> CompactionProgress:
        """Ask a group's actor to compact its history, or how far it is; raises `Unanswered`."""
        address = self._await_group(question.group_id, deadline, self._find_group)
        left = deadline - time.monotonic()
        answer = self._ask_group(question.group_id, address, question, CompactionProgress, left)
        if answer is None:
            raise Unanswered(
                f"group {question.group_id} does not answer: whether its history is being compacted"
                " is not known; GET this path, and ask again if none is running"
            )
        return answer

    def ask_supervisor(self, question: object, kind: type[T], deadline: float) -> T:
        """Ask the supervisor, or the new one that replaced it; raises `Unanswered`."""
        is_known = self._supervisor is not None
        answer = self._ask_once(question, kind, deadline)
        if answer is None and is_known and time.monotonic() < deadline - PAUSE_SECONDS:
            answer = self._ask_once(question, kind, deadline)
        if answer is None:
            raise Unanswered(_NO_SUPERVISOR)
        return answer

    def hang_up(self) -> None:
        """Close the connection; the next request opens a new one."""
        self._open.close()
        self._system = self._connection = self._supervisor = None
        self._groups.clear()

    def _await_group(
        self, group_id: str, deadline: float, find: Callable[[str, float], Address | None]
    ) -> Address:
        """Wait for and return the group's address, which changes with each restart."""
        while (address := find(group_id, deadline)) is None:
            if time.monotonic() > deadline:
                raise Unanswered(_not_served(group_id, self._data_dir))
            time.sleep(PAUSE_SECONDS)
        return address

    def _find_group(self, group_id: str, deadline: float) -> Address | None:
        """Return the cached address of a group if its process lives, else ask the supervisor."""
        if group_id in self._groups:
            address, process = self._groups[group_id]
            if is_alive(process):
                return address
        found = self.ask_supervisor(WhereIs(group_id), Whereabouts, deadline)
        if found.address is not None and found.pid is not None:
            self._groups[group_id] = (found.address, process_of(found.pid))
        return found.address

    def _find_shard(self, group_id: str, deadline: float) -> Address | None:
        """Return the address of the shard of a group of Kafka's clients."""
        shards = self.ask_supervisor(WhereAreShards(), ShardsAt, deadline).addresses
        return shards[shard_of_group(group_id, len(shards))] if shards else None

    def _ask_group(
        self, group_id: str, address: Address, message: object, kind: type[T], seconds: float
    ) -> T | None:
        """Ask a group; if it does not answer, its cached address is dropped."""
        answer = self._ask(address, message, kind, seconds)
        if answer is None:
            self._groups.pop(group_id, None)
        return answer

    def _ask_once(self, question: object, kind: type[T], deadline: float) -> T | None:
        if self._supervisor is None:
            self._dial()
        left = max(PAUSE_SECONDS, min(QUESTION_SECONDS, deadline - time.monotonic()))
        answer = self._ask(self._supervisor, question, kind, left)
        if answer is None:
            self.hang_up()
        return answer

    def _ask(self, actor: Address, message: object, kind: type[T], seconds: float) -> T | None:
        """Return an actor's answer, None if no answer of this type comes in time."""
        if self._connection is None or seconds <= 0:
            return None
        with suppress(UnreachableError):
            answer = self._connection.ask(actor, message, seconds)
            return answer if isinstance(answer, kind) else None
        return None

    def _dial(self) -> None:
        try:
            self._system = connect(self._folder.system_address())
        except (KeyRefusedError, NoNodeError, UnreachableError, OSError, ValueError) as error:
            raise Unanswered(f"{error}; nothing was changed") from None
        self._open.callback(self._system.close)
        self._connection = self._open.enter_context(self._system.private())
        with suppress(UnreachableError):
            self._supervisor = self._system.named(SUPERVISOR)
        if self._supervisor is None:
            self.hang_up()
            raise Unanswered(_NO_SUPERVISOR)


def _not_served(group_id: str, data_dir: Path) -> str:
    """Return why a group accepts no commands, if known: its disk may be full."""
    room = disk_space_at(data_dir)
    if room.is_low:
        return f"group {group_id} is not served at this moment: {room.refusal()}"
    return (
        f"group {group_id} is not served at this moment, it is being restarted: nothing was"
        f" changed, try again{WHY}"
    )
