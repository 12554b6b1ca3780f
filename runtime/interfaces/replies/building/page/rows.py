"""Builds the rows of connectors, and the troubles of each."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.json import encode

from ......events.group import Group
from ......events.model import ErrorClass, Resource, RunState
from ......projections.page.shapes import (
    MOVES,
    UNASSIGNED,
    ConnectorShape,
    error_class,
    first_line,
)
from ......projections.page.troubles import trouble_of
from .....pipeline.spi.keys.common import CONNECTOR_CLASS, TASKS_MAX
from .....pipeline.spi.keys.labels import read_labels
from ...live.state import ConnectorRow, PageTrouble, RowLag
from .facts import ConnectorProgress

FILES: Final = "files"
BUILT_IN: Final = "SparkPipeline"
ORDER: Final = ("failed", "unassigned", "waiting", "restarting")
"""The kinds of troubles of connectors, the worst first."""
_SAVED: Final[Mapping[str, str]] = {
    "failed": "Rows before it are in the sink; what lies behind waits in the source.",
    "waiting": "What is committed is in the sink; the rest waits in the source, and is read then.",
    "unassigned": "Nothing of it runs meanwhile; what it has to read waits in the source.",
    "restarting": "It goes on behind its last commit: no row is lost, and none comes twice.",
}
_REMARK_SAVED: Final = "It goes on meanwhile: no other row waits for that."
_ACCEPTS: Final = "source.schema.evolution"
"""The key that a reason names if a changed column can be accepted by it."""
_BAD_ROW: Final = "bad row"
"""What a remark on rows that were left out names."""


@dataclass(frozen=True, slots=True)
class PageRow:
    """A connector on a page, with its encoded form."""

    row: ConnectorRow
    encoded: bytes
    """The row as JSON."""
    owners: Sequence[str]
    """The member that has each task; empty: none."""
    troubles: Sequence[PageTrouble]
    counts: Counter[str]
    """How many of the connector and its tasks have which trouble, in the words of the verdict."""


def make_row(
    group: Group,
    shape: ConnectorShape,
    kind: str,
    progress: ConnectorProgress,
    places: Mapping[str, int],
    now_ms: int,
) -> PageRow:
    """Return the row of a connector; `places` has the index of each member's worker."""
    name, total = shape.connector, progress.total
    config = group.connectors[name]
    made_by = config.config.get(CONNECTOR_CLASS, "").rpartition(".")[2]
    is_own = made_by == BUILT_IN
    source = FILES if is_own else made_by if kind == "source" else ""
    sink = FILES if is_own else made_by if kind == "sink" else ""
    lag = progress.lag
    row = ConnectorRow(
        kind,
        config.config.get("source.type", source),
        config.config.get("sink.type", sink),
        made_by,
        shape.statuses[Resource(name)].state.value,
        shape.shape,
        shape.reason,
        shape.since_ms,
        shape.cells,
        [places.get(each, -1) for each in shape.owners],
        _tasks_max(config.config.get(TASKS_MAX, "")),
        progress.rows_per_second,
        total.rows_in,
        total.dead_letters,
        RowLag(lag.records, lag.bytes, lag.ranges) if lag else None,
        progress.behind_ms(now_ms),
        total.last_commit_ms or None,
        read_labels(config.config),
        config.actor,
        config.time_ms,
    )
    troubles = [*_troubles(group, shape)] if shape.troubles else []
    return PageRow(row, encode(row), shape.owners, troubles, shape.troubles)


def _tasks_max(text: str) -> int:
    return int(text) if text.isdecimal() else 1


def _troubles(group: Group, shape: ConnectorShape) -> list[PageTrouble]:
    """Return one trouble for each kind, the worst first."""
    by_kind: dict[str, list[Resource]] = {}
    for resource, status in shape.statuses.items():
        if trouble := trouble_of(status.state.value, status.why):
            by_kind.setdefault(_kind(shape, resource, trouble), []).append(resource)
    return [_trouble(group, shape, kind, by_kind[kind]) for kind in ORDER if kind in by_kind]


def _kind(shape: ConnectorShape, resource: Resource, trouble: str) -> str:
    match trouble:
        case RunState.FAILED.value:
            return "failed"
        case RunState.RESTARTING.value:
            return "restarting"
        case RunState.UNASSIGNED.value:
            is_placeless = resource.is_task and shape.cells[resource.task] == UNASSIGNED
            return "unassigned" if is_placeless else "waiting"
        case _:
            return "waiting"


def _trouble(
    group: Group, shape: ConnectorShape, kind: str, resources: list[Resource]
) -> PageTrouble:
    tasks = [each.task for each in resources if each.is_task]
    reasons = [shape.statuses[each].why for each in resources]
    reason = next(filter(None, reasons), "")
    is_remark = {shape.statuses[each].state for each in resources} == {RunState.RUNNING}
    times = [shape.began_ms[each] for each in resources if each in shape.began_ms]
    return PageTrouble(
        f"{kind}:{shape.connector}",
        kind,
        shape.connector,
        tasks,
        None,
        _title(shape, kind, tasks, is_remark=is_remark),
        _without_class(first_line(reason)) or _unsaid(shape, kind, tasks),
        error_class(reason),
        min(times, default=None),
        _REMARK_SAVED if is_remark else _SAVED[kind],
        _actions(kind, reason, group),
        "\n" in reason,
    )


def _title(shape: ConnectorShape, kind: str, tasks: list[int], *, is_remark: bool) -> str:
    done = {
        "failed": ("has failed", "failed"),
        "waiting": ("waits", "wait"),
        "unassigned": ("has no worker", "have no worker"),
        "restarting": ("is restarted", "are restarted"),
    }[kind]
    if not tasks:
        return f"the connector {done[0]}"
    if is_remark:
        done = "runs, with a remark", "run, with a remark"
    verb = done[0] if len(tasks) == 1 and kind != "failed" else done[1]
    noun = "task" if len(shape.cells) == 1 else "tasks"
    return f"{len(tasks)} of {len(shape.cells)} {noun} {verb}"


def _unsaid(shape: ConnectorShape, kind: str, tasks: list[int]) -> str:
    """Return what is known of a trouble without a reason."""
    if kind != "waiting":
        return "no reason is known"
    is_moving = all(shape.cells[each] == MOVES for each in tasks)
    return "it is on its way to a worker" if is_moving else "its worker has not started it yet"


def _without_class(reason: str) -> str:
    return reason.partition(": ")[2] if ErrorClass.of(reason) else reason


def _actions(kind: str, reason: str, group: Group) -> list[str]:
    """Return the actions that may help, the most helpful one first."""
    match kind:
        case "failed":
            first = ["accept-column"] if _ACCEPTS in reason else []
            is_input = ErrorClass.of(reason) is ErrorClass.INPUT
            return [*first, "restart", *(["dead-letters"] if is_input else []), "log"]
        case "unassigned":
            orders = group.worker_orders.values()
            is_ordered = any(each.cordoned or each.draining for each in orders)
            return [*(["uncordon"] if is_ordered else []), "log"]
        case _:
            return ["dead-letters", "log"] if _BAD_ROW in reason else ["log", "pause"]
