"""Keeps the page of the node's own group: one thread follows its logs and publishes each change.

It is called by the loop that follows all logs (`reading/changes.py`). The control log is folded
anew here, so that a page is of one position; the records say which connectors to describe again.
Progress comes from the offset log, once a second at most, as batches end all the time. Rates fall
back to 0 by themselves, and what a connector is behind grows: such rows are described again, too.
A message holds what differs from the page before, and nothing is published if nothing differs.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from msgspec import Raw, structs

from ......events.commits import Lag
from ......events.entries.codec import CodecError
from ......events.group import Group
from ......events.log.errors import LogError
from ......projections.page.rates import RowRates
from ......projections.page.recent import RecentRecords
from ......projections.page.shapes import ConnectorShape, shape_of
from ......projections.page.today import DAY_MS
from ......projections.progress import is_lag_outdated
from ......projections.views import Progress, connector_names
from ......projections.watch.lines import EventLine
from ....replies.building.page.epochs import KnownEpoch, last_rebalance
from ....replies.building.page.facts import ConnectorProgress, NodeFacts
from ....replies.building.page.rows import PageRow, make_row
from ....replies.building.page.state import PageView
from ....replies.building.page.verdicts import make_figures, make_troubles, make_verdict
from ....replies.building.page.workers import make_workers
from ....replies.live.events import describe_event
from ....replies.live.state import (
    ConnectorRow,
    PageChange,
    PageFigures,
    PageStep,
    PageWorker,
    WorkerStep,
)
from ....replies.node import Health
from ...commands.service import Service
from ...reading.logs import FollowedGroup
from ...server.errors import PASSING, describe_log_error
from .node import NodeLooks

LOGGER = logging.getLogger(__name__)
PROGRESS_MS: Final = 1_000
AGAIN_MS: Final = 15_000
"""After this time a page that could not be built is tried again."""
ROWS_PER_PERIOD: Final = 300
"""With more connectors than that, their progress is read less often."""
UNHEALTHY: Final = "unhealthy"
NO_PROGRESS: Final = ConnectorProgress()


def now_ms() -> int:
    """Return the time, in milliseconds of the wall clock."""
    return time.time_ns() // 1_000_000


class ProgressLooks:
    """The progress of all connectors, and their rates, read again where they have changed."""

    def __init__(self) -> None:
        self.progress: dict[str, ConnectorProgress] = {}
        """By connector."""
        self.rates = RowRates()
        self.rows_today: int | None = None
        """Rows that were committed since midnight (UTC); None: not known."""
        self._day: int | None = None
        """The day of `rows_today`, in days since 1970; None: before the first look."""
        self._tasks: Mapping[str, Mapping[int, Progress]] = {}
        """By connector and number of the task, as of the last look."""
        self._unread: Mapping[str, Lag] = {}
        """`FollowedGroup.unread`, as of the last look."""

    def look(self, logs: FollowedGroup, now: int) -> set[str]:
        """Return the connectors whose progress or rate may differ from the last look.

        The logs are locked. Raises `LogError`, `CodecError`.
        """
        tasks, unread = logs.tasks_progress(), logs.unread
        changed = {name for name, each in tasks.items() if self._tasks.get(name) is not each}
        if unread is not self._unread:
            changed |= unread.keys() | self._unread.keys()
        changed &= tasks.keys()
        for name in self._tasks.keys() - tasks.keys():
            self.progress.pop(name, None)
            self.rates.drop(name)
        self._tasks, self._unread = tasks, unread
        rows = 0
        for name in changed:
            before = self.progress.get(name, NO_PROGRESS).total.rows_in
            self.progress[name] = self._read(logs, name, now)
            rows += max(0, self.progress[name].total.rows_in - before)
            self.rates.add(name, self.progress[name].total.rows_in, now)
        self._count_today(logs, rows, now)
        return changed.union(self.rates.moving())

    def _count_today(self, logs: FollowedGroup, rows: int, now: int) -> None:
        """Add rows to those of today; the first look reads these from the log."""
        day = now // DAY_MS
        if self._day is None:
            self.rows_today = logs.rows_since(day * DAY_MS)
        elif day != self._day:
            self.rows_today = rows
        elif self.rows_today is not None:
            self.rows_today += rows
        self._day = day

    def _read(self, logs: FollowedGroup, name: str, now: int) -> ConnectorProgress:
        total = logs.progress_of(name, self._tasks[name])
        lag = total.lag if total.last_commit_ms else None
        if name in self._unread and is_lag_outdated(logs.group, name, total, now):
            lag = self._unread[name]
        return ConnectorProgress(total, lag, logs.caught_up_ms(name))


class PageWatch:
    """Publishes the page of the node's own group; `follow` is for one thread."""

    def __init__(
        self, service: Service, node: NodeLooks, clock: Callable[[], int] = now_ms
    ) -> None:
        self._service, self._node, self._clock = service, node, clock
        self._logs: FollowedGroup | None = None
        """The logs that `_recent` reads; others are those that were opened again."""
        self._recent: RecentRecords | None = None
        """None: the page is built anew with the next change."""
        self._looks = ProgressLooks()
        self._progress_ms = 0
        """When the progress was read last."""
        self._again_ms = 0
        """When a page that could not be built is tried again."""
        self._shapes: dict[str, ConnectorShape] = {}
        self._rows: dict[str, PageRow] = {}
        """By connector, in the order of the page."""
        self._epochs: dict[int, KnownEpoch] = {}
        """The last epochs, the latest one first."""
        self._facts = NodeFacts()
        self._is_built = False
        """Whether a page was built since the logs were opened."""

    def follow(self, group_id: str, logs: FollowedGroup) -> None:
        """Publish what has changed in the node's own group; raises `LogError`, `CodecError`."""
        is_early = 0 < self._again_ms - self._clock() <= AGAIN_MS  # unless the clock was set back
        if group_id != self._service.group_id or is_early:
            return
        try:
            self._follow(logs)
        except (LogError, CodecError):
            self._logs = self._recent = None
            raise
        except Exception:
            LOGGER.exception("the page stays as it is for now; it is built anew in a moment")
            self._logs = self._recent = None
            self._again_ms = self._clock() + AGAIN_MS

    def fail(self, group_id: str, error: Exception) -> None:
        """Publish that the log of the node's own group cannot be read, as `/health` tells it."""
        view = self._service.page.view
        if group_id != self._service.group_id or view is None or isinstance(error, PASSING):
            return
        self._logs = self._recent = None
        refusal = Health(status=UNHEALTHY, message=describe_log_error(error))
        facts = replace(self._facts, refusal=refusal)
        verdict = make_verdict(view.rows, facts)
        if verdict != view.verdict:
            self._publish(replace(view, verdict=verdict, facts=facts, time_ms=self._clock()), ())

    def _begin(self, logs: FollowedGroup) -> RecentRecords:
        """Begin to follow logs that were opened."""
        self._logs, self._recent = logs, logs.recent()
        self._looks = ProgressLooks()
        self._progress_ms = 0
        self._rows = {}
        self._is_built = False
        return self._recent

    def _follow(self, logs: FollowedGroup) -> None:
        recent, now = self._recent, self._clock()
        if recent is None or self._logs is not logs:
            recent = self._begin(logs)
        has_new = recent.read()
        facts, before = self._node.facts, self._facts
        self._facts = facts
        moved = self._look_at_progress(now)
        is_step = self._service.page.history.is_due(now)
        if is_step:
            moved |= {name for name, each in self._rows.items() if each.row.behind_ms}
        is_old = has_new or moved or is_step or facts is not before
        if not is_old and self._is_built:
            return
        self._is_built = True
        view = self._service.page.view
        changed = recent.take_changed()
        if facts.hold != before.hold:
            changed = None
        names = connector_names(recent.group)
        workers, places = make_workers(recent.group, facts, recent.task_counts)
        if view is not None and _names(view.workers) != _names(workers):
            changed = None  # rows name workers by their places
        shaped = set(names) if changed is None else changed.intersection(names)
        self._describe(recent, names, shaped, moved, places, now)
        if has_new:
            self._read_epochs(recent)
        lines = recent.lines(view.position) if view else ()
        view = self._view(recent, workers, now)
        self._publish(view, lines)
        if is_step:
            self._end_step(view)

    def _end_step(self, view: PageView) -> None:
        """Record a step of the last hour, and tell it."""
        feed, progress = self._service.page, self._looks.progress
        feed.history.record(view.rows, progress, view.workers, view.figures, view.time_ms)
        moving = {
            name: each.row.rows_per_second
            for name, each in view.rows.items()
            if each.row.rows_per_second
        }
        used = {
            each.name: WorkerStep(each.cpu, each.memory_bytes, each.heartbeat_age_ms)
            for each in view.workers
        }
        place = feed.sequence + 1, view.time_ms
        feed.publish(view, PageStep(*place, moving, view.figures, used))

    def _look_at_progress(self, now: int) -> set[str]:
        """Return the connectors whose progress has to be shown anew."""
        period = PROGRESS_MS * max(1.0, len(self._rows) / ROWS_PER_PERIOD)
        if 0 <= now - self._progress_ms < period:
            return set()
        self._progress_ms = now
        with self._service.logs.reading(self._service.group_id) as logs:
            return self._looks.look(logs, now)

    def _describe(
        self,
        recent: RecentRecords,
        names: Sequence[str],
        shaped: set[str],
        moved: set[str],
        places: Mapping[str, int],
        now: int,
    ) -> None:
        """Describe connectors anew: those of another shape, and those that have moved on."""
        group, hold = recent.group, self._facts.hold
        rows: dict[str, PageRow] = {}
        shapes: dict[str, ConnectorShape] = {}
        for name in names:
            former = self._rows.get(name)
            if name in shaped or former is None:
                shapes[name] = shape_of(group, name, hold, recent.streaks)
            else:
                shapes[name] = self._shapes[name]
            if former is None or name in shaped or name in moved:
                rows[name] = self._row(group, shapes[name], places, now)
            else:
                rows[name] = former
        self._rows, self._shapes = rows, shapes

    def _row(
        self, group: Group, shape: ConnectorShape, places: Mapping[str, int], now: int
    ) -> PageRow:
        name = shape.connector
        kind = self._service.made_by(group.connectors[name].config).kind
        progress = replace(
            self._looks.progress.get(name, NO_PROGRESS),
            rows_per_second=self._looks.rates.rate(name, now),
        )
        return make_row(group, shape, kind, progress, places, now)

    def _read_epochs(self, recent: RecentRecords) -> None:
        """Describe the last epochs; those that are complete only once."""
        known = self._epochs
        self._epochs = {}
        for each in reversed(recent.epochs()):
            epoch = each.report.group_epoch
            former = known.get(epoch)
            is_done = former is not None and former.line.took_ms is not None
            is_same = former is not None and former.line.time_ms == each.report.bump.time_ms
            kept = former if is_done and is_same else None
            self._epochs[epoch] = kept or KnownEpoch(each.explain())

    def _view(self, recent: RecentRecords, workers: list[PageWorker], now: int) -> PageView:
        service, group, rows = self._service, recent.group, self._rows
        epochs = [each.line for each in self._epochs.values()]
        last = last_rebalance(epochs, len(group.configured))
        return PageView(
            service.version,
            service.group_id,
            service.cluster_id,
            recent.next,
            now,
            group.group_epoch,
            group.assigned_epoch,
            group.state.value,
            group.target.assignor,
            make_verdict(rows, self._facts),
            make_troubles(rows, self._facts),
            make_figures(rows, workers, self._facts, last, self._looks.rows_today),
            workers,
            rows,
            epochs,
            [*self._epochs.values()],
            recent.lines(),
            recent.marks,
            self._facts,
        )

    def _publish(self, view: PageView, lines: Sequence[EventLine]) -> None:
        """Publish a page, and what differs from the one before."""
        feed = self._service.page
        before = feed.view
        if before is None:
            feed.publish(view)
            return
        parts = dict(_differences(before, view))
        if lines:
            parts["lines"] = [*map(describe_event, reversed(lines))]
        if parts or view.position != before.position:
            change = PageChange(feed.sequence + 1, view.position, view.time_ms)
            feed.publish(view, structs.replace(change, **parts))


