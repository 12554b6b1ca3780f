"""Notes in the log on tasks of Connect's own classes: their topics, rows, and lag.

They commit to Kafka, not to the log. Connect keeps the topics that a task writes to or reads in a
topic of its own; here each is logged once, as an offset of the source partition that names it,
under the token of the task that used it first. Rows and lag become commits of batches without
files, so that they are where those of all other tasks are: for status, page and metrics, on every
node of the cluster, over restarts. A task that has read and written nothing logs nothing, but for
the end of its lag. Else a task that hangs would never be seen as one that commits nothing.

A commit whose outcome is not known is sent again before the next one, so that nothing counts twice.
"""

import time
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from .....events.commits import Advance, Commit, CommitId, Lag, Manifest, identity
from .....projections.launches import Launch
from .....projections.views import TOPIC
from ...tasks.ledger import Fenced, Ledger, LedgerUnavailable
from .figures import TaskFigures

_NONE: Final = TaskFigures()


class TaskNotes:
    """The notes on one task under one token."""

    def __init__(self, launch: Launch, ledger: Ledger) -> None:
        self._resource, self._token = launch.resource, launch.token
        self._ledger = ledger
        self._counted = _NONE
        """The figures of this attempt that were logged, or are in the open commit."""
        self._open: Commit | None = None
        """A commit whose outcome is not known."""

    def begin(self) -> None:
        """Note that an attempt begins, which counts from 0."""
        self._counted = _NONE

    def keep(self, topics: Collection[str], figures: TaskFigures | None) -> None:
        """Log what is new.

        Rows that cannot be logged now are logged with those that follow. Topics are left out: a
        host tells one again as long as it is used.
        """
        with suppress(Fenced, LedgerUnavailable):
            if self._open is not None:
                self._send(self._open)
            if topics:
                logged = self._ledger.offsets(self._resource.connector)
                for topic in topics:
                    if identity({TOPIC: topic}) not in logged:
                        self._send(self._commit(topic=topic))
            if figures is not None and self._is_news(figures):
                self._send(self._commit(figures))

    def _is_news(self, figures: TaskFigures) -> bool:
        """Return whether rows have moved, or a lag has been found, or has gone."""
        if figures.counts != self._counted.counts:
            return True
        if figures.lag is None or self._counted.lag == figures.lag:
            return False
        progress = self._ledger.progress(self._resource.connector, self._resource.task)
        logged = progress.lag.records if progress is not None and progress.lag else None
        return logged is None or (figures.lag == 0 and logged > 0)

    def _send(self, commit: Commit) -> None:
        """Send a commit; raises `Fenced` if it does not count, and `LedgerUnavailable`."""
        self._open = commit
        try:
            self._ledger.commit(commit)
        except Fenced:
            self._open = None
            raise
        self._open = None

    def _commit(self, figures: TaskFigures | None = None, topic: str = "") -> Commit:
        """Return the next commit: of a topic, or of the rows since the one before."""
        connector, task = self._resource.connector, self._resource.task
        progress = self._ledger.progress(connector, task)
        is_first = progress is None or progress.last.token != self._token
        batch = 0 if is_first or progress is None else progress.last.batch + 1
        commit_id = CommitId(connector, task, self._token, batch)
        if figures is None:
            since = {"active_since_ms": time.time_ns() // 1_000_000}
            advances = (Advance({TOPIC: topic}, None, since),)
            lag = progress.lag if progress is not None else None
            return Commit(commit_id, advances, _manifest(0), rows_in=0, lag=lag)
        pairs = zip(figures.counts, self._counted.counts, strict=True)
        rows_in, rows_out, skipped, letters = (max(0, new - old) for new, old in pairs)
        self._counted = figures
        return Commit(
            commit_id,
            (),
            _manifest(rows_out, letters),
            rows_in,
            None if figures.lag is None else Lag(0, 0, figures.lag),
            skipped,
        )


def _manifest(rows: int, letters: int = 0) -> Manifest:
    dead_letters = _manifest(letters) if letters else None
    return Manifest("", "", rows=rows, bytes=0, files=0, dead_letters=dead_letters)
