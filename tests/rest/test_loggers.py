"""Levels of logging over REST, as in Kafka Connect (KIP-495, KIP-976)."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from rest.conftest import RestApi

from fairlead.actors.transport import log_levels

QUIET = "fairlead.quiet"
UNKNOWN = {"error_code": 404, "message": "Logger fairlead.none not found."}


@pytest.fixture(autouse=True)
def levels_again(api: RestApi) -> Iterator[None]:
    """This process has its own levels again afterwards."""
    root = logging.root.level
    logging.getLogger(QUIET)
    yield
    log_levels.forget(api.data_dir)
    log_levels.apply(api.data_dir)
    logging.root.setLevel(root)


def test_a_level_is_set_in_all_processes_and_told_with_its_time(api: RestApi) -> None:
    client = api.client
    assert client.get("/admin/loggers/fairlead.none").json() == UNKNOWN
    assert client.get(f"/admin/loggers/{QUIET}").json()["last_modified"] is None
    changed = client.put("/admin/loggers/fairlead", json={"level": " error "})
    assert changed.status_code == 200
    assert {"fairlead", QUIET} <= set(changed.json())
    told = client.get(f"/admin/loggers/{QUIET}").json()
    assert (told["level"], type(told["last_modified"])) == ("ERROR", int)
    assert client.get("/admin/loggers").json()[QUIET] == told
    assert logging.getLogger(QUIET).getEffectiveLevel() == logging.ERROR
    assert api.gateway.announced == 1


@pytest.mark.parametrize(
    "name", ["fairlead", "fairlead.actors", "fairlead.runtime.node.worker", "fairlead.projections"]
)
def test_the_loggers_above_others_are_listed_and_set_as_these_are(api: RestApi, name: str) -> None:
    path, below = f"/admin/loggers/{name}", f"{name}.below"
    logging.getLogger(below)
    assert name in api.client.get("/admin/loggers").json()
    assert api.client.get(path).status_code == 200
    assert {name, below} <= {*api.client.put(path, json={"level": "DEBUG"}).json()}
    assert api.client.get(path).json()["level"] == "DEBUG"
    assert logging.getLogger(below).isEnabledFor(logging.DEBUG)


def test_loggers_that_are_off_are_not_listed_and_told_each_time_as_in_connect(api: RestApi) -> None:
    path = f"/admin/loggers/{QUIET}"
    for _ in range(2):
        assert api.client.put(path, json={"level": "OFF"}).json() == [QUIET]
        assert api.client.get(path).json()["level"] == "OFF"
        assert QUIET not in api.client.get("/admin/loggers").json()
    assert api.client.put(path, json={"level": "INFO"}).json() == [QUIET]
    assert api.client.get("/admin/loggers").json()[QUIET]["level"] == "INFO"


def test_only_loggers_whose_level_is_another_now_are_told(api: RestApi) -> None:
    path = f"/admin/loggers/{QUIET}"
    answers = [
        api.client.put(f"{path}{scope}", json={"level": "ERROR"})
        for scope in ("", "?scope=worker", "?scope=bogus", "?scope=", "?scope=CLUSTER")
    ]
    assert [each.status_code for each in answers] == [200, 200, 200, 200, 204]
    assert [each.json() for each in answers[:-1]] == [[QUIET], [], [], []]
    assert answers[-1].content == b""


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({}, 400, "Desired 'level' parameter was not specified in request."),
        ({"level": None}, 400, "Desired 'level' parameter was not specified in request."),
        ({"level": "LOUD"}, 404, "invalid log level 'LOUD'."),
        ({"level": 5}, 404, "invalid log level '5'."),
    ],
)
def test_what_is_no_level_changes_nothing(
    api: RestApi, body: dict[str, object], status: int, message: str
) -> None:
    refused = api.client.put("/admin/loggers/root", json=body)
    assert refused.json() == {"error_code": status, "message": message}
    assert log_levels.read(api.data_dir) == {}


def test_without_the_supervisor_it_is_said_whose_level_is_another(api: RestApi) -> None:
    api.gateway.group = None
    refused = api.client.put(f"/admin/loggers/{QUIET}", json={"level": "OFF"})
    assert refused.status_code == 503
    assert refused.json()["message"].startswith("the level counts here, and for processes that")
    assert api.client.get(f"/admin/loggers/{QUIET}").json()["level"] == "OFF"


def test_a_logger_that_another_request_makes_meanwhile_is_not_told(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(folder: Path) -> None:
        logging.getLogger(f"{QUIET}.late")
        apply(folder)

    apply = log_levels.apply
    monkeypatch.setattr(log_levels, "apply", load)
    assert api.client.put(f"/admin/loggers/{QUIET}", json={"level": "FATAL"}).json() == [QUIET]
