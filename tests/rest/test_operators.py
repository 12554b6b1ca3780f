"""Orders to workers over REST: recorded, told as they stand, refused with a reason."""

import pytest
from rest.conftest import RestApi

from fairlead_tests.rest.client import Client

PLACE = "127.0.0.1:8083"
W1, W2 = f"{PLACE}/w1", f"{PLACE}/w2"


@pytest.fixture
def api(api: RestApi) -> RestApi:
    """Two workers are members of the group."""
    api.group.ask("seat", "w1")
    api.group.ask("seat", "w2")
    return api


@pytest.fixture
def client(api: RestApi) -> Client:
    return api.client


def order(worker: str, **fields: object) -> dict[str, object]:
    nothing = {"cordoned": False, "draining": False, "expected_back_ms": None, "removing": None}
    return {"group_id": "connect", "worker": worker, **nothing, **fields}


@pytest.mark.parametrize("called", ["w1", "W1", W1, W1.replace("/", "%2F")])
def test_a_worker_is_cordoned_drained_and_uncordoned_by_any_of_its_names(
    client: Client, called: str
) -> None:
    cordoned = client.put(f"/workers/{called}/cordon")
    assert (cordoned.status_code, cordoned.json()) == (202, order(W1, cordoned=True))
    drained = client.put(f"/workers/{called}/drain")
    assert drained.json() == order(W1, cordoned=True, draining=True)
    assert client.put(f"/workers/{called}/uncordon").json() == order(W1)


def test_a_repeated_order_does_no_harm(api: RestApi) -> None:
    api.gateway.loses_answers = True
    before = api.client.get("/groups/connect").json()["group_epoch"]
    assert api.client.put("/workers/w1/cordon").json() == order(W1, cordoned=True)
    assert api.client.get("/groups/connect").json()["group_epoch"] == before + 1


def test_the_log_knows_who_asked(client: Client) -> None:
    client.put("/workers/w1/cordon")
    bump = client.get("/groups/connect").json()["last_rebalance"]
    assert (bump["cause"], bump["subject"], bump["actor"]) == (
        "worker-cordoned",
        W1,
        "rest 127.0.0.1",
    )


def test_an_expected_worker_is_told_with_its_time(client: Client) -> None:
    told = client.put("/workers/w2/expect", json={"within_ms": 60_000})
    assert told.status_code == 202
    assert told.json() == order(W2, expected_back_ms=1_700_000_060_000)
    assert client.put("/workers/w2/expect", json={"within_ms": 0}).json() == order(W2)


@pytest.mark.parametrize("body", [{}, {"within_ms": -1}, {"within_ms": "5"}, {"within_ms": 1.5}])
def test_a_time_that_is_none_is_a_400(client: Client, body: dict[str, object]) -> None:
    assert client.put("/workers/w1/expect", json=body).status_code == 400


def test_what_stands_is_told_with_the_worker_and_the_group(client: Client) -> None:
    client.put("/workers/w1/drain")
    standing = order(W1, cordoned=True, draining=True)
    del standing["group_id"]
    workers = client.get("/workers").json()["workers"]
    assert [each["order"] for each in workers] == [standing, None]
    assert client.get("/groups/connect").json()["worker_orders"] == [standing]


def test_an_unknown_worker_is_a_404_that_lists_who_is_there(client: Client) -> None:
    for path in ("cordon", "uncordon", "drain"):
        reply = client.put(f"/workers/w9/{path}")
        assert reply.json() == {
            "error_code": 404,
            "message": f"there is no worker 'w9': there are {W1}, {W2}",
        }


def test_an_unknown_group_is_a_404(client: Client) -> None:
    reply = client.put("/workers/w1/cordon?group=other")
    assert reply.json() == {"error_code": 404, "message": "there is no group other"}


def test_without_a_group_that_answers_an_order_is_a_503(api: RestApi) -> None:
    api.gateway.group = None
    assert api.client.put("/workers/w1/cordon").status_code == 503
