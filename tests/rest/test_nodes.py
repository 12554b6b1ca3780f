"""`/nodes`, and the order to give a group up: who owns it, how far a node is, who may take over."""

from typing import Any

import pytest
from rest.conftest import RestApi

from fairlead.actors.messages.commands import CopiesView, NodeReport
from fairlead.actors.messages.orders import MoveOwner
from fairlead.events.records import OwnerBegan, OwnerResigned
from fairlead.runtime.cluster.messages import OwnershipView, ProcessView

W1, W2 = "127.0.0.1:8083/w1", "127.0.0.1:8083/w2"
FOLLOWS = OwnershipView(
    "postgres",
    *("n2", "10.0.0.2:9094", "1.2.3"),
    *("n1", "10.0.0.1:9094"),
    silent_ms=40,
    owner_epoch=2,
    copies=CopiesView(3, 250, -1_500),
    nodes=(
        NodeReport("n1", "10.0.0.1:9094", "10.0.0.1:8083", "1.2.3", heard_ms=700),
        NodeReport("n2", "10.0.0.2:9094", "10.0.0.2:8083", "1.2.3", CopiesView(9, 1, 1), 90),
        NodeReport("n5", "10.0.0.5:9094", "n5:8083", "1.2.4", CopiesView(0, 4, None), 900),
        NodeReport("n6", "", "n6:8083", "1.2.4", CopiesView(0, None, None), 5_000),
    ),
)


def node(name: str, **fields: object) -> dict[str, Any]:
    nothing = {"owner_epoch": None, "since_ms": None, "silence_ms": None, "copies": None}
    nothing |= {"heard_ms": None}
    usual = {"owns": False, "is_here": False, "address": "", "version": "", "workers": []}
    usual |= {"is_ready": False}
    return {"name": name, **usual, **nothing, **fields}


@pytest.fixture
def follower(api: RestApi) -> RestApi:
    """A follower of the node n1, which owned the group before as well."""
    api.gateway.owned = FOLLOWS
    for record in (
        OwnerBegan(1, "n3", "10.0.0.3:9094", "1.2.2", 0, 1_700_000_000_000),
        OwnerResigned(1, "n3", "n1", 1_700_000_001_000),
        OwnerBegan(2, "n1", "10.0.0.1:9094", "1.2.3", 3_400, 1_700_000_002_000),
    ):
        api.group.ask("write", record)
    return api


def test_nodes_are_those_that_owned_the_group_that_the_owner_has_heard_of_and_the_one_asked(
    follower: RestApi,
) -> None:
    follower.group.ask("seat", "w1")
    follower.group.ask("seat", "w2")
    for member_id, place in (("W5", "n5:8083"), ("W6", "n4:8083"), ("W7", "10.0.0.1:8083")):
        follower.group.ask("join_at", member_id, f"{place}/{member_id.lower()}")
    follower.group.ask("join_at", "W8", "n5:8083/w5")  # the next process of a worker
    follower.gateway.workers = (ProcessView("w1", 7, W1, "running", 0),)
    follower.gateway.workers += (ProcessView("w2", 8, W2, "running", 0),)
    assert follower.client.get("/nodes").json() == {
        "group_id": "connect",
        "store": "postgres",
        "owner": "n1",
        "owner_silent_ms": 40,
        "nodes": [
            node(
                "n1",
                owns=True,
                is_ready=True,
                heard_ms=40,
                address="10.0.0.1:9094",
                version="1.2.3",
                workers=["w7"],
                owner_epoch=2,
                since_ms=1_700_000_002_000,
                silence_ms=3_400,
            ),
            node(
                "n2",
                is_here=True,
                is_ready=True,
                heard_ms=0,
                address="10.0.0.2:9094",
                version="1.2.3",
                workers=["w1", "w2"],
                copies={"behind_entries": 3, "in_step_ms": 250, "clock_ms": -1_500},
            ),
            node(
                "n3",
                address="10.0.0.3:9094",
                version="1.2.2",
                owner_epoch=1,
                since_ms=1_700_000_000_000,
                silence_ms=0,
            ),
            node(
                "n5",
                is_ready=True,
                heard_ms=900,
                address="10.0.0.5:9094",
                version="1.2.4",
                workers=["w5"],
                copies={"behind_entries": 0, "in_step_ms": 4, "clock_ms": None},
            ),
            node("n6", heard_ms=5_000, version="1.2.4"),
            node("n4", workers=["w6"]),
        ],
    }
    assert follower.client.get("/status").json()["nodes"] == follower.client.get("/nodes").json()


def test_a_group_on_one_host_has_one_node(
    follower: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "here")
    follower.gateway.owned = OwnershipView()
    answer = follower.client.get("/nodes").json()
    assert (answer["store"], answer["owner"]) == ("lmdb", "here")
    assert [each["name"] for each in answer["nodes"] if each["owns"]] == ["here"]
    assert follower.client.get("/status").json()["nodes"] is None


def test_the_owner_is_told_to_give_the_group_up(follower: RestApi) -> None:
    moved = follower.client.post("/groups/connect/owner?to=n2")
    assert (moved.status_code, moved.json()) == (
        202,
        {
            "group_id": "connect",
            "owner": "n1",
            "to": "n2",
            "message": "node n1 gives the group up, to node n2",
        },
    )
    assert follower.gateway.sent == [MoveOwner("connect", "n2", "rest 127.0.0.1", 2)]
    events = follower.client.get("/groups/connect/events").json()["events"]
    assert events[-1]["text"] == "node n1, owner 2, gives the group up to node n2"


