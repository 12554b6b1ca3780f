"""The way from the REST process to the actors: one thread, one connection, for commands only.

An actor system's connection belongs to one thread. So requests queue up here, each with the
moment at which its caller stops waiting; what is overdue when its turn comes is not sent.
A command without an answer is sent once more: all commands here may be repeated, and the
`Outcome` says that it was. Where a group is served is remembered as long as its process lives.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeVar

from .....actors.door.actor import Address, Line, System, UnreachableError, connect
from .....actors.messages.commands import CommandReply, DescribeTraffic, Traffic
from .....actors.messages.orders import (
    ConfigureGroup,
    Cordon,
    DeleteGroup,
    Expect,
    Place,
    Rebalance,
    RemoveMember,
    Uncordon,
)
from .....actors.messages.work import DeleteConnector, PutConnector
from .....events.log.process import ProcessId, is_alive, process_of
from .....events.log.space import room_at
from ....cluster.messages import (
    DescribeNode,
    NodeView,
    StopWorker,
    Whereabouts,
    WhereIs,
    WorkerAdded,
)
from ....cluster.run_folder import KeyRefusedError, NoNodeError, RunFolder
from ..http.errors import Unanswered

SUPERVISOR = "supervisor"
COMMAND_SECONDS = 10.0
QUESTION_SECONDS = 2.0
_PAUSE_SECONDS = 0.1

Command = (
    PutConnector
    | DeleteConnector
    | ConfigureGroup
    | DeleteGroup
    | Cordon
    | Uncordon
    | Expect
    | Place
    | Rebalance
    | RemoveMember
)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended; `repeated` if it was sent twice, so that the first may have counted."""

    reply: CommandReply
    repeated: bool = False


class Commands(Protocol):
    """Who carries out what people order; all of it raises `Unanswered`."""

    async def carry_out(self, command: Command) -> Outcome:
        """Have a group carry out a command."""
        ...

    async def locate(self, group_id: str) -> Whereabouts:
        """Ask where a group is served now."""
        ...

    async def describe_node(self) -> NodeView:
        """Ask which processes the node has."""
        ...

    async def traffic(self, group_id: str) -> Traffic:
        """Ask what went through a group's actor."""
        ...

    async def let_go(self, worker: str, *, force: bool) -> None:
        """Have the process of a worker end, at once if by force, and not start again."""
        ...


class Connection:
    """One thread's talk with the supervisor and the groups of a node."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._folder = RunFolder(data_dir)
        self._system: System | None = None
        self._line: Line | None = None
        self._supervisor: Address | None = None
        self._groups: dict[str, tuple[Address, ProcessId]] = {}
        """Where each group was served when it was last asked for, by group id."""
        self._open = ExitStack()
        """What is to be closed with the connection."""

    def carry_out(self, command: Command, deadline: float) -> Outcome:
        """Send a command, and a second time if there is no answer; raises `Unanswered`."""
        address = self._await_group(command.group_id, deadline)
        half = (deadline - time.monotonic()) / 2
        if reply := self._ask_group(command.group_id, address, command, CommandReply, half):
            return Outcome(reply)
        time.sleep(_PAUSE_SECONDS)
        with suppress(Unanswered):
            address = self._await_group(command.group_id, deadline)
            left = deadline - time.monotonic()
            if reply := self._ask_group(command.group_id, address, command, CommandReply, left):
                return Outcome(reply, repeated=True)
        raise Unanswered(_UNKNOWN)

    def traffic(self, group_id: str, deadline: float) -> Traffic:
        """Ask a group's actor what went through it; raises `Unanswered`."""
        address = self._find_group(group_id, deadline)
        left = deadline - time.monotonic()
        question = DescribeTraffic(group_id)
        traffic = address and self._ask_group(group_id, address, question, Traffic, left)
        if not isinstance(traffic, Traffic):
            raise Unanswered(f"group {group_id} does not tell its traffic at this moment")
        return traffic

    def ask_supervisor(self, question: object, kind: type[T], deadline: float) -> T:
        """Ask the supervisor, or the one that has its place by now; raises `Unanswered`."""
        is_known = self._supervisor is not None
        answer = self._ask_once(question, kind, deadline)
        if answer is None and is_known and time.monotonic() < deadline - _PAUSE_SECONDS:
            answer = self._ask_once(question, kind, deadline)
        if answer is None:
            raise Unanswered(_NO_SUPERVISOR)
        return answer

    def hang_up(self) -> None:
        """Close the connection; the next question opens another."""
        self._open.close()
        self._system = self._line = self._supervisor = None
        self._groups.clear()

    def _await_group(self, group_id: str, deadline: float) -> Address:
        """Return the group's address, as soon as it has one: it changes with each restart."""
        while (address := self._find_group(group_id, deadline)) is None:
            if time.monotonic() > deadline:
                raise Unanswered(not_served(group_id, self._data_dir))
            time.sleep(_PAUSE_SECONDS)
        return address

    def _find_group(self, group_id: str, deadline: float) -> Address | None:
        """Return where a group is served: where it was last, while that process lives."""
        if group_id in self._groups:
            address, process = self._groups[group_id]
            if is_alive(process):
                return address
        found = self.ask_supervisor(WhereIs(group_id), Whereabouts, deadline)
        if found.address is not None and found.pid is not None:
            self._groups[group_id] = (found.address, process_of(found.pid))
        return found.address

    def _ask_group(
        self, group_id: str, address: Address, message: object, kind: type[T], seconds: float
    ) -> T | None:
        """Ask a group; one that does not answer is looked for anew the next time."""
        answer = self._ask(address, message, kind, seconds)
        if answer is None:
            self._groups.pop(group_id, None)
        return answer

    def _ask_once(self, question: object, kind: type[T], deadline: float) -> T | None:
        if self._supervisor is None:
            self._dial()
        left = max(_PAUSE_SECONDS, min(QUESTION_SECONDS, deadline - time.monotonic()))
        answer = self._ask(self._supervisor, question, kind, left)
        if answer is None:
            self.hang_up()
        return answer

    def _ask(self, actor: Address, message: object, kind: type[T], seconds: float) -> T | None:
        """Return an actor's answer, None if there is none of that kind in time."""
        if self._line is None or seconds <= 0:
            return None
        with suppress(UnreachableError):
            answer = self._line.ask(actor, message, seconds)
            return answer if isinstance(answer, kind) else None
        return None

    def _dial(self) -> None:
        try:
            self._system = connect(self._folder.door())
        except (KeyRefusedError, NoNodeError, UnreachableError, OSError, ValueError) as error:
            raise Unanswered(f"{error}; nothing was changed") from None
        self._open.callback(self._system.close)
        self._line = self._open.enter_context(self._system.private())
        with suppress(UnreachableError):
            self._supervisor = self._system.named(SUPERVISOR)
        if self._supervisor is None:
            self.hang_up()
            raise Unanswered(_NO_SUPERVISOR)


