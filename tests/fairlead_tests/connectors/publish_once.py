# pyright: basic
"""A task that stops at a point of a batch, and its next owner.

`SinkLog` is the log of both. At any point, and whether or not the first task continues
later as a zombie: each committed row must be in the store exactly once.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from fairlead.events.commits import CommitId, Manifest
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.spi.sink import Sink, TaskOwnership
from fairlead_tests.connectors.pipes import TASK

FIRST, SECOND = Token(1, 0), Token(2, 0)
PATIENCE_S = 120.0
POINTS = ("before it is staged", "staged", "committed", "while it is published", "not yet told")
HALF = POINTS[3]


@dataclass
class SinkLog:
    """The logged commits of a task."""

    task: Resource = TASK
    token: Token = FIRST
    batch: int = 0
    last: CommitId | None = None
    published: CommitId | None = None
    waiting: list[tuple[CommitId, Manifest]] = field(default_factory=list)
    """The unpublished commits, oldest first."""

    def acquire(self, sink: Sink[Any], token: Token | None = None) -> None:
        """Start as a task does, with a token (by default the former one)."""
        if token is not None and token != self.token:
            self.token, self.batch = token, 0
        known = None if self.waiting else self.published
        sink.acquire(TaskOwnership(self.task, self.token, self.last, known))
        self.publish(sink)
        sink.sweep(self.task, self.token)

    def stage(self, sink: Sink[Any], rows: pa.Table) -> tuple[CommitId, Manifest]:
        """Prepare the sink, and stage a batch."""
        commit_id = CommitId(*self.task, self.token, self.batch)
        self.batch += 1
        sink.prepare(rows.schema)
        return commit_id, sink.stage(rows, commit_id, rows.nbytes)

    def count(self, staged: tuple[CommitId, Manifest]) -> None:
        """Commit a staged batch."""
        self.last = staged[0]
        self.waiting.append(staged)

    def publish(self, sink: Sink[Any]) -> None:
        """Publish the committed batches."""
        while self.waiting:
            commit_id, manifest = self.waiting[0]
            sink.publish(manifest, commit_id, commit_id.batch)
            self.told()

    def told(self) -> None:
        """Record the oldest waiting batch as published."""
        self.published = self.waiting.pop(0)[0]

    def write(self, sink: Sink[Any], rows: pa.Table) -> None:
        """Stage, commit and publish a batch."""
        self.count(self.stage(sink, rows))
        self.publish(sink)


class Died(Exception):  # noqa: N818  # what is the case
    """The owner has stopped at its point."""


class Owner:
    """An owner that writes two batches, and stops at a point of the second.

    `halve` has a sink call what it is given inside the transaction that it publishes in. `wake` has
    the owner go on, as a process does that was stopped and is continued.
    """

    def __init__(
        self,
        sink: Sink[Any],
        log: SinkLog,
        point: str,
        halve: Callable[[Any, Callable[[], None]], None],
    ) -> None:
        self.sink = sink
        self._log = log
        self._point = point
        self._halve = halve
        self.stopped, self._go_on = threading.Event(), threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.stopped.wait(PATIENCE_S), self.error

    def wake(self) -> None:
        self._go_on.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def end(self) -> None:
        """Let it continue, if it has not yet, and close its sink."""
        self.wake()
        self.sink.close()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001
            self.error = error

    def _work(self) -> None:
        log, sink = self._log, self.sink
        log.acquire(sink, FIRST)
        log.write(sink, numbers(1, 2))
        self._pause_at(POINTS[0])
        staged = log.stage(sink, numbers(3, 4))
        self._pause_at(POINTS[1])
        if log.token != FIRST:
            raise Died  # the log does not take it: the token is not current
        log.count(staged)
        self._pause_at(POINTS[2])
        if self._point == HALF:
            self._halve(sink, lambda: self._pause_at(HALF))
        commit_id, manifest = staged
        sink.publish(manifest, commit_id, 1)
        self._pause_at(POINTS[4])
        if log.waiting:
            log.told()

    def _pause_at(self, point: str) -> None:
        if self._point == point:
            self.stopped.set()
            assert self._go_on.wait(PATIENCE_S)


def succeed(sink: Sink[Any], log: SinkLog) -> Sink[Any]:
    """Take the task over: publish what is committed, read the rest again, and continue."""
    was_counted = log.last is not None and log.last.batch == 1
    log.acquire(sink, SECOND)
    if not was_counted:
        log.write(sink, numbers(3, 4))
    log.write(sink, numbers(5))
    return sink


def numbers(*values: int) -> pa.Table:
    """Return rows of numbers."""
    return pa.table({"n": pa.array(values, pa.int64())})
