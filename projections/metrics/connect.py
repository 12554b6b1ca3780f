"""The metrics of Kafka Connect's own classes, by the names that users of Connect know.

Kafka has them in JMX. Prometheus's exporter for that names a metric, unless a config says
otherwise, after the domain, the type and the attribute, with the bean's other properties as labels:
`kafka_connect_source_task_metrics_source_record_poll_rate{connector="orders",task="0"}`. These are
the same names. A worker here is a process of the node, where Connect's is scraped by itself: so its
name is a label as well. Percentages of a worker cannot be added up, and are left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from prometheus_client.metrics_core import Metric

WORKER: Final = "worker"
_TOTAL: Final = "-total"
_OF_WORKERS: Final = "connect-worker-metrics"
_FOREIGN: Final = re.compile(r"\W", re.ASCII)


class ConnectBean(NamedTuple):
    """A bean of JMX with its numbers, at a worker of this node."""

    worker: str
    domain: str
    type: str
    labels: Mapping[str, str]
    values: Mapping[str, float]


def connect_families(beans: Sequence[ConnectBean]) -> Iterator[Metric]:
    """Yield the families of all beans; what several JVMs of a worker tell of it is added up."""
    samples: dict[tuple[str, bool, str], dict[tuple[tuple[str, str], ...], float]] = {}
    for bean in beans:
        labels = [(_plain(key), value) for key, value in bean.labels.items()]
        spelled = (*sorted(labels), (WORKER, bean.worker))
        for name, value in bean.values.items():
            if bean.type == _OF_WORKERS and name.endswith("-percentage"):
                continue
            is_total = name.endswith(_TOTAL)
            family = _plain(f"{bean.domain}_{bean.type}_{name.removesuffix(_TOTAL)}")
            text = f"{name} of {bean.type}, by Kafka"
            values = samples.setdefault((family, is_total, text), {})
            values[spelled] = values.get(spelled, 0.0) + value
    for (family, is_total, text), values in sorted(samples.items()):
        yield _family(family, text, values, is_total=is_total)


def _family(
    name: str, text: str, values: Mapping[tuple[tuple[str, str], ...], float], *, is_total: bool
) -> Metric:
    family = Metric(name, text, "counter" if is_total else "gauge")
    for spelled, value in values.items():  # their labels may have other names
        family.add_sample(f"{name}_total" if is_total else name, dict(spelled), value)
    return family


def _plain(name: str) -> str:
    return _FOREIGN.sub("_", name)
