"""Metrics of Kafka Connect's own classes, by the names that JMX's exporter gives them."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlead.projections.metrics.connect import ConnectBean
from fairlead.projections.metrics.exposition import Exposition
from fairlead.projections.metrics.node import NodeFigures
from fairlead.projections.metrics.processes import RequestMetrics

TASK = {"task": "0", "connector": 'a "b"'}
SOURCE = ConnectBean("w1", "kafka.connect", "source-task-metrics", TASK, {"poll-total": 7.0})


def _shown(*beans: ConnectBean, accept: str = "") -> dict[str, list[tuple[dict[str, str], float]]]:
    """Return the samples of Kafka's families by their names."""
    text, _ = Exposition("1.0", RequestMetrics()).write(accept, (), node=NodeFigures(connect=beans))
    lines = (each for each in text.decode().splitlines(keepends=True) if "kafka_" in each)
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families("".join(lines)):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text"])
def test_names_have_domain_type_and_attribute_and_the_worker_is_a_label(accept: str) -> None:
    consumer = ConnectBean(
        "w2", "kafka.consumer", "consumer-metrics", {"client-id": "c"}, {"lag-max": 1.5}
    )
    assert _shown(SOURCE, consumer, accept=accept) == {
        "kafka_connect_source_task_metrics_poll_total": [({**TASK, "worker": "w1"}, 7.0)],
        "kafka_consumer_consumer_metrics_lag_max": [({"client_id": "c", "worker": "w2"}, 1.5)],
    }


def test_what_several_jvms_of_a_worker_tell_is_added_up_but_no_percentages() -> None:
    values = {"task-count": 2.0, "task-startup-success-percentage": 1.0}
    beans = [
        ConnectBean(worker, "kafka.connect", "connect-worker-metrics", {}, values)
        for worker in ("w1", "w1", "w2")
    ]
    assert _shown(*beans) == {
        "kafka_connect_connect_worker_metrics_task_count": [
            ({"worker": "w1"}, 4.0),
            ({"worker": "w2"}, 2.0),
        ]
    }


def test_beans_of_a_type_may_have_other_labels() -> None:
    beans = [
        ConnectBean("w1", "debezium.postgres", "connector-metrics", labels, {"QueueTotal": 1.0})
        for labels in ({"server": "shop"}, {"context": "streaming", "server": "shop"})
    ]
    text, _ = Exposition("1.0", RequestMetrics()).write("", (), node=NodeFigures(connect=beans))
    shown = [each for each in text.decode().splitlines() if each.startswith("debezium")]
    assert shown == [
        'debezium_postgres_connector_metrics_QueueTotal{server="shop",worker="w1"} 1.0',
        'debezium_postgres_connector_metrics_QueueTotal{context="streaming",server="shop",'
        'worker="w1"} 1.0',
    ]


def test_without_plugins_there_are_no_series_of_theirs() -> None:
    assert _shown() == {}
