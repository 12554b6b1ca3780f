"""`/groups/{g}/history` and `/groups/{g}/explain/{epoch}` over a real log."""

from typing import Any

from rest.conftest import RestApi

from fairlead.actors.messages.commands import ExpireSession
from fairlead.events.model import Resource, RunState
from fairlead_tests.rest.client import Client

NOW_MS = 1_700_000_000_000
W1 = {"worker": "127.0.0.1:8083/w1", "member_id": "W1"}


def live(api: RestApi) -> None:
    """W1 joins and is given connector a, which splits into one task."""
    api.client.put("/connectors/a/config", json={"connector.class": "Locked"})
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"})
    api.group.ask("report", Resource("a", 0), RunState.RUNNING, "batches run")


def handover(**known: Any) -> dict[str, Any]:
    """Return a handover of which only this is known."""
    unknown = dict.fromkeys(
        (
            *("from", "to", "asked_ms", "stopped_ms", "gone_ms", "revoked_ms", "granted_ms"),
            *("running_ms", "first_batch_ms", "downtime_ms", "downtime_at_least_ms"),
            *("downtime_at_most_ms", "superseded_by"),
        )
    )
    return {**unknown, "detail": "", **known}


def test_the_history_has_a_line_for_each_epoch(api: RestApi) -> None:
    live(api)
    told = api.client.get("/groups/connect/history").json()
    line = {
        "time_ms": NOW_MS,
        "failed_attempts": 0,
        "settled_after_ms": 0,
        "moved": 0,
        "returned": 0,
        "placed": 1,
        "parked": 0,
        "unplaceable": 0,
        "displaced": 0,
        "retired": 0,
    }
    joined = {"cause": "member-joined", "subject": "127.0.0.1:8083/w1", "actor": None}
    split = {"cause": "tasks-changed", "subject": "a", "actor": None}
    joined, split = {**joined, "changed": ""}, {**split, "changed": "tasks 0 > 1"}
    lines = [
        {"group_epoch": 1, **joined, "assignment_epoch": 1, "kept": 0, **line},
        {"group_epoch": 2, **split, "assignment_epoch": 2, "kept": 1, **line},
    ]
    whole = {"group_id": "connect", "first_epoch": 1, "last_epoch": 2, "is_trimmed": False}
    whole |= {"clients": {}, "compacted": None, "owners": []}
    assert told == {**whole, "epochs": lines}
    last = api.client.get("/groups/connect/history?limit=1").json()
    assert last == {**whole, "epochs": lines[1:]}


def test_an_epoch_is_explained_with_its_phases_and_what_moved(api: RestApi) -> None:
    live(api)
    told = api.client.get("/groups/connect/explain/2").json()
    assert told == api.client.get("/groups/connect/explain/latest").json()
    assert (told["cause"], told["subject"], told["total_ms"]) == ("tasks-changed", "a", 0)
    assert [(each["phase"], each["took_ms"]) for each in told["phases"]] == [
        ("detect", 0),
        ("compute", 0),
        ("revoke", None),
        ("release", 0),
        ("start", 0),
    ]
    assert told["handovers"] == [
        handover(
            id="a-0",
            reason="new",
            to=W1,
            granted_ms=NOW_MS,
            running_ms=NOW_MS,
            first_batch_ms=NOW_MS,
        )
    ]


def test_a_task_is_followed_from_worker_to_worker(api: RestApi) -> None:
    live(api)
    told = api.client.get("/groups/connect/moves/a-0").json()
    (move,) = told.pop("moves")
    assert told == {"group_id": "connect", "id": "a-0", "clients": {}}
    assert (move["group_epoch"], move["causes"], move["subjects"]) == (2, ["tasks-changed"], ["a"])
    assert (move["handover"]["reason"], move["handover"]["to"]) == ("new", W1)
    reply = api.client.get("/groups/connect/moves/b")
    assert (reply.status_code, reply.json()["message"]) == (
        404,
        "nothing of the name b changed hands in the epochs 1 to 2 of group connect",
    )


def test_a_lost_worker_is_named_by_the_epoch_that_its_loss_led_to(api: RestApi) -> None:
    live(api)
    api.group.ask("carry_out", ExpireSession("W1"))
    told = api.client.get("/groups/connect/explain/3").json()
    assert (told["cause"], told["subject"]) == ("session-expired", "127.0.0.1:8083/w1")
    assert told["target_change"] is None


def test_an_epoch_that_is_not_in_the_log_is_a_404_that_says_what_is(api: RestApi) -> None:
    live(api)
    for epoch in ("3", "0", "-1"):
        reply = api.client.get(f"/groups/connect/explain/{epoch}")
        assert reply.json() == {
            "error_code": 404,
            "message": f"there is no epoch {epoch} in the log of group connect: it tells of the"
            " epochs 1 to 2",
        }
    assert api.client.get("/groups/connect/explain/soon").status_code == 404
    assert api.client.get("/groups/other/explain/1").status_code == 404
    assert api.client.get("/groups/other/history").status_code == 404


def test_a_group_without_an_epoch_has_an_empty_history(client: Client) -> None:
    told = client.get("/groups/connect/history").json()
    assert (told["first_epoch"], told["last_epoch"], told["epochs"]) == (None, None, [])
    reply = client.get("/groups/connect/explain/latest")
    assert reply.json() == {
        "error_code": 404,
        "message": "the log of group connect tells of no epoch",
    }


def test_a_limit_of_none_is_refused(client: Client) -> None:
    assert client.get("/groups/connect/history?limit=0").status_code == 400
