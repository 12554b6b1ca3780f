# pyright: basic
"""A task that stops for good at a point of a batch, and the one that takes it over.

`SinkLog` is what the log knows of both. Whatever the point, and whether or not the first goes on
later as a zombie does: what counts is in the store once.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from fairlead.events.commits import CommitId, Manifest
from fairlead.events.model import Resource, Token
from fairlead.runtime.pipeline.spi.sink import Sink, Tenure
from fairlead_tests.connectors.pipes import TASK

FIRST, SECOND = Token(1, 0), Token(2, 0)
PATIENCE_S = 60.0
POINTS = ("before it is staged", "staged", "committed", "while it is published", "not yet told")
HALF = POINTS[3]


@dataclass
class SinkLog:
    """What the log knows of the commits of a task."""

    task: Resource = TASK
    token: Token = FIRST
    batch: int = 0
    last: CommitId | None = None
    published: CommitId | None = None
    waiting: list[tuple[CommitId, Manifest]] = field(default_factory=list)
    """What counts and is not known to be published, oldest first."""

    def acquire(self, sink: Sink[Any], token: Token | None = None) -> None:
        """Begin as a task does under a token, the same as before unless one is given."""
        if token is not None and token != self.token:
            self.token, self.batch = token, 0
        known = None if self.waiting else self.published
        sink.acquire(Tenure(self.task, self.token, self.last, known))
        self.publish(sink)
        sink.sweep(self.task, self.token)

    def stage(self, sink: Sink[Any], rows: pa.Table) -> tuple[CommitId, Manifest]:
        """Prepare the sink, and stage a batch."""
        commit_id = CommitId(*self.task, self.token, self.batch)
        self.batch += 1
        sink.prepare(rows.schema)
        return commit_id, sink.stage(rows, commit_id, rows.nbytes)

    def count(self, staged: tuple[CommitId, Manifest]) -> None:
        """Make a staged batch count."""
        self.last = staged[0]
        self.waiting.append(staged)

    def publish(self, sink: Sink[Any]) -> None:
        """Publish what counts."""
        while self.waiting:
            commit_id, manifest = self.waiting[0]
            sink.publish(manifest, commit_id, commit_id.batch)
            self.told()

    def told(self) -> None:
        """Learn that the oldest batch that waited is published."""
        self.published = self.waiting.pop(0)[0]

    def write(self, sink: Sink[Any], rows: pa.Table) -> None:
        """Have a batch go all its way."""
        self.count(self.stage(sink, rows))
        self.publish(sink)


class Died(Exception):  # noqa: N818  # what is the case
    """An owner was stopped at its point."""


class Owner:
    """A task's owner that writes two batches, and stops at a point of the second for good.

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
        """Have it go on, if it has not yet, and let go of its sink."""
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
    """Take the task over: finish what counts, read again what does not, and go on."""
    was_counted = log.last is not None and log.last.batch == 1
    log.acquire(sink, SECOND)
    if not was_counted:
        log.write(sink, numbers(3, 4))
    log.write(sink, numbers(5))
    return sink


def numbers(*values: int) -> pa.Table:
    """Return rows of numbers."""
    return pa.table({"n": pa.array(values, pa.int64())})
