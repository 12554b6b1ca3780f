"""`POST /groups/{g}/plan` over a real log: read, examined, computed, and nothing written."""

from dataclasses import replace
from typing import Any

import httpx
import pytest
from rest.conftest import RestApi

from fairlead.actors.messages.orders import Cordon, Uncordon
from fairlead.events.model import ClientAssignor, Resource, RunState
from fairlead.events.placement import Abilities
from fairlead.runtime.cluster.spec import AssignorSpec, WorkerTraits
from fairlead.runtime.interfaces.rest.routes.groups import plan as routes
from fairlead_tests.decider import JOIN

W1 = {"worker": "127.0.0.1:8083/w1", "member_id": "W1"}
W2 = {"worker": "127.0.0.1:8083/w2", "member_id": "W2"}
NEW = {"worker": "new-1", "member_id": "new-1"}
SECRET = "hunter2"
MANY = {"connector.class": "Locked", "tasks.max": 60_000}


def live(api: RestApi, *tasks: str) -> None:
    """W1 and W2 share connector a and these tasks of it."""
    api.client.put("/connectors/a/config", json={"connector.class": "Locked"})
    api.group.ask("seat", "w1")
    api.group.ask("seat", "w2")
    api.group.ask("split", "a", *({"n": each} for each in tasks))


def plan(api: RestApi, **proposed: Any) -> httpx.Response:
    return api.client.post("/groups/connect/plan", json=proposed)


def load(connectors: int, tasks: int) -> dict[str, int]:
    return {"connectors": connectors, "tasks": tasks, "weight": connectors + tasks}


def test_a_plan_tells_what_moves_why_and_what_stays(api: RestApi) -> None:
    live(api, "0", "1", "2", "3")
    told = plan(api, drain=["w2"])
    assert (told.status_code, told.json()) == (
        200,
        {
            "group_id": "connect",
            "state": "Stable",
            "group_epoch": 3,
            "settled": True,
            "assignor": "balanced",
            "rounds": [
                {
                    "causes": [{"cause": "worker-drained", "subject": "127.0.0.1:8083/w2"}],
                    "moved": 2,
                    "placed": 0,
                    "retired": 0,
                    "displaced": 0,
                }
            ],
            "moves": [
                {
                    "id": task,
                    "giver": W2,
                    "taker": W1,
                    "reason": "constraint",
                    "detail": "drain",
                    "expected_downtime": None,
                }
                for task in ("a-1", "a-3")
            ],
            "starts": [],
            "stops": [],
            "parked": [],
            "unplaceable": [],
            "workers": [
                {**W1, "before": load(1, 2), "after": load(1, 4), "stays": 3},
                {**W2, "before": load(0, 2), "after": load(0, 0), "stays": 0},
            ],
            "splits": [],
            "cold": [],
            "stays": 3,
            "handovers": 2,
            "warnings": [],
        },
    )


def test_all_changes_of_a_plan_are_made_in_their_order(api: RestApi) -> None:
    live(api, "0", "1")
    told = plan(
        api,
        scale={"b": 2},
        connectors=[{"name": "b", "config": {"connector.class": "Locked", "tasks.max": 1}}],
        delete=["a"],
        remove_workers=["w1"],
        drain=["w2"],
        add_workers=1,
        worker={"zone": "z", "tags": ["gpu"], "capacity": 2},
    ).json()
    causes = [(each["cause"], each["subject"]) for a in told["rounds"] for each in a["causes"]]
    assert causes == [
        ("member-joined", "new-1"),
        ("worker-drained", "127.0.0.1:8083/w2"),
        ("worker-drained", "127.0.0.1:8083/w1"),
        ("member-removed", "127.0.0.1:8083/w1"),
        ("connector-deleted", "a"),
        ("connector-added", "b"),
        ("tasks-changed", "b"),
        ("tasks-changed", "b"),
    ]
    assert told["starts"] == [{"id": each, "taker": NEW} for each in ("b", "b-0", "b-1")]
    assert told["splits"] == [
        {"connector": "b", "before": 0, "after": 2, "is_most": True, "restarts": 0}
    ]


def test_a_plan_asks_no_actor_and_writes_nothing(api: RestApi) -> None:
    live(api, "0")
    before = api.client.get("/groups/connect").json()
    asked = list(api.gateway.sent)
    plan(api, add_workers=2, remove_workers=["w1"], delete=["a"])
    assert (api.gateway.sent, api.client.get("/groups/connect").json()) == (asked, before)


def test_a_plan_can_be_had_while_the_group_rebalances(api: RestApi) -> None:
    live(api, "0", "1")
    api.group.ask("command", Cordon("connect", "w2", drain=True))
    told = plan(api, drain=["w1"]).json()
    assert (told["state"], told["settled"]) == ("Assigning", False)
    assert [each["giver"] for each in told["stops"]] == [W1, W1, W1]


