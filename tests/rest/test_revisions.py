"""`/connectors/{c}/revisions` and `rollback`: configs that a connector has had."""

from typing import Any

from rest.conftest import RestApi

from fairlead.runtime.config.secrets import is_sealed

HIDDEN = "********"
FIRST = {"connector.class": "Locked", "password": "first", "tasks.max": "1"}
SECOND = {"connector.class": "Locked", "password": "second", "tasks.max": "2"}


def put(api: RestApi, config: dict[str, str]) -> None:
    assert api.client.put("/connectors/a/config", json=config).status_code in {200, 201}


def revisions(api: RestApi) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.client.get("/connectors/a/revisions").json()["revisions"]
    return found


def stored(api: RestApi) -> dict[str, str]:
    with api.service.logs.reading("connect") as logs:
        sealed = logs.group.connectors["a"].config
    assert is_sealed(sealed["password"])
    return {key: api.service.vault.unseal("a", value) for key, value in sealed.items()}


def test_revisions_name_the_keys_that_each_has_changed_and_no_secret(api: RestApi) -> None:
    put(api, FIRST)
    put(api, FIRST)
    put(api, SECOND)
    first, second = revisions(api)
    assert first["changed"] == ["connector.class", "name", "password", "tasks.max"]
    assert second["changed"] == ["password", "tasks.max"]
    assert second["config"] == {**SECOND, "name": "a", "password": HIDDEN}
    assert first["revision"] < second["revision"]


def test_a_connector_has_its_former_config_again_with_the_secret_of_then(api: RestApi) -> None:
    put(api, FIRST)
    put(api, SECOND)
    answer = api.client.post("/connectors/a/rollback", json={})
    assert (answer.status_code, answer.json()["config"]["password"]) == (200, HIDDEN)
    assert stored(api) == {**FIRST, "name": "a"}
    number = revisions(api)[1]["revision"]
    assert api.client.post("/connectors/a/rollback", json={"revision": number}).status_code == 200
    assert stored(api) == {**SECOND, "name": "a"}
    assert [each["changed"] for each in revisions(api)][2:] == [["password", "tasks.max"]] * 2


def test_what_there_is_not_is_refused_and_nothing_changes(api: RestApi) -> None:
    assert api.client.get("/connectors/a/revisions").status_code in {404, 503}
    put(api, FIRST)
    only = api.client.post("/connectors/a/rollback", json={})
    told = "connector a has had no other config that the log tells of"
    assert (only.status_code, only.json()["message"]) == (400, told)
    absent = api.client.post("/connectors/a/rollback", json={"revision": 999})
    assert (absent.status_code, "has no revision 999; there is:" in absent.text) == (404, True)
    assert api.client.post("/connectors/b/rollback", json={}).status_code == 404
    assert api.client.post("/connectors/a/rollback", json={"revison": 1}).status_code == 400
    assert stored(api) == {**FIRST, "name": "a"}


def test_a_connector_that_was_deleted_has_no_history(api: RestApi) -> None:
    put(api, FIRST)
    assert api.client.delete("/connectors/a").status_code == 204
    assert api.client.get("/connectors/a/revisions").status_code == 404