def not_served(group_id: str, data_dir: Path) -> str:
    """Return why a group takes no commands, as far as that is known: its disk may be full."""
    room = room_at(data_dir)
    if room.is_low:
        return f"group {group_id} is not served at this moment: {room.refusal()}"
    return (
        f"group {group_id} is not served at this moment, it is being restarted: nothing was"
        " changed, try again"
    )


_NO_SUPERVISOR = (
    "the supervisor of this node does not answer, it is being restarted or under load: nothing was"
    " changed, try again"
)
_UNKNOWN = (
    "the group did not answer in time: whether the command was carried out is not known; look at"
    " what it was about, and repeat the command, which does no harm"
)


_NOT_LET_GO = (
    "the group was told, but the supervisor of this node does not answer: whether the worker's"
    " process ends is not known; look at `get workers`, and repeat the command, which does no harm"
)


@dataclass(frozen=True, slots=True)
class _Job:
    run: Callable[[Connection, float], Any]
    deadline: float
    future: Future[Any] = field(default_factory=Future[Any])


class CommandGateway:
    """Carries out commands on a thread of its own; `close` it once nobody asks any more."""

    def __init__(self, data_dir: Path) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._data_dir = data_dir
        self._thread = Thread(target=self._work, name="gateway", daemon=True)
        self._thread.start()

    async def carry_out(self, command: Command) -> Outcome:
        """Have a group carry out a command; raises `Unanswered`."""
        return await self._submit(
            lambda connection, deadline: connection.carry_out(command, deadline), COMMAND_SECONDS
        )

    async def locate(self, group_id: str) -> Whereabouts:
        """Ask where a group is served now; raises `Unanswered`."""
        return await self._ask_supervisor(WhereIs(group_id), Whereabouts)

    async def describe_node(self) -> NodeView:
        """Ask which processes the node has; raises `Unanswered`."""
        return await self._ask_supervisor(DescribeNode(), NodeView)

    async def traffic(self, group_id: str) -> Traffic:
        """Ask what went through a group's actor; raises `Unanswered`."""
        return await self._submit(
            lambda connection, deadline: connection.traffic(group_id, deadline), QUESTION_SECONDS
        )

    async def let_go(self, worker: str, *, force: bool) -> None:
        """Have the process of a worker end and not start again; raises `Unanswered`."""
        try:
            await self._ask_supervisor(StopWorker(worker, force), WorkerAdded)
        except Unanswered:
            raise Unanswered(_NOT_LET_GO) from None

    def close(self, seconds: float = 1.0) -> None:
        """Close the connection, once what is under way has ended; do not wait longer than that."""
        self._jobs.put(None)
        self._thread.join(seconds)

    async def _ask_supervisor(self, question: object, kind: type[T]) -> T:
        return await self._submit(
            lambda connection, deadline: connection.ask_supervisor(question, kind, deadline),
            QUESTION_SECONDS,
        )

    async def _submit(self, run: Callable[[Connection, float], T], seconds: float) -> T:
        job = _Job(run, time.monotonic() + seconds)
        self._jobs.put(job)
        try:
            async with asyncio.timeout(seconds + QUESTION_SECONDS):
                return await asyncio.wrap_future(job.future)
        except TimeoutError:
            raise Unanswered(_UNKNOWN) from None

    def _work(self) -> None:
        connection = Connection(self._data_dir)
        while job := self._jobs.get():
            if job.future.set_running_or_notify_cancel():
                _carry_out(job, connection)
        connection.hang_up()


def _carry_out(job: _Job, connection: Connection) -> None:
    try:
        job.future.set_result(_answer(job, connection))
    except Exception as error:  # noqa: BLE001  # it is raised where the job was handed in
        job.future.set_exception(error)


def _answer(job: _Job, connection: Connection) -> object:
    if time.monotonic() > job.deadline:
        raise Unanswered(
            "too many commands wait for this node's actors: nothing was changed, try again"
        )
    return job.run(connection, job.deadline)
