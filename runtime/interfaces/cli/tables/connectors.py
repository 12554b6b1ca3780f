"""Tables of connectors, tasks and plugins, and documents with all details of one of them."""

from collections.abc import Mapping, Sequence

from msgspec import Struct, convert
from rich.filesize import decimal

from ...replies.connectors import (
    AutoRestartInfo,
    ConfigDiff,
    ConnectorInfo,
    ConnectorState,
    ConnectorStateInfo,
    ExpandedConnector,
)
from ...replies.progress import ConnectorProgressInfo, TaskCounts, UnreadInput
from ..output.phrases import format_age, shorten_worker
from ..output.printing import FactList, Section, Table

Expanded = dict[str, ExpandedConnector]
"""The response of `/connectors?expand=…`."""


class TaskLine(Struct, frozen=True, omit_defaults=True):
    """A task with its connector, its state and its progress."""

    connector: str
    task: int
    state: str
    worker_id: str
    trace: str = ""
    reason: str = ""
    autoRestart: AutoRestartInfo | None = None  # noqa: N815  # its name in REST
    progress: TaskCounts | None = None


class TaskInFull(TaskLine, frozen=True, kw_only=True):
    """A task with its config."""

    config: dict[str, str]


class ConnectorInFull(ConnectorInfo, frozen=True, kw_only=True):
    """A connector with its state and progress."""

    status: ConnectorStateInfo
    progress: ConnectorProgressInfo


def list_tasks(reply: Mapping[str, ExpandedConnector]) -> list[TaskLine]:
    """Return the tasks of all connectors in a response expanded by status, and maybe progress."""
    return [
        line
        for name, entry in sorted(reply.items())
        if entry.status
        for line in _tasks_of(name, entry.status, entry.progress)
    ]


def connectors(reply: Mapping[str, ExpandedConnector]) -> list[Section]:
    """Return the table of connectors in a response expanded by status and info."""
    rows = [_connector_row(name, entry) for name, entry in sorted(reply.items())]
    columns = ("NAME", "TYPE", "STATE", "WORKER", "TASKS", "CLASS", "REASON")
    empty = "no connectors: add one with `fairlead create -f FILE`"
    return [Table(columns, rows, empty, brief=("REASON",))]


def connector(reply: ConnectorInFull) -> list[Section]:
    """Return the sections of one connector."""
    state = reply.status.connector
    lines = _tasks_of(reply.name, reply.status, reply.progress)
    traces = [(f"{each.connector}-{each.task}", each.trace) for each in lines if each.trace]
    facts = (
        ("Name", reply.name),
        ("Type", reply.type),
        ("State", state.state),
        ("Worker", shorten_worker(state.worker_id)),
        ("Delivery", reply.delivery),
        ("Reason", state.trace or state.reason),
        *(("Warning", each) for each in reply.warnings),
    )
    return [
        FactList(facts),
        FactList(sorted(reply.config.items()), "Config"),
        *tasks(lines),
        *_batches(lines),
        *_bad_rows(lines),
        *([FactList(traces, "Failures")] if traces else []),
    ]


def _batches(lines: list[TaskLine]) -> list[Section]:
    """Return the throughput and batch durations of tasks; nothing if all are unknown."""
    told = [
        (
            f"{each.connector}-{each.task}",
            f"{progress.rows_per_second:,} rows/s, {decimal(progress.bytes_in)} read; "
            f"{', '.join(f'{phase} {took} ms' for phase, took in progress.batch_ms.items())}",
        )
        for each in lines
        if (progress := each.progress) and progress.batch_ms
    ]
    return [FactList(told, "Batches on average")] if told else []


def _bad_rows(lines: list[TaskLine]) -> list[Section]:
    """Return the numbers of skipped bad rows; nothing if there are none."""
    told = [
        (f"{each.connector}-{each.task}", f"{progress.skipped} left out, {kept}")
        for each in lines
        if (progress := each.progress) and progress.skipped
        for kept in [f"{progress.dead_letters} of them kept as dead letters"]
    ]
    return [FactList(told, "Bad rows")] if told else []


