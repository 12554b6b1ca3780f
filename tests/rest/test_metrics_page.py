from prometheus_client.parser import text_string_to_metric_families as parse
from rest.conftest import RestApi

from fairlead.events.model import Resource


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


def test_the_page_has_the_heartbeats_that_the_groups_actor_tells_of(api: RestApi) -> None:
    page = api.client.get("/metrics").text
    assert 'fairlead_group_heartbeats_total{group="connect"} 1000.0' in page
    assert 'fairlead_group_heartbeats_held{group="connect"} 2.0' in page