def test_the_group_may_go_to_any_other_node_and_stays_where_it_is_to_be(follower: RestApi) -> None:
    stays = follower.client.post("/groups/connect/owner?to=n1").json()
    assert stays["message"] == "node n1 owns the group already"
    moved = follower.client.post("/groups/connect/owner").json()
    assert moved["message"] == "node n1 gives the group up, to any other node"


def test_an_owner_that_came_since_keeps_the_group(follower: RestApi) -> None:
    follower.group.ask("write", OwnerBegan(3, "n5", "10.0.0.5:9094"))
    for query in ("", "?to=n1", "?to=n2"):
        moved = follower.client.post(f"/groups/connect/owner{query}").json()
        assert moved["message"] == "node n5 has claimed the group since"
    events = follower.client.get("/groups/connect/events").json()["events"]
    assert "gives the group up" not in events[-1]["text"]


def test_a_move_is_refused_to_a_node_that_nobody_knows_and_without_a_store(
    follower: RestApi,
) -> None:
    unknown = follower.client.post("/groups/connect/owner?to=n9")
    assert (unknown.status_code, unknown.json()["message"]) == (
        404,
        "no node n9 is known: there are n1, n2, n3, n5, n6; without a name any other node takes"
        " over",
    )
    other = follower.client.post("/groups/other/owner")
    assert (other.status_code, follower.gateway.sent) == (404, [])


def test_a_group_whose_log_is_on_one_host_stays_there(follower: RestApi) -> None:
    follower.gateway.owned = OwnershipView()
    refused = follower.client.post("/groups/connect/owner?to=n2")
    assert (refused.status_code, refused.json()["message"]) == (
        400,
        "the log of the group is on one host (log.store = lmdb): no other node can own it",
    )


def test_a_node_is_ready_while_an_owner_is_known_and_its_copies_are_in_step(
    follower: RestApi,
) -> None:
    follower.group.ask("seat", "w1")

    def reasons(owned: OwnershipView) -> list[str]:
        follower.gateway.owned = owned
        follower.service.ownership.last = None
        answer = follower.client.get("/health/ready").json()
        return [each["reason"] for each in answer["reasons"]]

    def follows(copies: CopiesView, owner: str = "n1", silent_ms: int = 0) -> OwnershipView:
        return OwnershipView("postgres", "n2", owner=owner, silent_ms=silent_ms, copies=copies)

    in_step = CopiesView(0, 250, None)
    assert reasons(follows(in_step)) == []
    assert reasons(OwnershipView("postgres", "n2", owner="n2")) == []
    assert reasons(OwnershipView("postgres", "n2", silent_ms=3_000)) == ["owner"]
    assert reasons(follows(in_step, owner="")) == ["owner"]
    assert reasons(follows(in_step, silent_ms=10_001)) == ["owner"]
    assert reasons(follows(CopiesView(0, None, None))) == ["copies"]
    assert reasons(follows(CopiesView(9, 5_001, None))) == ["copies"]


def test_health_and_the_verdict_say_that_nobody_owns_the_group_and_why(follower: RestApi) -> None:
    follower.group.ask("seat", "w1")
    assert follower.client.get("/health").status_code == 200
    follower.gateway.owned = OwnershipView("postgres", "n2", flaw="PostgreSQL: no route to host")
    follower.service.ownership.last = None
    answer = follower.client.get("/health")
    nobody = "no node owns the group, or it has been silent for long: PostgreSQL: no route to host"
    told = {"status": "unhealthy", "error_code": 503, "message": nobody}
    assert (answer.status_code, answer.json()) == (503, told)
    verdict = follower.client.get("/status").json()["verdict"]
    assert (verdict["status"], verdict["message"]) == ("unhealthy", nobody)


def test_metrics_tell_the_owner_the_takeovers_and_how_far_copies_are(follower: RestApi) -> None:
    follower.client.get("/metrics")  # what a process tells is that of the scrape before
    lines = follower.client.get("/metrics").text.splitlines()
    told = [each for each in lines if "owner" in each or "takeover" in each or "copy" in each]
    told += [each for each in lines if "owns" in each]
    assert sorted(each for each in told if not each.startswith("#")) == [
        'fairlead_group_owner_epoch{group="connect"} 2.0',
        'fairlead_group_takeovers_total{group="connect"} 1.0',
        "fairlead_log_copy_behind_entries 3.0",
        "fairlead_log_copy_in_step_seconds 0.25",
        "fairlead_node_owns_group 0.0",
    ]


@pytest.mark.parametrize(
    ("owner", "silent_ms", "told"),
    [
        ("n1", 700, {"owns_group": 1.0, "in_step": 0.0}),
        ("", 3_500, {"owns_group": 0.0, "in_step": 3.5}),
    ],
)
def test_an_owner_that_lost_the_store_counts_as_one_until_another_node_may_claim(
    follower: RestApi, owner: str, silent_ms: int, told: dict[str, float]
) -> None:
    follower.gateway.owned = OwnershipView("postgres", "n1", owner=owner, silent_ms=silent_ms)
    follower.client.get("/metrics")
    lines = follower.client.get("/metrics").text.splitlines()
    for name, value in told.items():
        (line,) = (each for each in lines if name in each and not each.startswith("#"))
        assert float(line.split()[1]) == value
