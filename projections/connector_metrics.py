"""The connectors of the groups as Prometheus sees them."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from ..events.model import ErrorClass, Resource, RunState
from .group_metrics import MS, Groups, counter, gauge
from .views import (
    Progress,
    connector_names,
    count_errors,
    resource_status,
    run_states,
    unplaceable_resources,
)

OF_CONNECTOR = ("group", "connector")


def runs(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the states of connectors and tasks."""
    tasks = gauge(
        "connector_tasks", "Tasks of the connector by run state.", "group", "connector", "state"
    )
    own = gauge(
        "connector_state", "1 for the run state of the connector itself.", *OF_CONNECTOR, "state"
    )
    nowhere = gauge(
        "connector_unplaceable_resources",
        "The connector and those of its tasks that no member can take.",
        "group",
        "connector",
    )
    hindered = gauge(
        "connector_hindered_resources",
        "The connector and those of its tasks that wait or have failed, by who can mend it.",
        "group",
        "connector",
        "error",
    )
    for each in groups:
        left_out = Counter(resource.connector for resource in unplaceable_resources(each.group))
        for name in connector_names(each.group):
            nowhere.add_metric([each.group.group_id, name], left_out[name])
            for state, count in run_states(each.group, name).items():
                tasks.add_metric([each.group.group_id, name, state.value.lower()], count)
            now = resource_status(each.group, Resource(name)).state
            for state in RunState:
                own.add_metric([each.group.group_id, name, state.value.lower()], now is state)
            found = count_errors(each.group, name)
            for error in ErrorClass:
                hindered.add_metric([each.group.group_id, name, error.value], found[error])
    yield from (tasks, own, nowhere, hindered)


def progress(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the rows, bytes and lag."""
    labels = OF_CONNECTOR
    rows_in = counter("connector_rows_in", "Rows read in batches that count.", *labels)
    rows_out = counter("connector_rows_out", "Rows written in batches that count.", *labels)
    bytes_in = counter("connector_in_bytes", "Bytes read in batches that count.", *labels)
    out = counter("connector_out_bytes", "Bytes written in batches that count.", *labels)
    lag = gauge(
        "connector_lag_bytes",
        "Bytes that are left to read, since the tasks planned their last batches.",
        *labels,
    )
    told = "Records that were left to read, where the source knows it."
    records = gauge("connector_lag_records", told, *labels)
    unread = {
        (each.group.group_id, name): found for each in groups for name, found in each.unread.items()
    }
    for values, progress in _connectors(groups):
        rows_in.add_metric(values, progress.rows_in)
        rows_out.add_metric(values, progress.rows_out)
        bytes_in.add_metric(values, progress.cost.bytes_in)
        out.add_metric(values, progress.bytes_out)
        left = progress.lag if progress.last_commit_ms else None
        left = unread.get((values[0], values[1]), left)
        if left is not None:
            lag.add_metric(values, left.bytes)
            if left.records is not None:
                records.add_metric(values, left.records)
    yield from (rows_in, rows_out, bytes_in, out, lag, records)


def batches(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the batches and commits."""
    labels = OF_CONNECTOR
    batches = counter("connector_batches", "Batches that count.", *labels)
    told = "Time that batches which count took, by phase."
    seconds = counter("connector_batch_seconds", told, *labels, "phase")
    told = "Batches that count and are not in place yet."
    waiting = gauge("connector_unpublished_batches", told, *labels)
    told = "When a batch was committed last."
    last = gauge("connector_last_commit_timestamp_seconds", told, *labels)
    told = "The last commit of that task of the connector which has committed nothing for longest."
    never = "Tasks of the connector that never committed a batch."
    uncommitted = gauge("connector_uncommitted_tasks", never, *labels)
    oldest = gauge("connector_oldest_commit_timestamp_seconds", told, *labels)
    for values, progress in _connectors(groups):
        batches.add_metric(values, progress.batches)
        for phase, took_ms in progress.cost.phases_ms.items():
            seconds.add_metric([*values, phase], took_ms / MS)
        waiting.add_metric(values, progress.unpublished)
        if progress.last_commit_ms:
            last.add_metric(values, progress.last_commit_ms / MS)
        uncommitted.add_metric(values, progress.uncommitted)
        if progress.oldest_commit_ms:
            oldest.add_metric(values, progress.oldest_commit_ms / MS)
    yield from (batches, seconds, waiting, last, oldest, uncommitted)


def _connectors(groups: Groups) -> Iterator[tuple[list[str], Progress]]:
    """Yield the labels of each connector, with its progress."""
    for each in groups:
        for connector, progress in each.progress.items():
            yield [each.group.group_id, connector], progress


def restarts(groups: Groups) -> Iterator[Metric]:
    """Yield the family of restarts."""
    told = "Restarts of the connector and its tasks after failures, since this process started."
    family = counter("connector_restarts", told, *OF_CONNECTOR)
    for each in groups:
        for name in connector_names(each.group):
            family.add_metric([each.group.group_id, name], each.watched.restarts[name])
    yield family


def bad_rows(groups: Groups) -> Iterator[Metric]:
    """Yield the families of the bad rows."""
    labels = ("group", "connector", "task")
    skipped = counter("task_skipped_rows", "Bad rows that a task left out.", *labels)
    kept = counter("task_dead_letters", "Those of them that are dead letters.", *labels)
    for each in groups:
        for task, progress in each.skipping.items():
            values = [each.group.group_id, task.connector, str(task.task)]
            skipped.add_metric(values, progress.skipped)
            kept.add_metric(values, progress.dead_letters)
    yield from (skipped, kept)
