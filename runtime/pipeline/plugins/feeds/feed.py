# pyright: basic
"""The task of a sink connector in its host: it is given rows, and says which of them count.

Connect's own loop puts the rows to the plugin, and asks it from time to time how far they are safe
(`offset.flush.interval.ms`). The host tells which batches were put, which count, and which records
could not be written.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Final

from ...spi.context import Context
from ...spi.errors import FailedElsewhere, NotReady, SinkAway, SourceAway
from ..batches.host_run import HangWatch, join, put, require_at_work, stop
from ..batches.pair import Pair
from ..batches.source import PluginSource
from ..host import HostDied, OpenQuestion, PluginFailed
from ..host_names import SINK_PART
from ..running.runs import ErrantRecord, HostedRun
from .records import Fed

_LOOK_S: Final = 0.05
_SLOW_S: Final = 10.0
"""After what time a plugin that takes no more rows is told."""
_TURN_S: Final = 2.0
"""How long the last rows of a batch are waited for; then the task does without."""


class Feed:
    """One task, from its first rows to its stop."""

    def __init__(
        self,
        context: Context,
        config: Mapping[str, str],
        task: Mapping[str, str],
        *,
        is_raw: bool,
        keeps_errors: bool,
        pair: Pair | None = None,
    ) -> None:
        """Start nothing yet.

        If `is_raw`, the converters of the plugin's config read keys and values. If `keeps_errors`,
        the plugin may report records that it cannot write. With a `pair` its source is a plugin.
        """
        self._context = context
        self._config = config
        self._task = task
        self._fed = {"raw": is_raw, "errors": keeps_errors}
        self._part = "" if pair is None else SINK_PART
        if pair is not None:
            self._fed |= {"paired": True, "held": pair.is_held}
        self._stack = ExitStack()
        self._run: HostedRun | None = None
        self._start: OpenQuestion | None = None
        """The question that has the task made; None: it has not been put."""
        self._has_stopped = False
        self._hang = HangWatch()
        self.last = 0
        """The number of the last batch that it was given."""
        self.rows = 0
        """How many rows it was given."""
        self._given_at = 0.0
        """When it was given the last ones, in seconds since 1970."""

    def open(self) -> None:
        """Start the task, once its host works.

        Raises `SinkAway`, `NotReady`, `FailedElsewhere`.
        """
        try:
            run = self._run = self._run or self._join()
            require_at_work(run)
            if self._start is None:
                tasks = self._context.resource.task + 1
                configs = {"config": self._config, "own": self._task, "tasks": tasks}
                given = {"paused": False, "fed": self._fed, **configs}
                self._start = put(run, "start task", **run.place, **given)
            if not self._start.is_done:
                self._start.wait(_LOOK_S)
            if not self._start.is_done:
                raise NotReady(self._hang.look(run) or "waiting for the plugin to make its task")
            self._start.result(0)
        except PluginFailed as failed:
            raise FailedElsewhere(f"{failed.kind}: {failed}") from None
        except (SourceAway, HostDied) as away:
            raise SinkAway(str(away)) from None

    def _join(self) -> HostedRun:
        return join(self._stack, self._context, self._config, self._part)

    def require_host_of(self, source: PluginSource) -> None:
        """Raise `SinkAway` unless a source is in the same host, which holds its records."""
        if self._run is None or not source.shares_host(self._run):
            raise SinkAway(
                "source and sink are in two plugin hosts, since one has ended or plugins have"
                " changed: both begin anew"
            )

    @property
    def is_put(self) -> bool:
        """Whether the plugin has been given all rows that it wants now; then it is given more."""
        return self._run is not None and max(self._run.fed.put, self.counts) >= self.last

    @property
    def paused(self) -> Collection[tuple[str, int]]:
        """The partitions whose rows the plugin does not want now, each with its topic."""
        return () if self._run is None else self._run.fed.paused

    @property
    def counts(self) -> int:
        """The number of the last batch that counts, as do all before it."""
        return 0 if self._run is None else self._run.fed.counts

    def take_errant(self) -> Sequence[ErrantRecord]:
        """Return the records that could not be written, since the last call."""
        if self._run is None:
            return ()
        errant = self._run.fed.errant
        return [errant.popleft() for _ in range(len(errant))]

    def look(self) -> str:
        """Return why the plugin takes no more rows; "" if nothing is known, or it is early."""
        if self._run is None:
            return ""
        if told := self._hang.look(self._run):
            return told
        if time.time() - self._given_at < _SLOW_S:
            return ""
        since = time.strftime("%H:%M:%S", time.localtime(self._given_at))
        return (
            f"the plugin has not taken the rows that it was given at {since}: it tries again, or"
            " has paused a partition; its log says more"
        )

    def give(self, rows: Fed) -> None:
        """Give rows to the task, a part at a time; raises as `open`.

        The last part is waited for as well, but for a while only: the next plan tells what has
        become of it.
        """
        run = self._require()
        for each in rows.chunks():
            while not self.is_put:
                self._wait_put(self._require())
            self.last += 1
            about: dict[str, Any] = {"key": rows.key, "value": rows.value, "lone": rows.lone}
            if rows.batch is not None:
                about |= {"of": self._context.resource.connector, "batch": rows.batch}
            self._answer("feed", each, {**about, "number": self.last})
            self._given_at = time.time()
        self.rows += rows.table.num_rows
        by = time.monotonic() + _TURN_S
        while not (self.is_put or run.has_failed or run.ended or time.monotonic() > by):
            self._wait_put(run)

    def _wait_put(self, run: HostedRun) -> None:
        """Wait for news, for a moment."""
        run.changed.clear()
        if not self.is_put:
            run.changed.wait(_LOOK_S)

    def _answer(self, question: str, data: bytes, about: Mapping[str, Any]) -> None:
        run = self._require()
        try:
            sent = run.put(question, data, **run.place, **about)
            while not sent.is_done:
                sent.wait(_LOOK_S)
                self._require()
            sent.result(0)
        except PluginFailed as failed:
            raise FailedElsewhere(f"{failed.kind}: {failed}") from None
        except HostDied as died:
            raise SinkAway(f"the plugin host has ended: {died}") from None

    def _require(self) -> HostedRun:
        self.open()
        if self._run is None:
            raise AssertionError("a feed that is open has a run")
        return self._run

    def stop(self) -> None:
        """Stop the task: it asks the plugin a last time what counts."""
        if self._run is not None and not self._has_stopped:
            self._has_stopped = True
            stop(self._run, self._start, "stop task")

    def close(self) -> None:
        """Stop the task, and leave its host."""
        with self._stack:
            self.stop()