def test_the_expected_downtime_is_that_of_past_hand_overs(api: RestApi) -> None:
    live(api, "0", "1")
    api.group.ask("report", Resource("a", 1), RunState.RUNNING, "batches run")
    api.group.ask("report", Resource("a", 1), RunState.UNASSIGNED)
    api.group.ask("command", Cordon("connect", "w2", drain=True))
    api.group.ask("settle")
    api.group.ask("pass_time", 250)
    api.group.ask("report", Resource("a", 1), RunState.RUNNING, "batches run")
    api.group.ask("command", Uncordon("connect", "w2"))
    api.group.ask("settle")
    (move,) = plan(api, drain=["w2"]).json()["moves"]
    assert move["expected_downtime"] == {
        "median_ms": 250,
        "p99_ms": 250,
        "measured": 1,
        "of": "connector",
    }


def test_a_secret_of_a_planned_connector_is_told_to_nobody(api: RestApi) -> None:
    live(api, "0")
    config = {"connector.class": "Locked", "password": SECRET}
    told = plan(api, connectors=[{"name": "b", "config": config}])
    assert told.status_code == 200
    assert SECRET not in told.text
    bad = {**config, "password": f"{SECRET} x"}
    told = plan(api, connectors=[{"name": "b", "config": bad}])
    assert told.status_code == 400
    assert SECRET not in told.text


def test_a_config_that_is_no_good_is_refused_as_when_it_is_created(api: RestApi) -> None:
    live(api, "0")
    for config in ({}, {"connector.class": "Lockd"}, {"connector.class": "Locked", "name": "c"}):
        created = api.client.post("/connectors", json={"name": "b", "config": config})
        planned = plan(api, connectors=[{"name": "b", "config": config}])
        assert (planned.status_code, planned.json()) == (created.status_code, created.json())
        assert created.status_code == 400


def test_of_several_connectors_the_one_that_is_no_good_is_named(api: RestApi) -> None:
    live(api, "0")
    good, bad = {"connector.class": "Locked"}, {"connector.class": "Lockd"}
    connectors = [{"name": "b", "config": good}, {"name": "c", "config": bad}]
    alone = plan(api, connectors=connectors[1:]).json()["message"]
    told = plan(api, connectors=connectors)
    assert (told.status_code, told.json()["message"]) == (400, f"connector c: {alone}")


def test_keys_that_nobody_reads_are_warned_of(api: RestApi) -> None:
    live(api, "0")
    config = {"connector.class": "Locked", "passphrase": SECRET, "extra.key": "x"}
    told = plan(api, connectors=[{"name": "b", "config": config}])
    assert told.json()["warnings"] == ["b: unknown key passphrase: it has no effect"]
    assert SECRET not in told.text


SENSELESS: list[tuple[dict[str, Any], int, str]] = [
    ({}, 400, "nothing is to be changed: give any of add_workers, drain, remove_workers,"),
    ({"worker": {"capacity": 2}}, 400, "nothing is to be changed: "),
    ({"worker": {"capacity": 2}, "drain": ["w1"]}, 400, "and add_workers adds none"),
    ({"add_worker": 1}, 400, "add_worker: Extra inputs are not permitted"),
    ({"add_workers": -1}, 400, "add_workers: Input should be greater than or equal to 0"),
    ({"add_workers": 101}, 400, "add_workers: Input should be less than or equal to 100"),
    ({"add_workers": "1"}, 400, "add_workers: Input should be a valid integer"),
    ({"add_workers": 1, "worker": {"capacity": 0}}, 400, "worker.capacity: Input should be"),
    (
        {"add_workers": 1, "worker": {"tags": ["a", ""]}},
        400,
        "worker.tags.1: it is blank",
    ),
    ({"add_workers": 1, "worker": {"zone": "a,b"}}, 400, "worker.zone: 'a,b' is no"),
    ({"scale": {"a": 0}}, 400, "scale.a: Input should be greater than or equal to 1"),
    ({"scale": {"b": 1}}, 404, "there is no connector b: there are a"),
    ({"delete": ["b"]}, 404, "there is no connector b: there are a"),
    (
        {"drain": ["w9"]},
        404,
        "there is no worker 'w9': there are 127.0.0.1:8083/w1, 127.0.0.1:8083/w2",
    ),
    (
        {"remove_workers": ["w9"]},
        404,
        "there is no worker 'w9': there are 127.0.0.1:8083/w1, 127.0.0.1:8083/w2",
    ),
    (
        {"connectors": [{"name": "..", "config": {}}]},
        400,
        "String may not be . or ..",
    ),
    (
        {
            "connectors": [
                {
                    "name": "b",
                    "config": {"connector.class": "Locked", "tasks.max": 100_001},
                }
            ]
        },
        400,
        "b: a plan needs tasks.max as a number, and at most 100000",
    ),
    (
        {"scale": {"a": 60_000}, "connectors": [{"name": "b", "config": MANY}]},
        400,
        "a plan is made for at most 100000 tasks: plan for fewer connectors at once",
    ),
    ({"drain": ["w1"] * 101}, 400, "drain: List should have at most 100 items"),
    ({"connectors": [{"name": "b", "config": MANY}] * 101}, 400, "connectors: List should have"),
    ({"scale": {f"c{n}": 1 for n in range(101)}}, 400, "scale: Dictionary should have at most"),
]


