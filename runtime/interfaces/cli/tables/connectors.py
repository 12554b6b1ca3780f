"""Tables of connectors, tasks and plugins, and documents with all details of one of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET, Struct, UnsetType, convert
from rich.filesize import decimal

from ...replies.connectors import (
    AutoRestartInfo,
    ConfigChange,
    ConfigDiff,
    ConnectorInfo,
    ConnectorState,
    ConnectorStateInfo,
    ExpandedConnector,
    TaskState,
)
from ...replies.folder import FolderReport
from ...replies.progress import ConnectorProgressInfo, TaskCounts, UnreadInput
from ..output.layout import TableLayout
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

    @property
    def id(self) -> str:
        """Its name in tables: `flights-0`."""
        return f"{self.connector}-{self.task}"


class ConnectorLine(NamedTuple):
    """A connector in a list."""

    name: str
    status: ConnectorStateInfo
    class_name: str


class ConfigWarning(NamedTuple):
    """A warning about the config of a connector."""

    connector: str
    warning: str


class ChangedKey(NamedTuple):
    """A key that a config would change in a connector."""

    connector: str
    change: ConfigChange


class TaskInFull(TaskLine, frozen=True, kw_only=True):
    """A task with its config."""

    config: dict[str, str]


class ConnectorInFull(ConnectorInfo, frozen=True, kw_only=True):
    """A connector with its state and progress."""

    status: ConnectorStateInfo
    progress: ConnectorProgressInfo
    tasks_config: dict[str, dict[str, str]] | UnsetType = UNSET
    """The configs of its tasks, if they are wanted."""


def list_tasks(connectors: Expanded) -> list[TaskLine]:
    """Return the tasks of all connectors in a response expanded by status, and maybe progress."""
    return [
        line
        for name, entry in sorted(connectors.items())
        if entry.status
        for line in _tasks_of(name, entry.status, entry.progress)
    ]


def tabulate_connectors(connectors: Expanded) -> list[Section]:
    """Lay out connectors in a response expanded by status and info."""
    return [CONNECTORS.lay_out(_list_connectors(connectors))]


def _format_retried(config: Mapping[str, str]) -> str:
    """Return whose dead letters a connector retries; "" if it is for something else."""
    # Few connectors are described; a status, which uses this module, knows no keys.
    from ....pipeline.spi.keys.letters import CONNECTOR, LETTER_TOPIC, LETTERS  # noqa: PLC0415

    if config.get("source.type") not in {LETTERS, LETTER_TOPIC}:
        return ""
    return f"the dead letters of {config.get(CONNECTOR, '')}"


def tabulate_connector(connector: ConnectorInFull) -> list[Section]:
    """Lay out one connector."""
    state = connector.status.connector
    lines = _tasks_of(connector.name, connector.status, connector.progress)
    facts = (
        ("Name", connector.name),
        ("Type", connector.type),
        ("State", state.state),
        ("Worker", shorten_worker(state.worker_id)),
        ("Delivery", connector.delivery),
        ("Retries", _format_retried(connector.config)),
        ("Reason", state.trace or state.reason),
        *(("Warning", each) for each in connector.warnings),
    )
    of_tasks: dict[str, Callable[[TaskLine], str]] = {
        "Batches on average": _format_batches,
        "Bad rows": _format_bad_rows,
        "Failures": lambda line: line.trace,
    }
    return [
        FactList(facts),
        FactList(sorted(connector.config.items()), "Config"),
        TASKS.lay_out(lines),
        *(
            FactList(sorted(config.items()), f"Config of {task}")
            for task, config in (connector.tasks_config or {}).items()
        ),
        *(
            FactList(told, title)
            for title, tell in of_tasks.items()
            if (told := [(each.id, text) for each in lines if (text := tell(each))])
        ),
    ]


def tabulate_tasks(tasks: Sequence[TaskLine]) -> list[Section]:
    """Lay out tasks."""
    return [TASKS.lay_out(tasks)]


def tabulate_task(task: TaskInFull) -> list[Section]:
    """Lay out one task."""
    config = FactList(sorted(task.config.items()), f"Config of {task.id}")
    failure = [FactList([(task.id, task.trace)], "Failure")] if task.trace else []
    return [TASKS.lay_out([task]), config, *failure]


def tabulate_config_warnings(connectors: Expanded) -> list[Section]:
    """Lay out the warnings about the configs of connectors; nothing if there are none."""
    return CONFIG_WARNINGS.lay_out_any(
        ConfigWarning(name, warning)
        for name, entry in sorted(connectors.items())
        for warning in (entry.status.warnings if entry.status else ())
    )


def tabulate_config_diffs(diffs: Sequence[ConfigDiff]) -> list[Section]:
    """Lay out what configs would change."""
    return [
        CONFIG_CHANGES.lay_out(ChangedKey(each.name, it) for each in diffs for it in each.changes)
    ]


def _format_batches(task: TaskLine) -> str:
    """Return the throughput and batch durations of a task; "" if they are unknown."""
    progress = task.progress
    if progress is None or not progress.batch_ms:
        return ""
    phases = ", ".join(f"{phase} {took} ms" for phase, took in progress.batch_ms.items())
    return f"{progress.rows_per_second:,} rows/s, {decimal(progress.bytes_in)} read; {phases}"


def _format_bad_rows(task: TaskLine) -> str:
    """Return the numbers of skipped bad rows; "" if there are none."""
    progress = task.progress
    if progress is None or not progress.skipped:
        return ""
    return f"{progress.skipped} left out, {progress.dead_letters} of them kept as dead letters"


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


def _list_connectors(connectors: Expanded) -> Iterator[ConnectorLine]:
    unknown = ConnectorState("", "", None)
    for name, entry in sorted(connectors.items()):
        class_name = entry.info.config.get("connector.class", "") if entry.info else ""
        status = entry.status or ConnectorStateInfo(name, unknown, [], "")
        yield ConnectorLine(name, status, class_name.rpartition(".")[2])


def _count_running(tasks: Sequence[TaskState]) -> str:
    return f"{sum(each.state == 'RUNNING' for each in tasks)}/{len(tasks)}"


def format_lag(lag: UnreadInput | None) -> str:
    """Return the lag in records or in bytes if known, else as a number of ranges."""
    if lag is None:
        return ""
    if lag.records is not None:
        return f"{lag.records:,} records"
    return decimal(lag.bytes) if lag.bytes or not lag.ranges else f"{lag.ranges} ranges"


def _format_lag_of(progress: TaskCounts | None) -> str:
    """Return the lag of a task that has done something, which some sources do not tell."""
    if progress is None or not progress.batches:
        return ""
    return "not known" if progress.lag is None else format_lag(progress.lag)


def _format_reason(state: ConnectorState | TaskLine) -> str:
    """Return in one line the reason of a failure or a wait, and the number of restarts."""
    why = state.trace or state.reason
    line = next((each for each in why.splitlines() if each.strip()), "")
    if state.autoRestart is None:
        return line
    return "; ".join(filter(None, (line, f"restarted {state.autoRestart.count} times")))


CONNECTORS: Final = TableLayout(
    ConnectorLine,
    "NAME: name, TYPE: status.type, STATE: status.connector.state, "
    "WORKER: status.connector.worker_id, TASKS: status.tasks, CLASS: class_name, "
    "REASON: status.connector",
    {"WORKER": shorten_worker, "TASKS": _count_running, "REASON": _format_reason},
    empty="no connectors: add one with `fairlead create -f FILE`",
    brief=("REASON",),
)
TASKS: Final = TableLayout(
    TaskLine,
    "TASK: id, STATE: state, WORKER: worker_id, ROWS: progress.rows_out, "
    "BATCHES: progress.batches, LAG: progress, LAST COMMIT: progress.last_commit_ms, REASON",
    {
        "WORKER": shorten_worker,
        "LAG": _format_lag_of,
        "LAST COMMIT": format_age,
        "REASON": _format_reason,
    },
    empty="no tasks",
    folded=("REASON",),
    brief=("REASON",),
)
CONFIG_WARNINGS: Final = TableLayout(
    ConfigWarning, "CONNECTOR: connector, WARNING: warning", title="Warnings"
)
CONFIG_CHANGES: Final = TableLayout(
    ChangedKey,
    "CONNECTOR: connector, KEY: change.key, FROM: change.before, TO: change.after",
    empty="no differences",
    rigid=True,
)


def tabulate_folder(report: FolderReport) -> list[Section]:
    """Lay out how the connectors differ from the folder of files; nothing where they do not."""
    drifted = frozenset(report.drifted)
    rows = [
        (
            "create" if diff.is_new else "change",
            diff.name,
            _tell_change(diff, is_drift=diff.name in drifted),
        )
        for diff in report.to_apply
    ]
    rows += [("delete", name, "its file is gone") for name in report.to_delete]
    rows += [("error", each.connector or each.file, each.message) for each in report.errors]
    columns = ("FILES", "NAME", "DETAIL")
    return [Table(columns, rows, folded=("DETAIL",))] if rows else []


def _tell_change(diff: ConfigDiff, *, is_drift: bool) -> str:
    keys = "" if diff.is_new else " ".join(each.key for each in diff.changes)
    return f"{keys}; somebody else wrote it last" if is_drift else keys
