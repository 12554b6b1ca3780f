"""States that somebody waits for, and what connectors and workers lack to be in them."""

from enum import StrEnum

from ..connectors import ConnectorState, ConnectorStateInfo, TaskState
from ..node import WorkerDescription
from ..progress import ConnectorProgressInfo, TaskProgressInfo


class Awaited(StrEnum):
    """The states that can be waited for."""

    RUNNING = "running"
    """The connector runs, and all its tasks, of which there is one at least; or a worker."""
    PAUSED = "paused"
    STOPPED = "stopped"
    """It is stopped, and all that it committed is published."""
    FAILED = "failed"
    """The connector has failed, or one of its tasks."""
    CAUGHT_UP = "caught-up"
    """It runs, and had nothing left to read when its tasks last planned a batch."""
    DELETED = "deleted"
    DRAINED = "drained"
    """A worker has no work."""

    def describe(self, *, is_so: bool) -> str:
        """Return the state as the end of a sentence: `is running`, `has not failed`."""
        negation = "" if is_so else " not"
        if self is Awaited.FAILED:
            return f"has{negation} failed"
        return f"is{negation} {self.value.replace('-', ' ')}"


def describe_lack(status: ConnectorStateInfo, awaited: Awaited) -> str:
    """Return what a connector does instead of being in a state; "" if it is in it.

    One that is caught up runs first of all: the rest is said by its progress.
    """
    states: tuple[ConnectorState | TaskState, ...] = (status.connector, *status.tasks)
    if awaited is Awaited.FAILED:
        return "" if any(each.state == "FAILED" for each in states) else status.connector.state
    is_running = awaited in {Awaited.RUNNING, Awaited.CAUGHT_UP}
    wanted = "RUNNING" if is_running else awaited.value.upper()
    for state in states if awaited is not Awaited.STOPPED else states[:1]:
        if state.state != wanted:
            return f"{state.state} {state.trace or state.reason}".strip()
    return "it has no tasks yet" if is_running and not status.tasks else ""


def describe_backlog(progress: ConnectorProgressInfo) -> str:
    """Return what the tasks of a connector have left to read or to publish; "" for nothing.

    A task that has never planned a batch has had nothing to read, if another one has.
    """
    active = [each for each in progress.tasks if each.batches or each.lag is not None]
    if not active:
        return "no task has read anything yet"
    behind = [(each.id, text) for each in active if (text := _describe_rest(each))]
    return ", ".join(f"{progress.name}-{number} has {text}" for number, text in behind)


def _describe_rest(task: TaskProgressInfo) -> str:
    if task.lag is None:
        return "an unknown lag"
    if task.lag.records:
        return f"{_count(task.lag.records, 'record')} left to read"
    if task.lag.ranges or task.lag.bytes:
        return f"{_count(task.lag.bytes, 'byte')} left to read"
    return f"batches to publish: {task.unpublished}" if task.unpublished else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def work_of(worker: WorkerDescription | None) -> list[str]:
    """Return the ids of all that a worker has, and of what it is giving up."""
    member = worker.member if worker else None
    return [each.id for each in (*member.assigned, *member.pending_revocation)] if member else []
