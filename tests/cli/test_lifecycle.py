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


def test_an_order_is_sent_for_each_name_and_refusals_are_told_at_the_end(
    run: Run, cluster: Cluster
) -> None:
    cluster.answer("PUT", "/connectors/b/stop", None, 202)
    assert run("stop", "a", "b", "--url", cluster.url) == (
        1,
        "connector b stops\n",
        "fairlead: connector a: there is no /connectors/a/stop (HTTP 404)\n",
    )


def state_of(cluster: Cluster, connector: str, *tasks: str) -> None:
    status = {
        "name": "flights",
        "connector": {"state": connector, "worker_id": answered.URL_1, "version": "1"},
        "tasks": [{**answered.FAILED_TASK, "state": each, "trace": "lost"} for each in tasks],
        "type": "source",
    }
    cluster.answer("GET", "/connectors/flights/status", status)


def test_an_order_with_wait_returns_when_it_is_done(run: Run, cluster: Cluster) -> None:
    cluster.answer("PUT", "/connectors/flights/stop", None, 202)
    state_of(cluster, "STOPPED", "UNASSIGNED")
    told = run("stop", "flights", "--wait", "--url", cluster.url)
    assert told == (0, "connector flights stops\nconnector flights is stopped\n", "")


def test_a_refused_one_does_not_keep_from_waiting_for_the_others(
    run: Run, cluster: Cluster
) -> None:
    cluster.answer("PUT", "/connectors/flights/stop", None, 202)
    state_of(cluster, "STOPPED")
    told = run("stop", "a", "flights", "--wait", "--url", cluster.url)
    out = "connector flights stops\nconnector flights is stopped\n"
    refused = "fairlead: connector a: there is no /connectors/a/stop (HTTP 404)\n"
    assert told == (1, out, refused)
    state_of(cluster, "RUNNING")
    late = "fairlead: connector flights is not stopped after 0 s: RUNNING\n"
    again = run("stop", "a", "flights", "--wait", "--timeout", "0s", "--url", cluster.url)
    assert again == (1, "connector flights stops\n", refused + late)


def test_one_that_is_late_hides_nothing_of_the_others(run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", "/connectors", ["a", "b"])
    words = ["wait", "a", "b", "c", "--for", "deleted", "--timeout", "0s", "--url", cluster.url]
    late = (f"connector {each} is not deleted after 0 s: it is still there" for each in "ab")
    told = "".join(f"fairlead: {each}\n" for each in late)
    assert run(*words) == (1, "connector c is deleted\n", told)


@pytest.mark.parametrize(
    ("state", "states", "missing"),
    [
        ("running", ("RUNNING", "RUNNING"), ""),
        ("running", ("RUNNING", "RUNNING", "RESTARTING"), "RESTARTING lost"),
        ("running", ("RUNNING",), "it has no tasks yet"),
        ("running", ("UNASSIGNED",), "UNASSIGNED"),
        ("paused", ("PAUSED", "PAUSED"), ""),
        ("paused", ("PAUSED", "RUNNING"), "RUNNING lost"),
        ("stopped", ("STOPPED",), ""),
        ("stopped", ("RUNNING",), "RUNNING"),
        ("deleted", ("STOPPED",), "it is still there"),
    ],
)
def test_a_wait_ends_when_all_is_in_the_state_or_says_what_is_not(
    state: str, states: tuple[str, ...], missing: str, run: Run, cluster: Cluster
) -> None:
    state_of(cluster, *states)
    cluster.answer("GET", "/connectors", ["flights"])
    wanted = ["--for", state, "--timeout", "0s", "--url", cluster.url]
    told = run("wait", "connector", "flights", *wanted)
    failed = f"fairlead: connector flights is not {state} after 0 s: {missing}\n"
    done = (0, f"connector flights is {state}\n", "")
    assert told == ((1, "", failed) if missing else done)


def test_a_wait_ends_at_once_for_a_connector_that_is_not_there(run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", "/connectors", ["flights"])
    words = ["wait", "connector", "x", "--url", cluster.url]
    assert run(*words, "--for", "deleted") == (0, "connector x is deleted\n", "")
    missing = "fairlead: there is no /connectors/x/status (HTTP 404)\n"
    assert run(*words, "--for", "running") == (1, "", missing)


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


@pytest.mark.parametrize("verb", ["create", "apply"])
def test_connectors_of_a_file_are_waited_for(verb: str, run: Run, cluster: Cluster) -> None:
    Path("c").write_text(json.dumps({"name": "flights", "config": {"a": "b"}}))
    cluster.answer("POST", "/connectors", answered.INFO, 201)
    change = {"key": "a", "from": None, "to": "b"}
    diff = {"name": "flights", "is_new": True, "changes": [change], "warnings": []}
    cluster.answer("POST", "/apply", [diff])
    state_of(cluster, "RUNNING", "RUNNING")
    told = run(verb, "-f", "c", "--wait", "--url", cluster.url)
    assert told == (0, "connector flights created\nconnector flights is running\n", "")


def test_a_connector_that_is_created_stopped_is_waited_for_as_such(
    run: Run, cluster: Cluster
) -> None:
    Path("c").write_text(json.dumps({"name": "flights", "config": {"a": "b"}}))
    cluster.answer("POST", "/connectors", answered.INFO, 201)
    state_of(cluster, "STOPPED")
    state = ["--initial-state", "STOPPED", "--wait"]
    told = run("create", "-f", "c", *state, "--url", cluster.url)
    assert told == (0, "connector flights created\nconnector flights is stopped\n", "")


def test_a_connector_that_is_stopped_is_applied_and_not_waited_for(
    run: Run, cluster: Cluster
) -> None:
    Path("c").write_text(json.dumps({"name": "flights", "config": {"a": "b"}}))
    change = {"key": "a", "from": "a", "to": "b"}
    diff = {"name": "flights", "is_new": False, "changes": [change], "warnings": []}
    cluster.answer("POST", "/apply", [diff])
    state_of(cluster, "STOPPED")
    told = run("apply", "-f", "c", "--wait", "--timeout", "1s", "--url", cluster.url)
    assert told == (0, "connector flights configured\n", "")


def test_a_time_that_is_none_is_a_misuse_before_anything_is_sent(
    run: Run, cluster: Cluster
) -> None:
    told = run("stop", "flights", "--wait", "--timeout", "soon", "--url", cluster.url)
    said = "fairlead: 'soon' is no time, or too long a one: write 90s, 10m or 2h\n"
    assert (told, cluster.asked) == ((2, "", said), [])
