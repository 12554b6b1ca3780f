# pyright: basic
"""The records of a source task of Kafka Connect, as the batches of a pipeline.

Connect's own loop polls the plugin in a host, and hands over what it would write in one transaction
(`transaction.boundary`): tables of Arrow, and the offsets that they lead to. It waits until that
batch is committed and published. Then the plugin hears of its records, and is polled again. A batch
whose plan is discarded is planned again: it stays here until it counts. What the plugin reads of
its offsets comes from the log, or from the batch that was committed last.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final

import pyarrow as pa

from .....events.commits import Advance, Document, identity
from ...batches.topics import joined
from ...spi.context import Context
from ...spi.errors import BadInput, FailedElsewhere, SourceAway
from ...spi.rows import ArrowTable
from ...spi.source import ArrowSource, BatchPlan, Limit, PlacedRun
from ..host import HostDied, OpenQuestion, PluginFailed
from ..running.runs import HandedBatch, HostedRun
from .host_run import HangWatch, join, put, require_at_work, stop
from .pair import Pair
from .seen_offsets import SeenOffsets

_AT: Final = "_fairlead_at"
"""The column with the place of a row in its batch, where that has several tables."""
_TOPIC_OF_TABLE: Final = b"fairlead.topic"
"""The metadata of a table with its topic."""


class PluginSource(ArrowSource):
    """The source of one task."""

    def __init__(
        self,
        context: Context,
        config: Mapping[str, str],
        task: Mapping[str, str],
        beside: Sequence[str],
        cluster: Mapping[str, str] | None = None,
        pair: Pair | None = None,
    ) -> None:
        """Start nothing yet; `beside` names the columns to keep beside those of values.

        A `cluster` of Kafka takes the records as they are, as the settings of the client that
        creates its topics; None: rows are wanted. `pair` is what its sink wants that is a plugin.
        """
        self._context = context
        self._config = config
        self._task = task
        self._beside = [f"_{each.removeprefix('_')}" for each in beside]
        self._cluster = cluster
        self._pair = pair
        self.is_held = pair is not None and pair.is_held
        """Whether its records stay in the host, for a sink there."""
        self._stack = ExitStack()
        self._run: HostedRun | None = None
        self._start: OpenQuestion | None = None
        """The question that has the task made; None: it has not been put."""
        self._hang = HangWatch()
        self._planned: tuple[HandedBatch, Any] | None = None
        """The batch at work, with its rows."""
        self._seen = SeenOffsets()
        self._places: Sequence[PlacedRun] = ()
        """Where the records of the batch at work were written; empty: that is not known."""

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[ArrowTable]:
        """Return the batch that the task has handed over; Connect's own keys bound it.

        Raises `NotReady`, `SourceAway`, `FailedElsewhere`, `BadInput`.
        """
        del limit
        run = self._run = self._run or join(self._stack, self._context, self._config)
        require_at_work(run)
        if self._start is None:
            number = self._context.resource.task
            configs: dict[str, object] = {
                "config": self._config,
                "own": self._task,
                "tasks": number + 1,
                "paused": False,
            }
            self._start = put(run, "start task", **run.place, **configs, **self._wanted())
        self._require_start(self._start)
        if run.batch is None:
            return BatchPlan(remark=self._hang.look(run) or self._seen.remark)
        if self._planned is None or self._planned[0] is not run.batch:
            self._planned = run.batch, self._rows(run.batch)
            self._seen.add(run.batch)
            self._places = ()
        batch, rows = self._planned
        starts = ((each, offsets.get(identity(each)), end) for each, end in batch.offsets)
        # To remove what is not there is no advance.
        advances = tuple(Advance(*each) for each in starts if each[1:] != (None, None))
        size = batch.held or rows.nbytes, rows.num_rows
        return BatchPlan((rows,), advances, *size, backlog=True, remark=self._seen.remark)

    @staticmethod
    def _require_start(start: OpenQuestion) -> None:
        """Raise `FailedElsewhere` if the task could not be made, `SourceAway` without a host."""
        try:
            if start.is_done:
                start.result(0)
        except PluginFailed as failed:
            raise FailedElsewhere(f"{failed.kind}: {failed}") from None
        except HostDied as died:
            raise SourceAway(f"the plugin host has ended: {died}") from None

    def _wanted(self) -> dict[str, object]:
        """Return the form in which the host hands records over."""
        if self._pair is not None:
            return {"paired": True, "held": self.is_held, "beside": self._beside}
        return {"beside": self._beside} if self._cluster is None else {"cluster": self._cluster}

    def _rows(self, batch: HandedBatch) -> Any:  # noqa: ANN401  # pyarrow has no types
        tables = [pa.ipc.open_stream(each).read_all() for each in batch.tables]
        if not tables:
            return pa.table({})
        if self._pair is not None:
            return self._pair.select(batch.number, tables[0] if self.is_held else _ordered(tables))
        return tables[0] if self._cluster is not None else _ordered(tables)

    @property
    def wants_places(self) -> bool:
        """Whether the plugin hears where its records are written, each of them."""
        return self._planned is not None and self._planned[0].wants_places

    def note_places(self, places: Sequence[PlacedRun]) -> None:
        """Keep the places for the plugin, unless some of its records were left out."""
        rows = sum(each.rows for each in places)
        if self._planned is not None and rows == self._planned[1].num_rows:
            self._places = places

    def acknowledge(self, advances: Sequence[Advance]) -> None:
        """Tell the task that its batch is committed and published."""
        del advances
        if batch := self._take():
            self._tell("committed", batch.number, places=self._places)

    def pass_on(self) -> int:
        """Release the task from a batch that its sink was given; return the number of that."""
        batch = self._take()
        if batch is None:
            raise AssertionError("a batch that was put is there until then")
        self._tell("passed", batch.number)
        return batch.number

    def confirm(self, number: int) -> None:
        """Tell the task that a batch is committed, with all before it."""
        self._tell("committed", number)

    def shares_host(self, run: HostedRun) -> bool:
        """Return whether another run is in the host of its own."""
        return self._run is not None and self._run.shares_host(run)

    def _take(self) -> HandedBatch | None:
        """Return the batch at work, which is at work no more."""
        if self._run is None:
            return None
        batch, self._run.batch, self._planned = self._run.batch, None, None
        return batch

    def _tell(self, news: str, number: int, **about: object) -> None:
        if self._run is not None:
            with suppress(HostDied):  # the next task resumes behind what counts
                self._run.put(news, number=number, **about, **self._run.place)

    def close(self) -> None:
        """Stop the task."""
        with self._stack:
            if self._run is not None:
                stop(self._run, self._start, "stop task")


def _ordered(tables: Sequence[Any]) -> Any:  # noqa: ANN401  # pyarrow has no types
    """Return the rows of all tables in their order."""
    try:
        rows = joined([(_topic_of(each), each) for each in tables], _AT)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise BadInput(
            f"a batch has records of one topic whose columns changed their types: {error}"
        ) from None
    return rows.sort_by(_AT).drop_columns([_AT]) if len(tables) > 1 else rows


def _topic_of(table: Any) -> str:  # noqa: ANN401  # pyarrow has no types
    return str(table.schema.metadata[_TOPIC_OF_TABLE].decode())
