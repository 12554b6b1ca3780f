"""The families of connectors and their tasks, as lines that are kept while nothing changes.

Most lines of a page are of connectors: a node with a thousand of them has tens of thousands, of
which few change between two scrapes. So the lines of each connector are kept in three parts, by
what they depend on: its run states change with the group's log, its progress with its batches, and
some with the time alone. A page joins the parts family by family, as the formats demand; when
nothing has changed it is the page before. The parts are the same in both formats.

Series of each task are written if the node is to have them (`metrics.task.series`): they are as
many again for each task.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...events.commits import Lag
from ...events.group import Group
from ...events.model import ErrorClass, Resource, RunState
from ...events.placement import last_part
from ..views import (
    Progress,
    ResourceStatus,
    connector_names,
    is_behind,
    resource_status,
    unplaceable_resources,
)
from .families import MS, GroupFigures, Groups
from .lines import LineFamily, spell_labels

TASKS: Final = LineFamily("connector_configured_tasks", "gauge", "Tasks of the connector.")
BY_STATE: Final = LineFamily(
    "connector_tasks",
    "gauge",
    "Tasks of the connector by run state; a state that none is in is left out.",
)
STATE: Final = LineFamily(
    "connector_state", "gauge", "1 for the run state of the connector itself."
)
UNPLACEABLE: Final = LineFamily(
    "connector_unplaceable_resources",
    "gauge",
    "The connector and those of its tasks that no member can take.",
)
HINDERED: Final = LineFamily(
    "connector_hindered_resources",
    "gauge",
    "The connector and those of its tasks that wait or have failed, by who can mend it.",
)
TASK_STATE: Final = LineFamily(
    "task_state", "gauge", "1 for the run state of the task, and the worker that it is at."
)
OF_STATES: Final = (TASKS, BY_STATE, STATE, UNPLACEABLE, HINDERED, TASK_STATE)

Read = Callable[[Progress], int | float | None]
"""Returns a figure of a progress; None: there is none."""


def _timestamp(ms: int) -> float | None:
    return ms / MS if ms else None


_SUMS: Final[Sequence[tuple[str, str, Read]]] = (
    ("rows_in", "Rows read in batches that count.", lambda of: of.rows_in),
    ("rows_out", "Rows written in batches that count.", lambda of: of.rows_out),
    ("in_bytes", "Bytes read in batches that count.", lambda of: of.cost.bytes_in),
    ("out_bytes", "Bytes written in batches that count.", lambda of: of.bytes_out),
    ("batches", "Batches that count.", lambda of: of.batches),
)
SUMS: Final = tuple(
    (LineFamily(f"connector_{name}", "counter", text), read) for name, text, read in _SUMS
)
TASK_SUMS: Final = tuple(
    (LineFamily(f"task_{name}", "counter", f"{text[:-1]}, of the task."), read)
    for name, text, read in _SUMS
)
TASK_LAST: Final = LineFamily(
    "task_last_commit_timestamp_seconds", "gauge", "When the task committed a batch last."
)
GAUGES: Final[Sequence[tuple[LineFamily, Read]]] = (
    (
        LineFamily(
            "connector_unpublished_batches", "gauge", "Batches that count and are not in place yet."
        ),
        lambda of: of.unpublished,
    ),
    (
        LineFamily(
            "connector_last_commit_timestamp_seconds", "gauge", "When a batch was committed last."
        ),
        lambda of: _timestamp(of.last_commit_ms),
    ),
    (
        LineFamily(
            "connector_oldest_commit_timestamp_seconds",
            "gauge",
            "The last commit of the task that has something to read and has waited for longest.",
        ),
        lambda of: _timestamp(of.oldest_commit_ms),
    ),
    (
        LineFamily(
            "connector_uncommitted_tasks",
            "gauge",
            "Tasks of the connector that never committed a batch.",
        ),
        lambda of: of.uncommitted,
    ),
)
SECONDS: Final = LineFamily(
    "connector_batch_seconds", "counter", "Time that batches which count took, by phase."
)
_LAG: Final[Sequence[tuple[str, str, Callable[[Lag], int | None]]]] = (
    ("lag_bytes", "Bytes that are left to read, as of the last plans.", lambda of: of.bytes),
    ("lag_records", "Records that are left to read, where it is known.", lambda of: of.records),
)
LAGS: Final = tuple(
    (LineFamily(f"connector_{name}", "gauge", text), read) for name, text, read in _LAG
)
TASK_LAGS: Final = tuple(
    (LineFamily(f"task_{name}", "gauge", f"{text[:-1]}, of the task."), read)
    for name, text, read in _LAG
)
LAG_SECONDS: Final = LineFamily(
    "connector_lag_seconds",
    "gauge",
    "How old what is left to read is at most: the time since nothing was left.",
)
RESTARTS: Final = LineFamily(
    "connector_restarts",
    "counter",
    "Restarts of the connector and its tasks after failures, since this process started.",
)
OF_PROGRESS: Final = (
    *(family for family, _ in SUMS),
    SECONDS,
    *(family for family, _ in GAUGES),
    *(family for family, _ in LAGS),
    *(family for family, _ in TASK_SUMS),
    TASK_LAST,
    *(family for family, _ in TASK_LAGS),
)

OF_TASKS: Final = frozenset(
    (TASK_STATE, TASK_LAST, *(family for family, _ in (*TASK_SUMS, *TASK_LAGS)))
)
"""What is written only if tasks have series of their own."""
NO_PROGRESS: Final = Progress()
Part = tuple[str, ...]
"""The lines of one connector by family; "" where it has none."""


@dataclass(slots=True)
class _Kept:
    """The lines of one connector, and what they were written of."""

    labels: str
    states: Part = ()
    progress: Part = ()
    of_progress: object = None
    """What those of its progress were written of."""
    tasks: dict[int, str] = field(default_factory=dict[int, str])
    """The labels of each task."""

    def task(self, number: int) -> str:
        """Return the labels of a task."""
        known = self.tasks.get(number)
        if known is None:
            known = self.tasks[number] = f'{self.labels},task="{number}"'
        return known


class _GroupLines:
    """The lines of the connectors of one group."""

    def __init__(self, group_id: str, *, has_tasks: bool) -> None:
        self._group_id, self._has_tasks = group_id, has_tasks
        self._kept: dict[str, _Kept] = {}
        """By connector, in the order of their names."""
        self._of_states: object = None
        """The group, and the end of its log, that the run states were written of."""

    def update(self, of: GroupFigures) -> bool:
        """Write what has changed anew; return whether anything has."""
        names = connector_names(of.group)
        has_changed = [*self._kept] != names
        self._kept = {name: self._kept.get(name) or _Kept(self._labels(name)) for name in names}
        basis = id(of.group), of.group.end
        if has_changed or basis != self._of_states:
            self._write_states(of.group)
            self._of_states, has_changed = basis, True
        for name, kept in self._kept.items():
            numbers = of.group.task_numbers(name)
            source = of.progress.get(name, NO_PROGRESS), of.unread.get(name), numbers
            if kept.of_progress is None or kept.of_progress != source:
                kept.progress = self._write_progress(kept, of, name)
                kept.of_progress, has_changed = source, True
        return has_changed

    def _labels(self, name: str) -> str:
        return spell_labels((("group", self._group_id), ("connector", name)))

    def states(self) -> Iterator[Part]:
        """Yield the lines of `OF_STATES`, connector by connector."""
        return (each.states for each in self._kept.values())

    def progress(self) -> Iterator[Part]:
        """Yield the lines of `OF_PROGRESS`, connector by connector."""
        return (each.progress for each in self._kept.values())

    def live(self, of: GroupFigures, now_ms: int) -> tuple[str, str]:
        """Return the lines that change with the time alone: of lags in seconds, and of restarts."""
        lags, restarts = list[str](), list[str]()
        for name, kept in self._kept.items():
            restarts.append(RESTARTS.line(kept.labels, of.watched.restarts[name]))
            lag, since = _lag_of(of, name), of.caught_up.get(name)
            if lag is not None and not is_behind(lag):
                lags.append(LAG_SECONDS.line(kept.labels, 0))
            elif lag is not None and since is not None:
                lags.append(LAG_SECONDS.line(kept.labels, max(0, now_ms - since) / MS))
        return "".join(lags), "".join(restarts)

    def _write_states(self, group: Group) -> None:
        nowhere = Counter(each.connector for each in unplaceable_resources(group))
        for name, kept in self._kept.items():
            own = resource_status(group, Resource(name))
            tasks = {
                number: resource_status(group, Resource(name, number))
                for number in group.task_numbers(name)
            }
            kept.states = (
                TASKS.line(kept.labels, len(tasks)),
                _by_state(kept.labels, tasks.values()),
                STATE.line(f'{kept.labels},state="{own.state.value.lower()}"', 1),
                UNPLACEABLE.line(kept.labels, nowhere[name]),
                _hindered(kept.labels, (own, *tasks.values())),
                "".join(self._task_states(kept, tasks)),
            )

    def _task_states(self, kept: _Kept, tasks: dict[int, ResourceStatus]) -> Iterator[str]:
        for number, each in tasks.items() if self._has_tasks else ():
            state, worker = each.state.value.lower(), last_part(each.worker)
            about = spell_labels((("state", state), ("worker", worker)))
            yield TASK_STATE.line(f"{kept.task(number)},{about}", 1)

    def _write_progress(self, kept: _Kept, of: GroupFigures, name: str) -> Part:
        labels, total = kept.labels, of.progress.get(name, NO_PROGRESS)
        lag = _lag_of(of, name)
        seconds = (
            SECONDS.line(f'{labels},phase="{phase}"', took_ms / MS)
            for phase, took_ms in total.cost.phases_ms.items()
        )
        return (
            *(_line(family, labels, read(total)) for family, read in SUMS),
            "".join(seconds),
            *(_line(family, labels, read(total)) for family, read in GAUGES),
            *(_line(family, labels, read(lag) if lag else None) for family, read in LAGS),
            *self._task_progress(kept, of, name),
        )

    def _task_progress(self, kept: _Kept, of: GroupFigures, name: str) -> Iterator[str]:
        numbers = of.group.task_numbers(name) if self._has_tasks else ()
        of_tasks = of.tasks.get(name, {})
        tasks = [(kept.task(each), of_tasks[each]) for each in numbers if each in of_tasks]
        for family, read in TASK_SUMS:
            yield "".join(_line(family, labels, read(each)) for labels, each in tasks)
        yield "".join(
            _line(TASK_LAST, labels, _timestamp(each.last_commit_ms)) for labels, each in tasks
        )
        for lag_family, read_lag in TASK_LAGS:
            yield "".join(
                _line(lag_family, labels, read_lag(each.lag) if each.lag else None)
                for labels, each in tasks
            )


def _line(family: LineFamily, labels: str, value: float | None) -> str:
    return "" if value is None else family.line(labels, value)


def _lag_of(of: GroupFigures, name: str) -> Lag | None:
    """Return what a look has found to be left, or else what the last plans left."""
    progress = of.progress.get(name, NO_PROGRESS)
    return of.unread.get(name, progress.lag if progress.last_commit_ms else None)


def _by_state(labels: str, tasks: Iterable[ResourceStatus]) -> str:
    counts = Counter(each.state for each in tasks)
    return "".join(
        BY_STATE.line(f'{labels},state="{state.value.lower()}"', counts[state])
        for state in RunState
        if counts[state]
    )


def _hindered(labels: str, resources: Iterable[ResourceStatus]) -> str:
    counts = Counter(ErrorClass.of(each.why) for each in resources if each.why)
    return "".join(
        HINDERED.line(f'{labels},error="{error.value}"', counts[error])
        for error in ErrorClass
        if counts[error]
    )


class ConnectorLines:
    """Writes the lines of all connectors, for one thread at a time."""

    def __init__(self, *, has_tasks: bool = False) -> None:
        """`has_tasks`: whether each task has series of its own."""
        self._has_tasks = has_tasks
        self._groups: dict[str, _GroupLines] = {}
        """By group id."""
        self._pages: dict[bool, str] = {}
        """What was written last, without what changes with the time, by format."""

    def write(self, groups: Groups, now_ms: int, *, is_open: bool) -> str:
        """Return the families of the connectors of these groups."""
        figures = {each.group.group_id: each for each in groups}
        has_changed = figures.keys() != self._groups.keys()
        self._groups = {
            name: self._groups.get(name) or _GroupLines(name, has_tasks=self._has_tasks)
            for name in figures
        }
        for name, lines in self._groups.items():
            has_changed = lines.update(figures[name]) or has_changed
        if has_changed:
            self._pages = {}
        if is_open not in self._pages:
            self._pages[is_open] = "".join(self._join(is_open=is_open))
        live = [lines.live(figures[name], now_ms) for name, lines in self._groups.items()]
        heads = (family.head(is_open=is_open) for family in (LAG_SECONDS, RESTARTS))
        parts = zip(heads, zip(*live, strict=True) if live else ((), ()), strict=True)
        return self._pages[is_open] + "".join(head + "".join(lines) for head, lines in parts)

    def _join(self, *, is_open: bool) -> Iterator[str]:
        of_all = self._groups.values()
        for families, parts in (
            (OF_STATES, [part for each in of_all for part in each.states()]),
            (OF_PROGRESS, [part for each in of_all for part in each.progress()]),
        ):
            texts = zip(*parts, strict=True) if parts else ((),) * len(families)
            for family, lines in zip(families, texts, strict=True):
                if self._has_tasks or family not in OF_TASKS:
                    yield family.head(is_open=is_open)
                    yield from lines
