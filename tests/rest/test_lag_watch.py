"""The lag of connectors that do not run: their source is looked at, and it grows with it."""

import time
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from rest.conftest import RestApi
from rest.test_metrics_page import value

from fairlead.events.commits import Cost, Document, Lag
from fairlead.events.model import Resource, RunState
from fairlead.projections.views import Progress
from fairlead.runtime.interfaces.rest.validation.external_checks import (
    MOST_ABANDONED,
    ExternalChecks,
)
from fairlead.runtime.interfaces.rest.watch.lag import LagWatch, with_bytes
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import AccessLimits, ExternalAccess
from fairlead.runtime.pipeline.spi.offsets import PartitionOffset
from fairlead.runtime.pipeline.stores.kafka.source.topics import lag_of
from fairlead_tests.cluster.node import eventually

LAST_COMMIT = "fairlead_connector_last_commit_timestamp_seconds"


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    folder.mkdir()
    (folder / "1.csv").write_text("a\n1\n")
    return folder


def put(api: RestApi, landing: Path) -> None:
    config = {
        "connector.class": "SparkPipeline",
        "source.path": str(landing),
        "source.format": "csv",
        "sink.path": str(landing.with_name("lake")),
        "sink.format": "parquet",
        "tasks.max": "1",
    }
    made = api.client.put("/connectors/a/config", json=config)
    assert made.status_code == 201, made.text
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"})


@pytest.mark.parametrize("how", ["pause", "stop"])
def test_the_lag_of_a_connector_at_rest_grows_while_its_source_does(
    api: RestApi, landing: Path, how: str
) -> None:
    put(api, landing)
    watch = LagWatch(api.service)
    watch.look()
    assert value(api, "fairlead_connector_lag_bytes", connector="a") is None, "it runs"
    api.client.put(f"/connectors/a/{how}")
    watch.look()
    assert value(api, "fairlead_connector_lag_bytes", connector="a") == 4
    (landing / "2.csv").write_text("a\n2\n3\n")
    watch.look()
    assert value(api, "fairlead_connector_lag_bytes", connector="a") == 10
    (landing / "1.csv").unlink()
    (landing / "2.csv").unlink()
    landing.rmdir()
    watch.look()
    assert value(api, "fairlead_connector_lag_bytes", connector="a") is None, "nobody knows"


def test_what_a_look_has_found_counts_only_while_the_connector_is_at_rest(
    api: RestApi, landing: Path
) -> None:
    put(api, landing)
    api.client.put("/connectors/a/pause")
    LagWatch(api.service).look()
    assert value(api, "fairlead_connector_lag_bytes", connector="a") == 4
    api.client.put("/connectors/a/resume")
    assert value(api, "fairlead_connector_lag_bytes", connector="a") is None


def test_a_source_beyond_what_the_node_may_reach_is_not_looked_at(
    api: RestApi, landing: Path
) -> None:
    put(api, landing)
    api.client.put("/connectors/a/pause")
    elsewhere = ExternalAccess(AccessLimits("", (str(landing.with_name("allowed")),)))
    LagWatch(replace(api.service, outside=ExternalChecks(lambda: elsewhere))).look()
    assert value(api, "fairlead_connector_lag_bytes", connector="a") is None


def test_a_source_that_hangs_is_looked_at_once_and_again_when_that_has_ended(
    api: RestApi, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(api, landing)
    api.client.put("/connectors/a/pause")
    begun, end, lag = [0], Event(), SparkPipeline.lag

    def hang(*given: Any) -> Lag | None:
        begun[0] += 1
        end.wait(30)
        return lag(*given)

    monkeypatch.setattr(SparkPipeline, "lag", hang)
    checks = ExternalChecks(lambda: ExternalAccess(AccessLimits("")), seconds=0.01)
    watch = LagWatch(replace(api.service, outside=checks))
    for _ in range(MOST_ABANDONED + 1):  # else nothing of other configs were looked at any more
        watch.look()
    assert begun == [1]
    assert value(api, "fairlead_connector_lag_bytes", connector="a") is None
    end.set()
    checks._seconds = 30

    def is_told() -> bool:
        watch.look()
        return value(api, "fairlead_connector_lag_bytes", connector="a") == 4

    eventually(is_told, "the source is looked at again")


def test_a_task_that_has_failed_counts_as_one_that_does_not_run(
    api: RestApi, landing: Path
) -> None:
    put(api, landing)
    watch, task = LagWatch(api.service), Resource("a", 0)
    for state, lag in ((RunState.FAILED, 4), (RunState.RUNNING, None)):
        api.group.ask("report", task, state)
        watch.look()
        assert value(api, "fairlead_connector_lag_bytes", connector="a") == lag


def test_a_connector_that_was_behind_and_commits_nothing_is_looked_at_although_it_runs(
    api: RestApi, landing: Path
) -> None:
    put(api, landing)
    watch, task = LagWatch(api.service), Resource("a", 0)
    lag = "fairlead_connector_lag_bytes"
    api.group.ask("commit", task, 0, 10, 9)
    committed_ms = 1000 * (value(api, LAST_COMMIT, connector="a") or 0)
    assert value(api, lag, connector="a") == 20, "by its last plan"
    watch.look()
    assert value(api, lag, connector="a") == 4
    (landing / "1.csv").unlink()
    watch.look()
    assert value(api, lag, connector="a") == 0, "what it had to read is gone"
    api.group.ask("pass_time", time.time_ns() // 1_000_000 - int(committed_ms))
    api.group.ask("commit", task, 1, 10, 9)
    watch.look()
    assert value(api, lag, connector="a") == 20, "it has committed just now"


def test_records_of_kafka_are_counted_from_the_offsets_to_the_ends() -> None:
    def at(partition: int, offset: int | None) -> PartitionOffset:
        of: Document = {"kafka_topic": "t", "kafka_partition": partition}
        return PartitionOffset(of, None if offset is None else {"kafka_offset": offset})

    ends = [at(0, 10), at(1, 20), at(2, 5)]
    assert lag_of([at(0, 4), at(1, 25)], ends) == Lag(11, 0, 11)
    assert lag_of([], ends) is None
    assert with_bytes(Lag(11, 0, 11), Progress()) == Lag(11, 0, 11)
    done = Progress(rows_in=10, cost=Cost(bytes_in=45))
    assert with_bytes(Lag(11, 0, 11), done) == Lag(11, 49, 11)
