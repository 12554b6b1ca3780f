"""What a new config leads to is looked at before it is taken, within a deadline."""

import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from unittest.mock import Mock, call

import pytest
from rest.conftest import RestApi, service_over
from starlette.requests import Request

from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.server.principals import Principal
from fairlead.runtime.interfaces.rest.validation.external_checks import (
    MOST_ABANDONED,
    MOST_AT_ONCE,
    TURN_SECONDS,
    ExternalChecks,
)
from fairlead.runtime.pipeline.connectors.plugins import Plugin
from fairlead.runtime.pipeline.spi.context import AccessLimits, ExternalAccess, ProbeResult
from fairlead.runtime.security.rights import Access, Role
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.plugins import Locked

END = Event()


class Slow(Locked):
    """Looks at a mount that hangs."""

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:  # noqa: ARG003
        END.wait(30)
        return ProbeResult()


class Clumsy(Locked):
    """Fails over what it looks at."""

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:  # noqa: ARG003
        raise ValueError("hunter2")


@pytest.fixture
def client(api: RestApi, tmp_path: Path) -> Client:
    checks = ExternalChecks(
        lambda: ExternalAccess(AccessLimits(str(tmp_path / "groups"))), seconds=5
    )
    service = service_over(api.data_dir, api.gateway)
    object.__setattr__(service, "outside", checks)
    return Client(make_app(service))


@pytest.fixture
def config(tmp_path: Path) -> dict[str, str]:
    return {
        "connector.class": "SparkPipeline",
        "source.format": "csv",
        "source.path": f"{tmp_path}/in",
        "sink.format": "csv",
        "sink.path": f"{tmp_path}/out",
    }


def test_a_folder_that_is_still_to_come_is_told_at_creation(
    client: Client, config: dict[str, str]
) -> None:
    told = f"source.path: {config['source.path']} does not exist: the connector waits for it"
    created = client.post("/connectors?extended=true", json={"name": "a", "config": config})
    assert created.status_code == 201
    assert created.json()["warnings"] == [told]
    put = client.put("/connectors/a/config?extended=true", json=config)
    assert put.json()["warnings"] == [told]
    path = "/connector-plugins/SparkPipeline/config/validate"
    examined = client.put(f"{path}?extended=true", json={"name": "a", **config})
    assert examined.json()["warnings"] == [told]


def test_what_cannot_work_is_refused_by_validate_and_by_create_alike(
    client: Client, config: dict[str, str], tmp_path: Path
) -> None:
    config |= {"sink.path": "/dev/null/out", "source.path": f"{tmp_path}/groups/connect"}
    lines = [
        f"Invalid value {tmp_path}/groups/connect for configuration source.path:"
        f" {tmp_path}/groups/connect lies in the node's own folder {tmp_path}/groups",
        "Invalid value /dev/null/out for configuration sink.path:"
        " /dev/null/out cannot be written to: /dev/null: not a directory",
    ]
    created = client.post("/connectors", json={"name": "a", "config": config})
    assert created.status_code == 400
    assert created.json()["message"].split("\n")[1:3] == lines
    path = "/connector-plugins/SparkPipeline/config/validate"
    validated = client.put(path, json={"name": "a", **config}).json()
    assert validated["error_count"] == 2
    assert client.get("/connectors").json() == []


def test_a_look_that_takes_for_ever_is_left_behind_with_a_warning() -> None:
    END.clear()
    checks = ExternalChecks(seconds=0.01)
    told = [checks.find(Plugin(Slow), {}).warnings for _ in range(MOST_ABANDONED)]
    unseen = "what the config leads to was not looked at"
    assert told == [(f"{unseen}: that takes longer than 0 s",)] * MOST_ABANDONED
    (last,) = checks.find(Plugin(Slow), {}).warnings
    assert last == f"{unseen}: {MOST_ABANDONED} earlier looks at other systems hang"
    END.set()
    while checks.find(Plugin(Locked), {}) != ProbeResult():
        time.sleep(0.01)


def test_looks_that_hang_keep_no_other_look_waiting_for_longer_than_its_turn() -> None:
    END.clear()
    checks = ExternalChecks(seconds=0.5)
    with ThreadPoolExecutor(3 * MOST_AT_ONCE) as requests:
        found = [requests.submit(checks.find, Plugin(Slow), {}) for _ in range(3 * MOST_AT_ONCE)]
        told = Counter(each.result(60).warnings[0].partition(": ")[2] for each in found)
    assert sum(told.values()) == 3 * MOST_AT_ONCE
    assert told["that takes longer than 0 s"] >= MOST_AT_ONCE
    assert checks.find(Plugin(Locked), {}) == ProbeResult()
    END.set()


@pytest.mark.parametrize(("seconds", "turn"), [(0.5, 0.5), (9.0, TURN_SECONDS)])
def test_a_request_waits_for_its_turn_no_longer_than_for_an_answer(
    seconds: float, turn: float
) -> None:
    checks = ExternalChecks(seconds=seconds)
    checks._free = free = Mock(**{"acquire.return_value": False})  # pyright: ignore[reportPrivateUsage]
    (told,) = checks.find(Plugin(Locked), {}).warnings
    assert told.endswith("was not looked at: others are being looked at")
    assert free.mock_calls == [call.acquire(timeout=turn)]


def test_a_class_that_fails_over_it_tells_no_value(caplog: pytest.LogCaptureFixture) -> None:
    findings = ExternalChecks().find(Plugin(Clumsy), {})
    (told,) = findings.warnings
    assert told.endswith("was not looked at: the connector class fails (ValueError)")
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("role", Role)
def test_only_who_may_put_a_config_has_what_it_leads_to_looked_at(api: RestApi, role: Role) -> None:
    looked: list[Mapping[str, str]] = []

    class Looking(ExternalChecks):
        def find(self, plugin: Plugin, config: Mapping[str, str]) -> ProbeResult:
            looked.append(config)
            return super().find(plugin, config)

    async def identify(_: Request) -> Principal:
        return Principal(("192.0.2.7", 4711), ("127.0.0.1", 8083), Access.of(role))

    service = service_over(api.data_dir, api.gateway)
    object.__setattr__(service, "outside", Looking())
    client = Client(make_app(service, identify=identify))
    locked = {"connector.class": "Locked", "name": "a", "password": "hunter2"}
    for path in ("/connector-plugins/Locked/config/validate", "/connectors/a/config/diff"):
        assert client.put(path, json=locked).status_code == 200
    assert len(looked) == (2 if role is Role.ADMIN else 0)
