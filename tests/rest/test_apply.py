"""`POST /apply`: several connectors are created and changed in one epoch, or none of them."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from rest.conftest import RestApi

from fairlead.actors.messages.orders import PutConnectors
from fairlead.runtime.interfaces.rest.routes.connectors import config_changes, config_diff

LOCKED = {"connector.class": "Locked"}


def apply(api: RestApi, **configs: dict[str, Any]) -> httpx.Response:
    return api.client.post("/apply", json=body_of(configs))


def body_of(configs: Mapping[str, object]) -> dict[str, Any]:
    return {"connectors": [{"name": name, "config": each} for name, each in configs.items()]}


def epochs(api: RestApi) -> list[tuple[str, str, str]]:
    told = api.client.get("/groups/connect/history").json()["epochs"]
    return [(each["cause"], each["subject"], each["changed"]) for each in told]


def test_several_connectors_are_applied_in_one_epoch_that_tells_of_each(api: RestApi) -> None:
    apply(api, a=LOCKED)
    api.group.ask("seat", "w1")
    before = epochs(api)
    told = apply(api, a={**LOCKED, "placement.zones": "z"}, b=LOCKED, c={**LOCKED, "password": "s"})
    assert (told.status_code, [(each["name"], each["is_new"]) for each in told.json()]) == (
        200,
        [("a", False), ("b", True), ("c", True)],
    )
    assert told.json()[0]["changes"] == [{"key": "placement.zones", "from": None, "to": "z"}]
    assert {"key": "password", "from": None, "to": "********"} in told.json()[2]["changes"]
    changed = "new b c; a: placement.zones none > z"
    assert epochs(api)[len(before) :] == [("connector-added", "b and 2 more", changed)]
    assert api.client.get("/connectors").json() == ["a", "b", "c"]
    again = apply(
        api, a={**LOCKED, "placement.zones": "z"}, b=LOCKED, c={**LOCKED, "password": "s"}
    )
    assert [each["changes"] for each in again.json()] == [[]] * 3
    assert len(epochs(api)) == len(before) + 1


def test_if_one_connector_is_refused_none_is_applied_and_each_is_told(api: RestApi) -> None:
    told = apply(api, a=LOCKED, b={"tasks.max": "2"}, c={**LOCKED, "password": "a b"})
    lines = told.json()["message"].splitlines()
    assert (told.status_code, lines[0]) == (
        400,
        "nothing was changed: of 3 connectors, 2 cannot be applied",
    )
    assert lines[1].startswith("connector b: Connector config {tasks.max, name} contains no")
    assert lines[2].startswith("connector c: Connector configuration is invalid")
    assert (api.client.get("/connectors").json(), api.gateway.sent) == ([], [])


def test_a_dry_run_tells_what_would_change_and_changes_nothing(api: RestApi) -> None:
    told = api.client.post("/apply", json={**body_of({"a": LOCKED, "b": LOCKED}), "dry_run": True})
    assert [each["is_new"] for each in told.json()] == [True, True]
    assert (api.client.get("/connectors").json(), api.gateway.sent) == ([], [])


def test_a_secret_that_is_sent_back_as_it_is_shown_is_kept(api: RestApi) -> None:
    apply(api, a={**LOCKED, "password": "hunter2"})
    told = apply(api, a={**LOCKED, "password": "********", "tasks.max": 2}, b=LOCKED)
    changes = [{"key": "tasks.max", "from": None, "to": "2"}]
    assert told.json()[0]["changes"] == changes
    command = api.gateway.sent[-1]
    assert isinstance(command, PutConnectors)
    assert "hunter2" not in str(command)


def test_a_connector_that_is_being_deleted_keeps_the_others_from_being_applied(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_changes, "DELETION_SECONDS", 0)
    apply(api, a=LOCKED)
    api.client.delete("/connectors/a")
    told = apply(api, a=LOCKED, b=LOCKED)
    line = "connector a: connector a is being deleted: create it once it is gone"
    assert (told.status_code, told.json()["message"].splitlines()[1]) == (409, line)
    assert api.client.get("/connectors").json() == []


def test_a_reply_that_is_lost_is_asked_for_again_and_tells_the_same(api: RestApi) -> None:
    api.gateway.loses_answers = True
    told = apply(api, a=LOCKED, b=LOCKED)
    assert (told.status_code, [each["is_new"] for each in told.json()]) == (200, [True, True])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "connectors: Field required"),
        ({"connectors": []}, "connectors: List should have at least 1 item"),
        ({"connectors": [{"name": "a"}]}, "connectors.0.config: Field required"),
        ({"connectors": [{"name": "a", "config": {}, "x": 1}]}, "connectors.0.x: "),
        (
            {"connectors": [{"name": "a", "config": LOCKED}, {"name": " a", "config": LOCKED}]},
            "a connector is given twice: nothing was changed",
        ),
        ({"connectors": [{"config": LOCKED}]}, "Invalid value  for configuration name"),
    ],
)
def test_a_body_that_says_no_connectors_is_refused(body: Any, said: str, api: RestApi) -> None:
    told = api.client.post("/apply", json=body)
    assert (told.status_code, said in told.json()["message"]) == (400, True), told.text


def test_no_more_connectors_are_applied_at_once_than_one_command_may_hold(api: RestApi) -> None:
    configs = {f"c{number}": LOCKED for number in range(config_diff.CONNECTORS_MAX + 1)}
    assert apply(api, **configs).status_code == 400