def _differences(before: PageView, view: PageView) -> Iterator[tuple[str, object]]:
    """Yield each part of a page that differs from the one before."""
    for name in ("epoch", "assignment_epoch", "group_state", "verdict", "troubles"):
        if getattr(before, name) != getattr(view, name):
            yield name, getattr(view, name)
    if _steady(before.figures) != _steady(view.figures):
        yield "figures", view.figures
    rows = {
        name: Raw(each.encoded)
        for name, each in view.rows.items()
        if (former := before.rows.get(name)) is not each
        and (former is None or _differs(former.row, each.row))
    }
    if rows:
        yield "connectors", rows  # encoded, and sent as they are
    if gone := sorted(before.rows.keys() - view.rows.keys()):
        yield "gone", gone
    if _steady_workers(before) != _steady_workers(view):
        yield "workers", view.workers
    known = {each.epoch: each for each in before.epochs}
    if epochs := [each for each in view.epochs if known.get(each.epoch) != each]:
        yield "epochs", epochs


def _differs(before: ConnectorRow, row: ConnectorRow) -> bool:
    """Return whether rows differ in more than what the steps tell as time passes."""
    return before != row and structs.replace(before, behind_ms=row.behind_ms) != row


def _steady(figures: PageFigures) -> PageFigures:
    """Return figures without what the steps tell as time passes."""
    return structs.replace(figures, memory_bytes=None, behind_ms=None)


def _steady_workers(view: PageView) -> list[PageWorker]:
    """Return workers without what the steps tell as time passes.

    Of the age of a heartbeat it is left whether it is known, and the age of one that is late: so
    who looks at a worker that falls silent sees that with each look of the node.
    """
    steady: list[PageWorker] = []
    for each in view.workers:
        age = each.heartbeat_age_ms
        told = age if age is None or age > view.facts.late_ms else 0
        steady.append(structs.replace(each, cpu=None, memory_bytes=None, heartbeat_age_ms=told))
    return steady


def _names(workers: Sequence[PageWorker]) -> list[tuple[str, str]]:
    return [(each.name, each.member_id) for each in workers]