def tasks(reply: list[TaskLine]) -> list[Section]:
    """Return the table of tasks."""
    columns = ("TASK", "STATE", "WORKER", "ROWS", "BATCHES", "LAG", "LAST COMMIT", "REASON")
    rows = [_task_row(each) for each in reply]
    return [Table(columns, rows, "no tasks", folded=("REASON",), brief=("REASON",))]


def task(reply: TaskInFull) -> list[Section]:
    """Return the sections of one task."""
    name = f"{reply.connector}-{reply.task}"
    sections = [*tasks([reply]), FactList(sorted(reply.config.items()), f"Config of {name}")]
    return [*sections, FactList([(name, reply.trace)], "Failure")] if reply.trace else sections


def tabulate_config_warnings(reply: Expanded) -> list[Section]:
    """Return the warnings about the configs of connectors; nothing if there are none."""
    rows = [
        (name, warning)
        for name, entry in sorted(reply.items())
        for warning in (entry.status.warnings if entry.status else ())
    ]
    return [Table(("CONNECTOR", "WARNING"), rows, title="Warnings")] if rows else []


def tabulate_config_diffs(reply: Sequence[ConfigDiff]) -> list[Section]:
    """Return the table of what configs would change."""
    rows = [
        (each.name, change.key, change.before or "", change.after or "")
        for each in reply
        for change in each.changes
    ]
    return [Table(("CONNECTOR", "KEY", "FROM", "TO"), rows, "no differences", rigid=True)]


def _tasks_of(
    name: str, status: ConnectorStateInfo, progress: ConnectorProgressInfo | None
) -> list[TaskLine]:
    counts = {
        each.id: convert(each, TaskCounts, from_attributes=True)
        for each in (progress.tasks if progress else ())
    }
    return [
        TaskLine(
            name,
            each.id,
            each.state,
            each.worker_id,
            each.trace,
            each.reason,
            each.autoRestart,
            counts.get(each.id),
        )
        for each in status.tasks
    ]


def _connector_row(name: str, entry: ExpandedConnector) -> tuple[str, ...]:
    status = entry.status or ConnectorStateInfo(name, ConnectorState("", "", None), [], "")
    made_by = entry.info.config.get("connector.class", "") if entry.info else ""
    is_running = [each.state == "RUNNING" for each in status.tasks]
    return (
        name,
        status.type,
        status.connector.state,
        shorten_worker(status.connector.worker_id),
        f"{sum(is_running)}/{len(is_running)}",
        made_by.rpartition(".")[2],
        _reason(status.connector),
    )


def _task_row(each: TaskLine) -> tuple[str, ...]:
    progress = each.progress
    return (
        f"{each.connector}-{each.task}",
        each.state,
        shorten_worker(each.worker_id),
        str(progress.rows_out) if progress else "",
        str(progress.batches) if progress else "",
        format_lag(progress.lag if progress else None),
        format_age(progress.last_commit_ms if progress else None),
        _reason(each),
    )


def format_lag(lag: UnreadInput | None) -> str:
    """Return the lag in records or in bytes if known, else as a number of ranges."""
    if lag is None:
        return ""
    if lag.records is not None:
        return f"{lag.records:,} records"
    return decimal(lag.bytes) if lag.bytes or not lag.ranges else f"{lag.ranges} ranges"


def _reason(state: ConnectorState | TaskLine) -> str:
    """Return in one line the reason of a failure or a wait, and the number of restarts."""
    why = state.trace or state.reason
    line = next((each for each in why.splitlines() if each.strip()), "")
    if state.autoRestart is None:
        return line
    return "; ".join(filter(None, (line, f"restarted {state.autoRestart.count} times")))
