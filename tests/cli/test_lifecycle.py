"""`pause`, `resume`, `stop`, `restart` and the state to begin with: what is sent, what is said."""

import json
from pathlib import Path

import pytest
from cli.conftest import Asked, Cluster, Run

from fairlead_tests.cli import answered


@pytest.mark.parametrize(
    ("verb", "said"), [("pause", "pauses"), ("resume", "runs"), ("stop", "stops")]
)
def test_an_order_is_sent_and_told(run: Run, cluster: Cluster, verb: str, said: str) -> None:
    cluster.answer("PUT", f"/connectors/flights/{verb}", None, 202)
    told = run(verb, "flights", "--url", cluster.url)
    assert told == (0, f"connector flights {said}\n", "")
    assert cluster.asked == [Asked("PUT", f"/connectors/flights/{verb}", None)]


def test_a_connector_or_one_task_is_restarted(run: Run, cluster: Cluster) -> None:
    for path in ("restart", "tasks/1/restart"):
        cluster.answer("POST", f"/connectors/flights/{path}", None, 204)
    told = run("restart", "flights", "--url", cluster.url)
    assert told == (0, "connector flights restarted\n", "")
    told = run("restart", "flights", "--task", "1", "--url", cluster.url)
    assert told == (0, "task flights-1 restarted\n", "")
    both = run("restart", "flights", "--task", "1", "--only-failed", "--url", cluster.url)
    assert both.code == 2
    assert len(cluster.asked) == 2


def test_what_is_restarted_with_its_tasks_is_named(run: Run, cluster: Cluster) -> None:
    failed = {**answered.FAILED_TASK, "state": "RESTARTING"}
    status = {**answered.STATUS, "tasks": [failed]}
    asked = "/connectors/flights/restart?includeTasks=true&onlyFailed=true"
    cluster.answer("POST", asked, status, 202)
    told = run("restart", "flights", "--include-tasks", "--only-failed", "--url", cluster.url)
    assert told == (0, "restarting: flights-1\n", "")
    cluster.answer("POST", "/connectors/flights/restart?onlyFailed=true", answered.STATUS, 202)
    told = run("restart", "flights", "--only-failed", "--url", cluster.url)
    assert told == (0, "restarting: nothing, since nothing has failed\n", "")


def test_a_connector_is_created_in_another_state(run: Run, cluster: Cluster) -> None:
    Path("c").write_text(json.dumps({"name": "flights", "config": {"a": "b"}}))
    cluster.answer("POST", "/connectors", answered.INFO, 201)
    run("create", "-f", "c", "--initial-state", "STOPPED", "--url", cluster.url)
    sent = {"name": "flights", "config": {"a": "b"}, "initial_state": "STOPPED"}
    assert cluster.asked == [Asked("POST", "/connectors", sent)]
