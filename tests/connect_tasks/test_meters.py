"""Metrics of Kafka's own classes in /metrics, and what tasks have read, as for all other tasks."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SAMPLE = re.compile(r"(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)")


def _samples(node: ConnectNode, connector: str) -> dict[str, float]:
    """Return what Kafka's own metrics say of a connector or its clients, by name."""
    found: dict[str, float] = {}
    for line in node.rest.get("/metrics").text.splitlines():
        sample = SAMPLE.fullmatch(line)
        if sample and line.startswith("kafka_") and _is_about(sample["labels"], connector):
            found[sample["name"]] = float(sample["value"])
    return found


def _is_about(labels: str, connector: str) -> bool:
    return f'"{connector}"' in labels or f'-{connector}-0"' in labels


def _progress(node: ConnectNode, name: str) -> Mapping[str, Any]:
    (task,) = node.rest.get(f"/connectors/{name}/progress").json()["tasks"]
    found: Mapping[str, Any] = task
    return found


def _row(node: ConnectNode, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = node.rest.get("/state").json()["connectors"][name]
    return found


def test_metrics_of_a_source_have_connects_names_and_go_with_their_task(
    node: ConnectNode, tmp_path: Path
) -> None:
    source, name = tmp_path / "in.txt", "metered-source"
    source.write_text("a\nb\nc\n")
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": name}
    node.create(name, {**config, **ONE_REPLICA})
    total = "kafka_connect_source_task_metrics_source_record_write_total"
    until(lambda: _samples(node, name).get(total) == 3, "three records are counted")
    found = _samples(node, name)
    assert found["kafka_connect_source_task_metrics_source_record_poll_total"] == 3
    assert found["kafka_connect_connector_task_metrics_batch_size_max"] == 3
    assert found["kafka_connect_task_error_metrics_total_record_failures"] == 0
    # Rates need a window of time, and the metrics of clients are looked at every ten seconds.
    wanted = {
        "kafka_connect_source_task_metrics_source_record_poll_rate",
        "kafka_connect_source_task_metrics_poll_batch_avg_time_ms",
        "kafka_connect_connector_task_metrics_running_ratio",
        "kafka_connect_connector_task_metrics_offset_commit_success_percentage",
        "kafka_producer_producer_metrics_record_send_total",
    }
    until(lambda: wanted <= _samples(node, name).keys(), "the others are there, too")
    text = node.rest.get("/metrics").text
    (line,) = re.findall(rf"^{total}\{{.*{name}.*$", text, re.MULTILINE)
    assert re.search(rf'\{{connector="{name}",task="0",worker="[^"]+"\}} 3\.0$', line)
    assert f"# TYPE {total} counter\n" in text
    assert "kafka_connect_connect_worker_metrics_task_count{" in text
    until(lambda: _progress(node, name)["rows_out"] == 3, "rows are in the progress")
    assert _progress(node, name)["lag"] is None
    node.turn(name, "stop")
    until(lambda: not _samples(node, name), "the series are gone")
    node.delete(name)


def test_a_sink_has_rows_and_the_lag_of_its_consumer(
    node: ConnectNode, topics: Topics, tmp_path: Path
) -> None:
    topic, target, name = topics.make("me.tered", 2), tmp_path / "out.txt", "metered-sink"
    topics.write(topic, [b"%d" % each for each in range(200)])
    config = {
        "connector.class": SINK,
        "file": str(target),
        "topics": topic,
        "consumer.override.max.poll.records": "10",
        "transforms": "none",
        "transforms.none.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.none.predicate": "never",
        "predicates": "never",
        "predicates.never.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    }
    node.create(name, config)
    lag = {"ranges": 0, "bytes": 0, "records": 0}

    def is_done() -> bool:
        found = _progress(node, name)
        return (found["rows_in"], found["rows_out"], found["lag"]) == (200, 200, lag)

    until(is_done, "all rows are counted, and none is left")
    found = _samples(node, name)
    assert found["kafka_connect_sink_task_metrics_sink_record_send_total"] == 200
    assert found["kafka_connect_sink_task_metrics_partition_count"] == 2
    left = "kafka_consumer_consumer_fetch_manager_metrics_records_lag"
    until(lambda: _samples(node, name).get(left) == 0, "its client says so, a while later")
    assert f'fairlead_connector_rows_in_total{{group="connect",connector="{name}"}} 200' in (
        node.rest.get("/metrics").text
    )
    until(lambda: _row(node, name)["behind_ms"] == 0, "the page knows that it is not behind")
    node.delete(name)


@pytest.mark.soak  # the test above has its lag, and plugins/test_bodies.py what the status says
def test_a_sink_that_hangs_shows_its_lag_and_is_seen_as_one_that_commits_nothing(
    node: ConnectNode, topics: Topics, tmp_path: Path
) -> None:
    topic, flag, name = topics.make("hanging"), tmp_path / "flag", "metered-hanging"
    flag.touch()
    topics.write(topic, [b"%d" % each for each in range(50)])
    config = {"connector.class": "bad.BadSink", "topics": topic, "does": "put blocks"}
    config |= {"while": str(flag), "consumer.override.max.poll.records": "10"}
    node.create(name, config)

    def lag() -> object:
        return (_progress(node, name)["lag"] or {}).get("records")

    until(lambda: lag() == 40, "what it has not read is its lag")
    committed = _progress(node, name)["last_commit_ms"]
    total = "kafka_consumer_consumer_fetch_manager_metrics_records_lag"
    until(lambda: _samples(node, name).get(total) == 40, "the metrics have it as well")
    until(
        lambda: "its put has not come back" in node.status(name)["tasks"][0].get("reason", ""),
        "the status says what it does",
    )
    assert _progress(node, name)["last_commit_ms"] == committed
    flag.unlink()
    until(lambda: lag() == 0, "it has read the rest")
    node.delete(name)


def test_records_that_are_left_out_are_counted_with_their_dead_letters(
    node: ConnectNode, topics: Topics, tmp_path: Path
) -> None:
    topic, letters, name = topics.make("bad-rows"), topics.make("bad-letters"), "metered-letters"
    topics.write(topic, [b'{"a": 1}', b"no JSON", b'{"a": 2}'])
    config = {
        "connector.class": SINK,
        "file": str(tmp_path / "out.txt"),
        "topics": topic,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    node.create(name, config)

    def counted() -> tuple[int, ...]:
        found = _progress(node, name)
        return found["rows_in"], found["rows_out"], found["skipped"], found["dead_letters"]

    until(lambda: counted() == (3, 2, 1, 1), "the bad row is counted")
    node.delete(name)


def test_rows_are_counted_on_over_a_restart(node: ConnectNode, tmp_path: Path) -> None:
    source, name = tmp_path / "in.txt", "metered-again"
    source.write_text("a\nb\n")
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": name}
    node.create(name, {**config, **ONE_REPLICA})
    until(lambda: _progress(node, name)["rows_out"] == 2, "two rows are counted")
    node.rest.post(f"/connectors/{name}/tasks/0/restart")
    with source.open("a") as file:
        file.write("c\n")
    until(lambda: _progress(node, name)["rows_out"] == 3, "the third row is counted")
    node.delete(name)
