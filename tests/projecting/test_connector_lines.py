"""The lines of connectors and tasks: both formats, kept while nothing changes, with any name."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse

from fairlead.actors.messages.members import ReportStatus, StatusUpdate
from fairlead.events.commits import Cost, Lag
from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.metrics.connectors import ConnectorLines
from fairlead.projections.metrics.families import GroupFigures
from fairlead.projections.views import Progress
from fairlead_tests.decider import Decider

NOW_MS = 100_000
ODD = 'a "b"\\c\nd'


def figures(
    configured: str = "A A-0 A-1", tasks: Mapping[int, Progress] | None = None
) -> GroupFigures:
    """Return a group whose task A-0 runs, and A-1 has failed."""
    decider = Decider()
    decider.configure(configured)
    decider.join("W1")
    decider.settle()
    updates = (
        StatusUpdate(Resource("A", 0), Token(1, 1), RunState.RUNNING, 0),
        StatusUpdate(Resource("A", 1), Token(1, 1), RunState.FAILED, 0, "config: no such key"),
    )
    decider.command(ReportStatus("connect", "W1", updates))
    of_tasks = tasks or {0: Progress(1, 10, 9, 90, 50_000, lag=Lag(1, 30, 3), cost=Cost(100))}
    return GroupFigures(
        decider.group, {}, {}, {"A": of_tasks[0]}, {"A": of_tasks}, caught_up={"A": 40_000}
    )


def samples(text: str, *, is_open: bool = False) -> dict[tuple[str, str], float]:
    """Return the samples of a page by name and labels, without those of the connector."""
    families = parse_open(text + "# EOF\n") if is_open else parse(text)  # type: ignore[no-untyped-call]
    return {
        (
            sample.name.removeprefix("fairlead_"),
            ",".join(v for k, v in sample.labels.items() if k not in {"group", "connector"}),
        ): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.mark.parametrize("is_open", [False, True])
def test_each_format_has_all_samples_of_a_connector(is_open: bool) -> None:
    text = ConnectorLines().write([figures()], NOW_MS, is_open=is_open)
    phases = ("plan", "wait", "run", "commit", "publish")
    assert samples(text, is_open=is_open) == {
        ("connector_configured_tasks", ""): 2,
        ("connector_tasks", "running"): 1,
        ("connector_tasks", "failed"): 1,
        ("connector_state", "unassigned"): 1,
        ("connector_unplaceable_resources", ""): 0,
        ("connector_hindered_resources", "config"): 1,
        ("connector_rows_in_total", ""): 10,
        ("connector_rows_out_total", ""): 9,
        ("connector_in_bytes_total", ""): 100,
        ("connector_out_bytes_total", ""): 90,
        ("connector_batches_total", ""): 1,
        **{("connector_batch_seconds_total", phase): 0 for phase in phases},
        ("connector_unpublished_batches", ""): 0,
        ("connector_last_commit_timestamp_seconds", ""): 50,
        ("connector_uncommitted_tasks", ""): 0,
        ("connector_lag_bytes", ""): 30,
        ("connector_lag_records", ""): 3,
        ("connector_lag_seconds", ""): 60,
        ("connector_restarts_total", ""): 0,
    }


def test_series_of_tasks_are_written_if_they_are_wanted() -> None:
    text = ConnectorLines(has_tasks=True).write([figures()], NOW_MS, is_open=False)
    told = samples(text)
    assert {key: value for key, value in told.items() if key[0].startswith("task_")} == {
        ("task_state", "0,running,w1"): 1,
        ("task_state", "1,failed,w1"): 1,
        ("task_rows_in_total", "0"): 10,
        ("task_rows_out_total", "0"): 9,
        ("task_in_bytes_total", "0"): 100,
        ("task_out_bytes_total", "0"): 90,
        ("task_batches_total", "0"): 1,
        ("task_last_commit_timestamp_seconds", "0"): 50,
        ("task_lag_bytes", "0"): 30,
        ("task_lag_records", "0"): 3,
    }


def test_a_connector_may_have_any_name() -> None:
    decider = Decider()
    names = (ODD, "ü" * 100)
    decider.group.connectors |= {
        name: replace(figures().group.connectors["A"], connector=name) for name in names
    }
    text = ConnectorLines().write([GroupFigures(decider.group, {}, {}, {})], 0, is_open=False)
    named = {
        sample.labels["connector"]
        for family in parse(text)
        for sample in family.samples
        if sample.name == "fairlead_connector_configured_tasks"
    }
    assert named == {*names}


def test_a_page_changes_with_progress_and_with_what_a_look_has_found() -> None:
    lines, first = ConnectorLines(), figures()
    before = lines.write([first], NOW_MS, is_open=False)
    assert lines.write([first], NOW_MS, is_open=False) == before
    later = replace(first, progress={"A": replace(first.progress["A"], rows_in=11)})
    assert samples(lines.write([later], NOW_MS, is_open=False))["connector_rows_in_total", ""] == 11
    looked = replace(first, unread={"A": Lag(0, 0, 0)})
    at_rest = samples(lines.write([looked], NOW_MS, is_open=False))
    lags = ("connector_lag_bytes", "connector_lag_records", "connector_lag_seconds")
    assert [at_rest[name, ""] for name in lags] == [0, 0, 0]
    assert lines.write([], NOW_MS, is_open=False).count("\n") == 2 * before.count("# HELP")


def test_a_task_that_is_no_more_has_no_series_though_its_connector_has_read_as_much() -> None:
    lines, tasks = ConnectorLines(has_tasks=True), dict.fromkeys((0, 1), Progress(1, 10))
    group = figures(tasks=tasks).group
    of = GroupFigures(group, {}, {}, {"A": Progress(2, 20)}, {"A": tasks})
    before = samples(lines.write([of], NOW_MS, is_open=False))
    split = group.task_configs["A"]
    group.task_configs["A"] = replace(split, tasks=split.tasks[:1])
    after = samples(lines.write([of], NOW_MS, is_open=False))
    rows = [key for key in before.keys() - after.keys() if key[0] == "task_rows_in_total"]
    assert rows == [("task_rows_in_total", "1")]


def test_a_source_that_cannot_tell_its_lag_has_none() -> None:
    of = figures(tasks={0: Progress(1, 10, 9, 90, 50_000, lag=None)})
    told = samples(ConnectorLines().write([of], NOW_MS, is_open=False))
    assert not [name for name, _ in told if "lag" in name]