@pytest.mark.parametrize(("proposed", "status", "said"), SENSELESS)
def test_what_makes_no_sense_is_refused(
    api: RestApi, proposed: dict[str, Any], status: int, said: str
) -> None:
    live(api, "0")
    told = plan(api, **proposed)
    assert (told.status_code, told.json()["error_code"]) == (status, status)
    assert said in told.json()["message"]


def test_a_plan_is_made_for_a_group_that_there_is(api: RestApi) -> None:
    told = api.client.post("/groups/other/plan", json={"add_workers": 1})
    assert told.json() == {"error_code": 404, "message": "there is no group other"}


def test_half_a_character_names_nobody(api: RestApi) -> None:
    live(api, "0")
    hostile = {
        "content": rb'{"drain": ["\ud800"]}',
        "headers": {"Content-Type": "application/json"},
    }
    told = api.client.post("/groups/connect/plan", **hostile)
    assert told.status_code == 400
    assert "drain.0: holds a lone surrogate" in told.json()["message"]


def test_a_plan_is_sent_as_json(api: RestApi) -> None:
    assert api.client.post("/groups/connect/plan", content=b"{}").status_code == 415


def test_a_group_whose_assignor_this_node_has_not_is_a_conflict(api: RestApi) -> None:
    api.group.ask("join", "W1", replace(JOIN, assignors=(ClientAssignor("mine"),)))
    told = plan(api, drain=["W1"])
    assert (told.status_code, told.json()["message"]) == (
        409,
        "the group's assignor is mine, which this node is not set to run: what it would do cannot"
        " be told; plans can be made with balanced, deferred, eager, incremental,"
        " simple-cooperative",
    )


def test_an_assignor_of_others_that_is_not_installed_is_named(api: RestApi) -> None:
    object.__setattr__(api.service, "assignors", AssignorSpec(("mine",)))
    api.group.ask("join", "W1", replace(JOIN, assignors=(ClientAssignor("mine"),)))
    told = plan(api, drain=["W1"])
    assert told.status_code == 409
    assert told.json()["message"].startswith(
        "no plan can be made with assignor mine: there is no assignor 'mine': name one of"
    )


def test_a_plan_that_takes_too_long_is_given_up(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(api, "0")
    monkeypatch.setattr(routes, "PLAN_SECONDS", -1)
    told = plan(api, drain=["w1"])
    assert (told.status_code, told.json()["message"]) == (
        409,
        "the plan takes longer than -1 s: plan for fewer changes at once",
    )


def test_plans_are_made_one_at_a_time(api: RestApi, monkeypatch: pytest.MonkeyPatch) -> None:
    live(api, "0")
    monkeypatch.setattr(routes, "WAIT_SECONDS", 0)
    with api.service.planning:
        told = plan(api, drain=["w1"])
        assert (told.status_code, told.json()["message"]) == (
            503,
            "other plans are being made: try again in a moment",
        )
    assert plan(api, drain=["w1"]).status_code == 200


def test_workers_that_are_added_are_of_this_node_unless_it_is_said_otherwise(api: RestApi) -> None:
    gpu = WorkerTraits("a", Abilities(2, frozenset({"gpu"})))
    needs = {"connector.class": "Locked", "placement.tags": "gpu", "placement.zones": "a"}
    live(api, "0")
    api.client.put("/connectors/b/config", json=needs)
    api.group.ask("seat", "w1")
    assert [each["id"] for each in plan(api, add_workers=1).json()["unplaceable"]] == ["b"]
    object.__setattr__(api.service, "traits", gpu)
    assert plan(api, add_workers=1).json()["unplaceable"] == []
    others: tuple[dict[str, Any], ...] = ({"tags": []}, {"zone": "b"})
    for other in others:
        told = plan(api, add_workers=1, worker=other)
        assert [each["id"] for each in told.json()["unplaceable"]] == ["b"]
