"""A worker is removed over REST: from its group, and from its node."""

import pytest
from rest.conftest import RestApi

from fairlead.actors.messages.members import Heartbeat
from fairlead.runtime.cluster.messages import ProcessView

PLACE = "127.0.0.1:8083"
W1, W2 = f"{PLACE}/w1", f"{PLACE}/w2"
ENDS = "its process ends, and is not started again before the node is"


def process(name: str, member_id: str) -> ProcessView:
    return ProcessView(name, 1, f"{PLACE}/{name}", "running", 0, "", member_id)


@pytest.fixture
def api(api: RestApi) -> RestApi:
    """Two workers are members of the group, with a connector and a task each."""
    for name in "AB":
        api.client.post("/connectors", json={"name": name, "config": {"connector.class": "X"}})
    api.group.ask("configure", "A A-0 B B-0")
    api.group.ask("seat", "w1")
    api.group.ask("seat", "w2")
    api.gateway.workers = (process("w1", "W1"), process("w2", "W2"))
    return api


def removed(worker: str, member_id: str | None, name: str | None, message: str) -> object:
    return {
        "group_id": "connect",
        "worker": worker,
        "member_id": member_id,
        "process": name,
        "message": message,
    }


@pytest.mark.parametrize("called", ["w2", "W2", W2, W2.replace("/", "%2F")])
def test_a_worker_is_removed_by_any_of_its_names_and_its_process_let_go(
    api: RestApi, called: str
) -> None:
    reply = api.client.delete(f"/workers/{called}")
    message = f"it gives up what it has, and leaves the group; {ENDS}"
    assert (reply.status_code, reply.json()) == (202, removed(W2, "W2", "w2", message))
    assert api.gateway.stopped_workers == [("w2", False)]
    (order,) = api.client.get("/groups/connect").json()["worker_orders"]
    assert (order["worker"], order["removing"]) == (W2, "W2")


def test_by_force_a_worker_is_ended_at_once(api: RestApi) -> None:
    told = api.client.delete("/workers/w2?force=true").json()["message"]
    assert told == f"what it runs ends at once, and goes to others; {ENDS}"
    assert api.gateway.stopped_workers == [("w2", True)]


def test_the_last_worker_is_removed_and_that_is_said(api: RestApi) -> None:
    api.group.ask("heartbeat", Heartbeat("connect", "W2", -1, "1"))
    told = api.client.delete("/workers/w1").json()["message"]
    assert told.endswith("it was the last worker: nothing runs until another one joins")


def test_a_member_without_a_process_here_is_removed_and_told_to_join_again(api: RestApi) -> None:
    api.gateway.workers = ()
    assert api.client.delete("/workers/w2").json()["message"] == (
        "it gives up what it has, and leaves the group; it is no process of this node: if it lives"
        " on, it joins again"
    )
    assert api.gateway.stopped_workers == []


def test_an_older_member_is_removed_without_the_process_that_is_the_worker_now(
    api: RestApi,
) -> None:
    api.gateway.workers = (process("w2", "W9"),)
    assert api.client.delete("/workers/W2").json()["process"] is None
    assert api.gateway.stopped_workers == []


def test_a_worker_that_is_no_member_yet_is_let_go_by_its_node(api: RestApi) -> None:
    api.gateway.workers = (process("w7", ""),)
    reply = api.client.delete("/workers/w7")
    assert reply.json() == removed(f"{PLACE}/w7", None, "w7", f"it is no member; {ENDS}")
    assert api.gateway.stopped_workers == [("w7", False)]


@pytest.mark.parametrize("query", ["", "?force=true"])
@pytest.mark.parametrize("loses_answers", [False, True])
def test_an_unknown_worker_is_a_404_that_lists_who_is_there(
    api: RestApi, query: str, loses_answers: bool
) -> None:
    api.gateway.loses_answers = loses_answers
    reply = api.client.delete(f"/workers/w9{query}")
    assert reply.json() == {
        "error_code": 404,
        "message": f"there is no worker 'w9': there are {W1}, {W2}",
    }


def test_a_removal_that_is_repeated_does_no_harm(api: RestApi) -> None:
    api.gateway.loses_answers = True
    assert api.client.delete("/workers/w2").status_code == 202
    assert api.client.delete("/workers/w2").status_code == 202


def test_a_repeated_removal_of_who_holds_nothing_is_no_404(api: RestApi) -> None:
    api.group.ask("seat", "w3")
    api.gateway.loses_answers = True
    assert api.client.delete("/workers/w3").status_code == 202


def test_without_a_supervisor_nothing_is_removed(api: RestApi) -> None:
    api.gateway.group = None
    assert api.client.delete("/workers/w2").status_code == 503
    assert api.client.get("/groups/connect").json()["worker_orders"] == []
