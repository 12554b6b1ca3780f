"""Whether anything is wrong is judged once, and `/health` and `/status` say the same."""

from rest.conftest import RestApi

from fairlead.events.model import Resource, RunState
from fairlead.runtime.cluster.messages import ProcessView
from fairlead.runtime.interfaces.replies.connectors import (
    ConnectorState,
    ConnectorStateInfo,
    TaskState,
)
from fairlead.runtime.interfaces.replies.node import Health
from fairlead.runtime.interfaces.replies.overview import (
    NodeVerdict,
    count_troubles,
    judge,
    with_troubles,
)
from fairlead.runtime.interfaces.rest.routes.node.health import READY

OF_ALL = "of its connectors, tasks and workers"


def info(state: str, *tasks: tuple[str, str]) -> ConnectorStateInfo:
    states = [
        TaskState(n, each, "w1", None, reason=reason) for n, (each, reason) in enumerate(tasks)
    ]
    return ConnectorStateInfo("a", ConnectorState(state, "w1", None), states, "source")


def test_what_failed_or_waits_is_trouble_and_what_was_asked_for_is_none() -> None:
    states = [
        info("RUNNING", ("RUNNING", ""), ("FAILED", ""), ("UNASSIGNED", "no worker")),
        info("PAUSED", ("PAUSED", "")),
        info("STOPPED"),
        info("RUNNING", ("RUNNING", "no files yet"), ("RUNNING", "note: a file took longer")),
    ]
    assert count_troubles(states, ["running", "backing-off"], "backing-off") == {
        "FAILED": 1,
        "RUNNING with a remark": 1,
        "UNASSIGNED": 1,
        "shared JVM down": 1,
        "worker processes down": 1,
    }
    assert count_troubles([info("RUNNING", ("RUNNING", ""))], ["running"]) == {}


def test_a_healthy_node_with_troubles_is_degraded_and_one_that_is_not_healthy_stays_so() -> None:
    health = with_troubles(Health(status="healthy", message="fine"), {"FAILED": 2})
    message = f"fine; {OF_ALL}: 2 FAILED"
    assert health == Health(status="healthy", message=message)
    assert judge(health, {"FAILED": 2}) == NodeVerdict("degraded", message, {"FAILED": 2})
    assert judge(Health(status="healthy", message="fine"), {}) == NodeVerdict("healthy", "fine", {})
    slow = Health(status="slow", error_code=503, message="the group hangs")
    assert with_troubles(slow, {"FAILED": 2}) == slow
    assert judge(slow, {"FAILED": 2}) == NodeVerdict("slow", "the group hangs", {"FAILED": 2})


def test_health_names_what_is_wrong_with_the_status_of_connect(api: RestApi) -> None:
    assert api.client.get("/health").json() == {"status": "healthy", "message": READY}
    api.group.ask("seat", "w1")
    api.client.put(
        "/connectors/a/config", json={"connector.class": "Locked", "passphrase": "secret"}
    )
    api.group.ask("settle")
    api.group.ask("split", "a", {"task": "0"})
    api.group.ask("report", Resource("a", 0), RunState.FAILED, "no such column")
    api.gateway.workers = (ProcessView("w1", None, "127.0.0.1:8083/w1", "backing-off", 3, "x"),)
    health, status = api.client.get("/health"), api.client.get("/status").json()
    troubles = status["verdict"]["troubles"]
    assert (troubles["FAILED"], troubles["worker processes down"]) == (1, 1)
    counts = ", ".join(f"{count} {what}" for what, count in troubles.items())
    message = f"{READY}; {OF_ALL}: {counts}"
    assert (health.status_code, health.json()) == (200, {"status": "healthy", "message": message})
    assert status["health"] == health.json()
    assert status["verdict"] == {"status": "degraded", "message": message, "troubles": troubles}
