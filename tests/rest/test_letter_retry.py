"""`POST /connectors/{connector}/dead-letters/retry`: a connector that retries those of another."""

from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from rest.conftest import RestApi
from rest.test_reach import limited

from fairlead.events.model import RunState
from fairlead.runtime.config.secrets import is_sealed
from fairlead.runtime.security.rights import Role

PATH = "/connectors/a/dead-letters/retry"
QUEUE = "errors.deadletterqueue.path"
PASSWORD = "sink.connection.password"
HIDDEN = "********"


def put(api: RestApi, folder: Path, **more: str) -> None:
    config = {
        "connector.class": "SparkPipeline",
        "source.path": f"{folder}/in",
        "source.format": "csv",
        "source.schema": "n INT",
        "sink.type": "jdbc",
        "sink.connection.url": "jdbc:postgresql://db/x",
        "sink.table.name.format": "t",
        "sink.connection.user": "u",
        PASSWORD: "hunter2-hunter2",
        "errors.tolerance": "all",
        QUEUE: f"{folder}/bad",
    }
    answer = api.client.put("/connectors/a/config", json={**config, **more})
    assert answer.status_code in {HTTPStatus.CREATED, HTTPStatus.OK}, answer.text


def stored(api: RestApi, name: str) -> dict[str, str]:
    with api.service.logs.reading("connect") as logs:
        return dict(logs.group.connectors[name].config)


def retry(api: RestApi, query: str = "") -> tuple[int, dict[str, Any]]:
    answer = api.client.post(f"{PATH}{query}")
    return answer.status_code, answer.json()


def test_a_dry_run_shows_the_config_and_makes_nothing(api: RestApi, tmp_path: Path) -> None:
    put(api, tmp_path)
    status, shown = retry(api, "?dry_run=true")
    assert (status, shown["name"], shown["is_new"]) == (HTTPStatus.OK, "a-retry", True)
    assert shown["config"]["source.path"] == f"{tmp_path}/bad"
    assert shown["config"][PASSWORD] == HIDDEN
    assert api.client.get("/connectors").json() == ["a"]


def test_it_has_the_secrets_of_the_first_one_sealed_for_itself(
    api: RestApi, tmp_path: Path
) -> None:
    put(api, tmp_path)
    status, made = retry(api)
    assert (status, made["connector"], made["is_new"]) == (HTTPStatus.CREATED, "a", True)
    assert "hunter2" not in str(made)
    config = stored(api, "a-retry")
    assert is_sealed(config[PASSWORD])
    assert config[PASSWORD] != stored(api, "a")[PASSWORD]
    assert api.service.vault.unseal("a-retry", config[PASSWORD]) == "hunter2-hunter2"
    assert config["source.connector"] == "a"


def test_it_has_the_secrets_of_the_cluster_whose_topic_it_reads(
    api: RestApi, tmp_path: Path
) -> None:
    cluster = {"topic.name": "bad", "context.headers.enable": "true", "bootstrap.servers": "h:1"}
    cluster |= {"sasl.password": "swordfish-swordfish"}
    keys = {f"errors.deadletterqueue.{key}": text for key, text in cluster.items()}
    put(api, tmp_path, **{QUEUE: "", **keys})
    assert is_sealed(stored(api, "a")["errors.deadletterqueue.sasl.password"])
    status, made = retry(api)
    assert (status, made["config"]["source.topics"]) == (HTTPStatus.CREATED, "bad")
    assert "swordfish" not in str(made)
    config = stored(api, "a-retry")
    for key in ("source.sasl.password", "errors.deadletterqueue.sasl.password"):
        assert is_sealed(config[key])
        assert api.service.vault.unseal("a-retry", config[key]) == "swordfish-swordfish"


def test_another_request_gives_it_the_present_transforms(api: RestApi, tmp_path: Path) -> None:
    put(api, tmp_path)
    retry(api)
    api.client.put("/connectors/a-retry/pause")
    mended = {"transforms": "t", "transforms.t.type": "select", "transforms.t.columns": "n + 1"}
    put(api, tmp_path, **mended)
    status, changed = retry(api)
    assert (status, changed["is_new"]) == (HTTPStatus.OK, False)
    assert stored(api, "a-retry")["transforms.t.columns"] == "n + 1"
    with api.service.logs.reading("connect") as logs:
        assert logs.group.target_state("a-retry") is RunState.RUNNING
    again = api.client.post("/connectors/a-retry/dead-letters/retry").json()
    assert again["config"]["source.path"] == f"{tmp_path}/bad-retry"


def test_no_other_connector_of_that_name_is_changed(api: RestApi, tmp_path: Path) -> None:
    put(api, tmp_path)
    api.client.put("/connectors/a-retry/config", json={"connector.class": "Locked"})
    status, refusal = retry(api)
    assert status == HTTPStatus.CONFLICT
    assert "does not retry the dead letters of a: nothing was changed" in refusal["message"]
    assert stored(api, "a-retry")["connector.class"] == "Locked"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({QUEUE: ""}, f"of a cannot be retried: {QUEUE} is not set"),
        ({"connector.class": "Locked"}, "connectors of this class keep no dead letters that can"),
    ],
)
def test_it_is_said_why_there_is_nothing_to_retry(
    api: RestApi, tmp_path: Path, more: dict[str, str], told: str
) -> None:
    put(api, tmp_path, **more)
    status, refusal = retry(api)
    assert status == HTTPStatus.CONFLICT
    assert told in refusal["message"]
    assert api.client.post("/connectors/b/dead-letters/retry").status_code == HTTPStatus.NOT_FOUND


def test_it_takes_the_right_to_both_connectors(api: RestApi, tmp_path: Path) -> None:
    put(api, tmp_path)
    for patterns in (("a",), ("a-retry",)):
        answer = limited(Role.ADMIN, *patterns)(api).post(PATH)
        assert answer.status_code in {HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}
    assert api.client.get("/connectors").json() == ["a"]
    assert limited(Role.ADMIN, "a*")(api).post(PATH).status_code == HTTPStatus.CREATED
    assert limited(Role.OPERATOR, "a*")(api).post(PATH).status_code == HTTPStatus.FORBIDDEN
