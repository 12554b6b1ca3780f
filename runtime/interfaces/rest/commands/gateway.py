"""The REST process's access to the actors: one thread with one connection, for commands only.

A connection of the actor system belongs to one thread. So requests are queued here, each with its
deadline; a request whose deadline has passed when it reaches the thread is not sent.

A command without a reply is sent once more: all commands here are idempotent, and the `Outcome`
says that it was repeated. While no node that owns the group is reached, nothing is sent: the
command is tried again until its deadline, and others go on between.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from .....actors.messages.commands import (
    CommandReply,
    CompactHistory,
    CompactionProgress,
    DescribeCompaction,
    RequestedCommand,
    Traffic,
)
from .....actors.transport.log_format import request_id
from .....actors.transport.log_levels import LogLevelsRead, ReadLogLevels
from ....cluster.messages import (
    DescribeNode,
    NodeView,
    OwnershipView,
    StopWorker,
    Undecided,
    Whereabouts,
    WhereIs,
    WorkerAdded,
)
from ..server.errors import Unanswered
from .connection import PAUSE_SECONDS, QUESTION_SECONDS, UNKNOWN, Command, Connection, Outcome

COMMAND_SECONDS = 10.0
LEAST_SECONDS = 0.5
"""A command with less time left is not sent: its answer would come too late."""
_NO_OWNER = (
    f"no node that owns the group was reached within {COMMAND_SECONDS:g} s: nothing was changed,"
    " try again"
)
_NOT_LET_GO = (
    "the group was told, but the supervisor of this node does not answer: whether the worker's"
    " process ends is not known; look at `get workers`, and repeat the command, which does no harm"
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Job:
    run: Callable[[Connection, float], Any]
    deadline: float
    future: Future[Any] = field(default_factory=Future[Any])


class CommandGateway:
    """Sends commands on its own thread, until `close`."""

    def __init__(self, data_dir: Path) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._data_dir = data_dir
        self._thread = Thread(target=self._work, name="gateway", daemon=True)
        self._thread.start()

    async def carry_out(self, command: Command, *, is_of_clients: bool = False) -> Outcome:
        """Send a command to a group of workers, or one `is_of_clients`; raises `Unanswered`."""
        requested = RequestedCommand(command, request_id.get())
        end, sent, why = time.monotonic() + COMMAND_SECONDS, 0, ""

        def run(connection: Connection, deadline: float) -> CommandReply | Undecided:
            how = {"is_of_clients": is_of_clients, "is_repeated": sent > 0}
            return connection.carry_out(requested, deadline, **how)

        while sent <= 1 and (left := end - time.monotonic()) > LEAST_SECONDS:
            try:
                answer = await self._submit(run, left)
            except Unanswered:
                if sent:
                    break  # that nothing was changed is true of the second time alone
                raise
            if isinstance(answer, CommandReply):
                return Outcome(answer, repeated=sent > 0)
            sent, why = sent + answer.is_sent, answer.reason
            await asyncio.sleep(PAUSE_SECONDS)
        raise Unanswered(UNKNOWN if sent else f"{_NO_OWNER}; {why}")

    async def locate(self, group_id: str) -> Whereabouts:
        """Ask for the current address of a group; raises `Unanswered`."""
        return await self._ask_supervisor(WhereIs(group_id), Whereabouts)

    async def describe_node(self) -> NodeView:
        """Ask for the state of the node's processes; raises `Unanswered`."""
        return await self._ask_supervisor(DescribeNode(), NodeView)

    async def traffic(self, group_id: str) -> Traffic:
        """Ask for the traffic counters of a group's actor; raises `Unanswered`."""
        return await self._submit(
            lambda connection, deadline: connection.traffic(group_id, deadline), QUESTION_SECONDS
        )

    async def ownership(self, group_id: str) -> OwnershipView:
        """Ask this node's process of a group who owns the group; raises `Unanswered`."""
        return await self._submit(
            lambda connection, deadline: connection.ownership(group_id, deadline), QUESTION_SECONDS
        )

    async def compaction(self, question: CompactHistory | DescribeCompaction) -> CompactionProgress:
        """Ask a group to compact its history, or how far it is; raises `Unanswered`."""
        return await self._submit(
            lambda connection, deadline: connection.compaction(question, deadline), QUESTION_SECONDS
        )

    async def stop_worker(self, worker: str, *, force: bool) -> None:
        """Stop the process of a worker without a restart; raises `Unanswered`."""
        try:
            await self._ask_supervisor(StopWorker(worker, force), WorkerAdded)
        except Unanswered:
            raise Unanswered(_NOT_LET_GO) from None

    async def announce_log_levels(self) -> None:
        """Reload the log levels of all actor processes; raises `Unanswered`."""
        await self._ask_supervisor(ReadLogLevels(), LogLevelsRead)

    def close(self, seconds: float = 1.0) -> None:
        """Close the connection after the current request; queued requests are dropped."""
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
            raise Unanswered(UNKNOWN) from None

    def _work(self) -> None:
        connection = Connection(self._data_dir)
        while job := self._jobs.get():
            if job.future.set_running_or_notify_cancel():
                _carry_out(job, connection)
        connection.hang_up()


def _carry_out(job: _Job, connection: Connection) -> None:
    try:
        job.future.set_result(_answer(job, connection))
    except Exception as error:  # noqa: BLE001  # it is raised in the caller
        job.future.set_exception(error)


def _answer(job: _Job, connection: Connection) -> object:
    if time.monotonic() > job.deadline:
        raise Unanswered(
            "too many commands wait for this node's actors: nothing was changed, try again"
        )
    return job.run(connection, job.deadline)
