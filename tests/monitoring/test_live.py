"""A real Prometheus watches a node: alerts are seen to fire and to end, dashboards to have data.

These are the faults that cost least; `test_faults.py` has the others.
"""

import time
from collections.abc import Iterator

import pytest

from fairlead.actors.messages.orders import PutConnector
from fairlead_tests.cluster.node import GROUP
from fairlead_tests.monitoring.dashboards import queries
from fairlead_tests.monitoring.prometheus_server import Prometheus
from fairlead_tests.monitoring.watched_node import WatchedNode, watched_node

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("monitoring")]
NOOP = (
    "engine=noop",
    "workers=2",
    "heartbeat.interval.ms=500",
    "worker.restart.backoff.ms=100",
    "worker.restart.backoff.max.ms=100",
)

WITHOUT_SPARK = {
    "connector: Age of the last commit",
    "connector: Bad rows",
    "connector: Bytes left to read",
    "connector: Left to read",
    "connector: Nothing committed for",
    "connector: Records left to read",
    "connector: Rows of a batch",
    "connector: Time of a batch by phase",
    "connector: Who can mend it",
    "fleet: Alerts that fire",
    "fleet: Batches on JVMs",
    "fleet: Furthest behind",
    "fleet: JVMs",
    "fleet: JVMs started again",
    "fleet: Left to read",
    "fleet: Memory of JVMs",
    "fleet: Rows by lane",
    "group: Groups of Kafka's clients",
    "group: Their rebalances by cause",
    "group: Their requests",
    "group: Until waiting work is due",
}
"""The panels that a node has nothing for on which no batch runs, and no client of Kafka's is."""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WatchedNode, Prometheus]]:
    with watched_node(tmp_path_factory.mktemp("watched"), *NOOP) as (node, prometheus):
        node.up()
        node.node.put("numbers", 3)
        yield node, prometheus


def test_every_query_of_the_dashboards_is_answered(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    _, prometheus = watched
    prometheus.comes('fairlead_connector_tasks{state="running"} == 3')
    prometheus.comes("fairlead_group_heartbeats_total offset 2s")
    now = time.time()
    empty = set[str]()
    for each in queries():
        window = {"start": str(now - 30), "end": str(now), "step": "1"}
        if not prometheus.ask("query_range", query=each.expanded(), **window)["result"]:
            empty.add(each.panel)
    assert empty - WITHOUT_SPARK == set()


@pytest.mark.soak
def test_a_worker_that_is_lost_again_and_again_is_told_of_until_it_stays(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched[0].node, watched[1]
    for number in range(1, 5):
        node.hit("worker w2")
        prometheus.comes(f'fairlead_worker_losses_total{{worker="w2"}} >= {number}')
    (crash,) = prometheus.fires("FairleadWorkerCrashLoop")
    assert (crash["worker"], crash["severity"]) == ("w2", "page")
    assert crash["summary"] == "Worker w2 is lost again and again"
    prometheus.ends("FairleadWorkerCrashLoop")


def test_work_that_no_worker_can_take_is_told_of_until_it_is_gone(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched[0].node, watched[1]
    node.command(PutConnector(GROUP, "flights", {"tasks.max": "1", "placement.tags": "gpu"}))
    (alert,) = prometheus.fires("FairleadUnplaceable")
    assert alert["summary"] == "No worker can take 1 of the work of flights"
    node.delete("flights")
    prometheus.ends("FairleadUnplaceable")


def test_a_node_that_is_down_is_told_of_until_it_is_up(
    watched: tuple[WatchedNode, Prometheus],
) -> None:
    node, prometheus = watched
    assert node.node.end() == 0
    (alert,) = prometheus.fires("FairleadNodeDown")
    assert alert["summary"] == f"Node {node.address} does not answer"
    node.up()
    prometheus.ends("FairleadNodeDown")
