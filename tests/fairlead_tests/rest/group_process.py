"""A group's coordinator and its two real logs, in a separate process.

A log that is open cannot be opened a second time in one process; the REST side reads here,
so whoever writes has to be elsewhere. One process serves all tests of a run, one after the other.
"""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

from fairlead.actors.group.members.commit import OffsetLedger, commit_offsets
from fairlead.actors.group.state.soft_state import Decision
from fairlead.actors.messages.commands import Command, CommandReply
from fairlead.actors.messages.errors import Error as Told
from fairlead.actors.messages.members import (
    CommitOffsets,
    CommitReply,
    PutTaskConfigs,
    ReportStatus,
    StatusUpdate,
)
from fairlead.events.commits import Advance, Commit, CommitId, Lag, Manifest
from fairlead.events.entries.codec import encode
from fairlead.events.group import token_of
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import NEVER_RESTARTED, AutoRestart, Resource, RunState, Token
from fairlead.events.records import Record
from fairlead_tests import TESTS
from fairlead_tests.decider import JOIN, Decider

PLACE = "127.0.0.1:8083"


class LoggedDecider(Decider):
    """A coordinator with real logs."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.now_ms = 1_700_000_000_000
        self.control = GroupLog.open_writer(folder / "control", "connect")
        self.offsets = GroupLog.open_writer(folder / "offsets", "connect")
        ledger = OffsetLedger(self.offsets)
        self.soft = replace(self.soft, facts=ledger.facts())

    def carry_out(self, command: Command) -> Decision:
        """Decide a command, and append its records to both logs."""
        decision = super().carry_out(command)
        if entries := [encode(record) for record in decision.offset_records]:
            self.offsets.append(self.offsets.end, entries, self.now_ms)
        return decision

    def write(self, *records: Record, wrote: Any = None) -> None:
        super().write(*records, wrote=wrote)
        self.append(*(encode(record) for record in records))

    def append(self, *entries: NewEntry) -> None:
        """Append any entries."""
        self.control.append(self.control.end, entries, self.now_ms)

    def seat(self, worker: str) -> None:
        """Let a worker join, whose member id is its name in capitals, and settle the group."""
        self.join(worker.upper(), replace(JOIN, url=f"{PLACE}/{worker}"))
        self.settle()

    def join_beside(self, member_id: str, worker: str) -> None:
        """Let another member join with the url of a worker that is still a member."""
        self.join(member_id, replace(JOIN, url=f"{PLACE}/{worker}"))
        self.settle()

    def join_at(self, member_id: str, url: str) -> None:
        """Let a member join whose worker is at a url of its own."""
        self.join(member_id, replace(JOIN, url=url))
        self.settle()

    def pass_time(self, milliseconds: int) -> None:
        """Advance the clock without any event."""
        self.now_ms += milliseconds

    def split(self, connector: str, *configs: dict[str, str]) -> CommandReply:
        """Report the tasks of a connector from its owner, and wait until the group is stable."""
        holder = self.group.owner[Resource(connector)]
        token = self.token(Resource(connector))
        reply = self.command(PutTaskConfigs("connect", holder, connector, token, configs))
        self.settle()
        return reply

    def report(
        self,
        resource: Resource,
        state: RunState,
        reason: str = "",
        restarts: AutoRestart = NEVER_RESTARTED,
    ) -> CommandReply:
        """Report the status of a resource from its owner."""
        told = state, self.now_ms, reason, restarts
        update = StatusUpdate(resource, self.token(resource), *told)
        holder = self.group.owner[resource]
        return self.command(ReportStatus("connect", holder, (update,)))

    def commit(self, resource: Resource, batch: int, rows_in: int, rows_out: int) -> None:
        """Commit a batch of a task from its owner, with rows of 10 bytes."""
        commit_id = CommitId(*resource, self.token(resource), batch)
        start = {"end": batch} if batch else None
        step = Advance({"file": f"{resource}"}, start, {"end": batch + 1})
        manifest = Manifest("/sink", f"_fairlead/{batch}", rows_out, 10 * rows_out, 1)
        commits = (Commit(commit_id, (step,), manifest, rows_in, Lag(2, 20)),)
        self._send(CommitOffsets("connect", self.group.owner[resource], commits))

    def publish(self, resource: Resource, batch: int) -> None:
        """Report from a task's owner that a batch is published."""
        commit_id = CommitId(*resource, self.token(resource), batch)
        self._send(CommitOffsets("connect", self.group.owner[resource], (), (commit_id,)))

    def _send(self, order: CommitOffsets) -> None:
        decided = commit_offsets(self.group, OffsetLedger(self.offsets), order, self.now_ms)
        assert isinstance(decided.reply, CommitReply)
        assert [each.error for each in decided.reply.verdicts] == [Told.NONE] * len(order.commits)
        entries = [encode(record) for record in decided.records]
        self.offsets.append(self.offsets.end, entries, self.now_ms)

    def token(self, resource: Resource) -> Token:
        """Return the token of an owned resource."""
        token = token_of(self.group, self.group.owner[resource], resource)
        assert token is not None
        return token

    def close(self) -> None:
        """Close the logs."""
        self.control.close()
        self.offsets.close()


class GroupProcess:
    """The process of a `LoggedDecider` as the test sees it: any method is called by its name."""

    def __init__(self, line: Connection) -> None:
        self._line = line

    @contextmanager
    def serving(self, folder: Path) -> Generator[Self]:
        """Have it serve the group of a folder; it serves one at a time."""
        self.ask("open", folder)
        try:
            yield self
        finally:
            self.ask("close")

    def ask(self, method: str, *args: Any) -> Any:
        """Call a method, and return its result."""
        self._line.send((method, *args))
        assert self._line.poll(60), "the group's process says nothing"
        answer = self._line.recv()
        if isinstance(answer, AssertionError):
            raise answer
        return answer


@contextmanager
def running_group_process() -> Generator[GroupProcess]:
    """Run the process; it serves no group yet."""
    mine, theirs = Pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlead_tests.rest.group_process", str(theirs.fileno())],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    try:
        yield GroupProcess(mine)
    finally:
        mine.close()
        assert process.wait(60) == 0


def _serve(line: Connection) -> None:
    served: LoggedDecider | None = None
    with suppress(EOFError):
        while True:
            method, *args = line.recv()
            answer = None
            try:
                if method == "open":
                    assert served is None, "it serves one group at a time"
                    served = LoggedDecider(*args)
                else:
                    answer = getattr(served, method)(*args)
                    served = None if method == "close" else served
            except Exception as error:  # noqa: BLE001
                answer = AssertionError(f"{method} failed: {error!r}")
            line.send(answer if not hasattr(answer, "soft") else None)


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))
