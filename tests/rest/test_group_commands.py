"""A group's own settings and its end, over REST."""

from rest.conftest import RestApi

from fairlead.actors.group.state.own_settings import SETTINGS
from fairlead.actors.messages.orders import DeleteGroup
from fairlead_tests.rest.client import Client

CONFIG = "/groups/connect/config"
LOCKED = {"connector.class": "Locked"}


def test_settings_are_put_as_a_whole_patched_one_by_one_and_read(api: RestApi) -> None:
    api.group.ask("seat", "w1")
    client = api.client
    assert client.get(CONFIG).json() == {}
    put = client.put(CONFIG, json={"group.max.size": 7, "assignment.interval.ms": "50"})
    both = {"group.max.size": "7", "assignment.interval.ms": "50"}
    assert (put.status_code, put.json()) == (200, both)
    patched = client.request(
        "PATCH", CONFIG, json={"group.max.size": None, "member.request.rate": "9"}
    )
    assert patched.json() == {"assignment.interval.ms": "50", "member.request.rate": "9"}
    assert client.put(CONFIG, json={"group.max.size": "3"}).json() == {"group.max.size": "3"}
    assert client.get(CONFIG).json() == {"group.max.size": "3"}
    assert client.get("/groups/connect").json()["config"] == {"group.max.size": "3"}


def test_a_setting_that_is_refused_is_a_400_and_changes_nothing(client: Client) -> None:
    reply = client.put(CONFIG, json={"group.max.size": "7", "group.maxsize": "7"})
    assert reply.json() == {
        "error_code": 400,
        "message": "unknown setting 'group.maxsize': did you mean group.max.size?;"
        " nothing was changed",
    }
    assert client.get(CONFIG).json() == {}


def test_settings_of_an_unknown_group_are_a_404(client: Client) -> None:
    for reply in (
        client.get("/groups/other/config"),
        client.put("/groups/other/config", json={}),
        client.request("PATCH", "/groups/other/config", json={}),
        client.delete("/groups/other"),
    ):
        assert reply.json() == {"error_code": 404, "message": "there is no group other"}


def test_what_is_not_sent_as_json_is_a_415(client: Client) -> None:
    assert client.put(CONFIG, content=b"{}").status_code == 415


def test_every_setting_is_told_in_the_description(client: Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    told = paths["/groups/{group}/config"]["get"]["description"]
    for each in SETTINGS.values():
        assert f"`{each.name}`: {each.allowed}. {each.documentation}" in told


def test_a_group_with_members_is_a_409(api: RestApi) -> None:
    api.group.ask("seat", "w1")
    assert api.client.delete("/groups/connect").json() == {
        "error_code": 409,
        "message": "members in the group: 1; delete it once they have left",
    }


def test_an_empty_group_is_deleted_with_all_that_is_in_it(api: RestApi) -> None:
    api.client.put("/connectors/a/config", json=LOCKED)
    assert api.client.delete("/groups/connect").status_code == 204
    assert api.gateway.sent[-1] == DeleteGroup("connect", "rest 127.0.0.1")
    assert api.client.get("/connectors").json() == []
    assert api.client.get("/groups/connect").json()["state"] == "Dead"
    again = api.client.delete("/groups/connect")
    assert (again.status_code, again.json()["error_code"]) == (404, 404)


def test_a_deletion_whose_first_answer_was_lost_is_a_204(api: RestApi) -> None:
    api.client.put("/connectors/a/config", json=LOCKED)
    api.gateway.loses_answers = True
    assert api.client.delete("/groups/connect").status_code == 204
