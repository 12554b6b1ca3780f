"""Orders to connectors and tasks over REST: recorded, told as they stand, refused with a reason."""

import pytest
from rest.conftest import RestApi

from fairlead_tests.rest.client import Client

W1, W2 = "127.0.0.1:8083/w1", "127.0.0.1:8083/w2"
AT = "/groups/connect/placements"
MANY = {"workers": ["w1"] * 101}


@pytest.fixture
def api(api: RestApi) -> RestApi:
    """Two workers are members of the group; connector a has one task."""
    api.client.put("/connectors/a/config", json={"connector.class": "Locked"})
    api.group.ask("seat", "w1")
    api.group.ask("split", "a", {"n": "0"})
    api.group.ask("seat", "w2")
    return api


@pytest.fixture
def client(api: RestApi) -> Client:
    return api.client


def order(task: int | None, **fields: object) -> dict[str, object]:
    name = "a" if task is None else f"a-{task}"
    resource = {"id": name, "connector": "a", "task": task}
    return {"group_id": "connect", **resource, "weight": 1, "pins": [], **fields}


def test_what_is_said_of_a_connector_and_of_a_task_stands_until_it_is_taken_back(
    client: Client,
) -> None:
    said = client.put(f"{AT}/a", json={"weight": 5, "workers": ["w2", "W1"]})
    assert (said.status_code, said.json()) == (202, order(None, weight=5, pins=[W1, W2]))
    said = client.put(f"{AT}/a/0", json={"workers": ["w1"]})
    assert (said.status_code, said.json()) == (202, order(0, pins=[W1]))
    assert client.put(f"{AT}/a/0", json={"weight": 2}).json() == order(0, weight=2, pins=[W1])
    standing = [order(None, weight=5, pins=[W1, W2]), order(0, weight=2, pins=[W1])]
    for each in standing:
        del each["group_id"]
    assert client.get("/groups/connect").json()["placements"] == standing
    for path, nothing in ((f"{AT}/a", order(None)), (f"{AT}/a/0", order(0))):
        gone = client.delete(path)
        assert (gone.status_code, gone.json()) == (202, nothing)
    assert client.get("/groups/connect").json()["placements"] == []


def test_what_was_said_of_a_task_that_is_gone_can_still_be_taken_back(api: RestApi) -> None:
    api.client.put(f"{AT}/a/0", json={"weight": 5})
    api.group.ask("split", "a")
    assert api.client.put(f"{AT}/a/0", json={"weight": 6}).status_code == 404
    gone = api.client.delete(f"{AT}/a/0")
    assert (gone.status_code, gone.json()) == (202, order(0))
    assert api.client.delete(f"{AT}/a/0").status_code == 404


def test_a_rebalance_is_a_new_epoch_by_who_asked(client: Client) -> None:
    before = client.get("/groups/connect").json()["group_epoch"]
    told = client.post("/groups/connect/rebalance")
    assert (told.status_code, told.json()["group_epoch"]) == (202, before + 1)
    bump = client.get("/groups/connect").json()["last_rebalance"]
    assert (bump["cause"], bump["actor"]) == ("rebalance-requested", "rest 127.0.0.1")


@pytest.mark.parametrize(
    "body",
    [{"weight": 0}, {"weight": 1001}, {"weight": "5"}, {"workers": "w1"}, {"pins": []}, MANY],
)
def test_what_is_no_placement_is_a_400(client: Client, body: dict[str, object]) -> None:
    assert client.put(f"{AT}/a", json=body).status_code == 400


@pytest.mark.parametrize(
    ("path", "workers", "said"),
    [
        (f"{AT}/b", [], "b is neither a connector of this group nor a task of one"),
        (f"{AT}/a/7", [], "a-7 is neither a connector of this group nor a task of one"),
        (f"{AT}/a", ["w9"], f"there is no worker 'w9': there are {W1}, {W2}"),
        ("/groups/none/placements/a", [], "there is no group none"),
    ],
)
def test_what_is_not_there_is_a_404(
    client: Client, path: str, workers: list[str], said: str
) -> None:
    reply = client.put(path, json={"workers": workers})
    assert reply.json() == {"error_code": 404, "message": said}


@pytest.mark.parametrize("task", ["-1", "2147483648", "x"])
def test_what_is_no_tasks_number_is_a_404(client: Client, task: str) -> None:
    assert client.put(f"{AT}/a/{task}", json={}).status_code == 404
    assert client.delete(f"{AT}/a/{task}").status_code == 404
