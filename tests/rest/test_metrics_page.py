import asyncio
import os
import time
from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families as parse
from rest.conftest import RestApi

from fairlead.actors.messages.commands import Traffic
from fairlead.actors.shards.figures import FiguresFile, WorkPhase
from fairlead.events.log.process import process_of
from fairlead.events.model import Resource
from fairlead.runtime.cluster.figures import GROUP, SHARD, figures_file
from fairlead.runtime.cluster.node_files import (
    EngineFile,
    SlowProcess,
    engine_file,
    write_engine,
    write_slow,
)
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.commands.service import KeptAnswer
from fairlead.runtime.pipeline.engines.engine import JvmHeap
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.gateway import FakeGateway

HEAP = JvmHeap(10, 20, 30, 500)


def value(api: RestApi, name: str, **labels: str) -> float | None:
    page = api.client.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=")
    found = [
        sample.value
        for family in parse(page.text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return found[0] if found else None


def test_rows_and_rebalances_are_those_of_the_logs(api: RestApi) -> None:
    api.client.put("/connectors/a/config", json={"connector.class": "Locked"})
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"}, {"n": "1"})
    api.group.ask("commit", Resource("a", 0), 0, 10, 9)
    api.group.ask("commit", Resource("a", 0), 1, 10, 9)
    api.group.ask("commit", Resource("a", 1), 0, 5, 5)
    assert value(api, "fairlead_connector_rows_in_total", connector="a") == 25
    assert value(api, "fairlead_connector_rows_out_total", connector="a") == 23
    assert value(api, "fairlead_connector_batches_total", connector="a") == 3
    assert value(api, "fairlead_connector_unpublished_batches", connector="a") == 3
    assert value(api, "fairlead_group_rebalances_total", cause="member-joined") == 1
    assert value(api, "fairlead_group_rebalances_total", cause="tasks-changed") == 1
    api.group.ask("seat", "w2")
    assert value(api, "fairlead_group_rebalances_total", cause="member-joined") == 2
    size = value(api, "fairlead_log_size_bytes", log="control")
    assert size is not None
    assert size > 0


def test_requests_are_counted_by_their_template(api: RestApi) -> None:
    for name in ("a", "b", "c"):
        api.client.get(f"/connectors/{name}")
    api.client.get("/nowhere")
    labels = {"method": "GET", "route": "/connectors/{connector}", "code": "404"}
    assert value(api, "fairlead_rest_requests_total", **labels) == 3
    assert value(api, "fairlead_rest_requests_total", route="unmatched", code="404") == 1


class SilentTraffic(FakeGateway):
    """A gateway to a group whose actor does not say how many heartbeats it took."""

    async def traffic(self, group_id: str) -> Traffic:
        await asyncio.sleep(3600)
        return await super().traffic(group_id)


def test_a_scrape_does_not_wait_for_the_groups_actor(api: RestApi) -> None:
    service = replace(api.service, commands=SilentTraffic(None), traffic=KeptAnswer())
    page = Client(make_app(service)).get("/metrics").text
    assert 'fairlead_group_epoch{group="connect"}' in page
    assert "fairlead_group_heartbeats_total{" not in page


def test_the_page_has_the_jvms_and_the_disk(api: RestApi) -> None:
    run_folder = api.data_dir / "run"
    run_folder.mkdir(exist_ok=True)
    me = process_of(os.getpid())
    write_engine(engine_file(run_folder, "w1"), EngineFile(me, 12, "running", 3, "", HEAP))
    write_engine(engine_file(run_folder), EngineFile(me, 13, "starting", 1, "waiting"))
    assert value(api, "fairlead_engine_up", worker="w1") == 1
    assert value(api, "fairlead_engine_restarts_total", worker="w1") == 3
    assert value(api, "fairlead_engine_heap_used_bytes", worker="w1") == 10
    assert value(api, "fairlead_engine_gc_seconds_total", worker="w1") == 0.5
    assert value(api, "fairlead_engine_heap_used_bytes", worker="shared") is None
    assert value(api, "fairlead_engine_up", worker="shared") == 0
    assert value(api, "fairlead_engine_restarts_total", worker="shared") == 1
    told = api.client.get("/health").json()["message"]
    assert told.endswith("the JVM of the workers is not up, its tasks wait for it: waiting")
    assert (value(api, "fairlead_disk_free_bytes", folder="data") or 0) > 1 << 20


def test_the_page_has_what_coordinators_count_and_which_processes_are_silent(api: RestApi) -> None:
    run_folder = api.data_dir / "run"
    for kind, name in ((GROUP, "a b"), (SHARD, "0")):
        figures = FiguresFile(figures_file(run_folder / "metrics", kind, name))
        figures.begin(0.5)
        figures.observe(WorkPhase.APPEND, 0.02)
    (run_folder / "metrics" / "group-torn.figures").write_bytes(b"torn")
    write_slow(run_folder, [SlowProcess("group", "connect", 12, time.monotonic() - 7.2, 30.0)])
    assert value(api, "fairlead_coordinator_load_seconds", group="a b", shard="") == 0.5
    assert value(api, "fairlead_coordinator_seconds_count", shard="0", phase="append") == 1
    assert value(api, "fairlead_coordinator_load_seconds", group="torn") is None
    assert value(api, "fairlead_silent_processes") == 1
    assert (value(api, "fairlead_process_silent_seconds", process="group connect") or 0) > 7


def test_the_page_changes_with_the_log_and_tells_what_a_worker_has(api: RestApi) -> None:
    api.client.put("/connectors/a/config", json={"connector.class": "Locked"})
    assert value(api, "fairlead_worker_resources", kind="connector") is None
    api.group.ask("seat", "w1")
    assert value(api, "fairlead_worker_resources", kind="connector") == 1
    assert value(api, "fairlead_connector_state", connector="a", state="unassigned") == 1
    assert value(api, "fairlead_connector_state", connector="a", state="running") is None
    api.group.ask("split", "a", {"n": "0"}, {"n": "1"})
    api.group.ask("commit", Resource("a", 0), 0, 10, 9)
    first = value(api, "fairlead_connector_last_commit_timestamp_seconds", connector="a")
    assert value(api, "fairlead_connector_oldest_commit_timestamp_seconds", connector="a") == first
    assert value(api, "fairlead_connector_rows_in_total", connector="a") == 10
    api.group.ask("commit", Resource("a", 0), 1, 10, 9)
    assert value(api, "fairlead_connector_rows_in_total", connector="a") == 20


def test_the_page_has_the_heartbeats_that_the_groups_actor_tells_of(api: RestApi) -> None:
    api.client.get("/metrics")  # what it is told meanwhile is on the next page
    page = api.client.get("/metrics").text
    assert 'fairlead_group_heartbeats_total{group="connect"} 1000.0' in page
    assert 'fairlead_group_heartbeats_held{group="connect"} 2.0' in page
