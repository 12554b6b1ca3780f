"""Probes tell whether the process lives, and whether the node can do its work."""

import os
import time
from dataclasses import replace
from typing import Any

import pytest
from rest.conftest import RestApi
from starlette.requests import Request

from fairlead.events.log.process import process_of
from fairlead.events.log.space import DiskSpace
from fairlead.runtime.cluster.node_files import (
    EngineFile,
    SlowProcess,
    engine_file,
    write_engine,
    write_slow,
)
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.server.principals import Principal
from fairlead.runtime.interfaces.rest.validation.external_checks import ExternalChecks
from fairlead_tests.rest.client import Client

READY = (200, {"status": "ready", "reasons": []})


def ready(client: Client) -> tuple[int, dict[str, Any]]:
    answer = client.get("/health/ready")
    return answer.status_code, answer.json()


def reasons(client: Client) -> list[str]:
    code, told = ready(client)
    assert (code, told["status"]) == (503, "not ready")
    return [each["reason"] for each in told["reasons"]]


def test_a_node_is_ready_once_a_worker_has_joined_and_says_what_it_waits_for(api: RestApi) -> None:
    assert ready(api.client) == (
        503,
        {
            "status": "not ready",
            "reasons": [{"reason": "worker", "message": "no worker has joined the group"}],
        },
    )
    for outside in (None, ExternalChecks()):
        without_workers = replace(api.service, workers=0, outside=outside)
        assert ready(Client(make_app(without_workers))) == READY
    api.group.ask("seat", "w1")
    assert ready(api.client) == READY


def test_all_that_is_missing_is_told_at_once(api: RestApi, monkeypatch: pytest.MonkeyPatch) -> None:
    api.group.ask("seat", "w1")
    run_folder = api.data_dir / "run"
    run_folder.mkdir()
    api.gateway.group = None
    write_slow(run_folder, [SlowProcess("group", "x", 12, time.monotonic(), 30.0)])
    full = DiskSpace(api.data_dir, 0)
    monkeypatch.setattr(api.service.logs, "room", lambda: full)
    with_spark = Client(make_app(replace(api.service, outside=ExternalChecks())))
    assert reasons(with_spark) == ["silent", "group", "disk", "engine"]
    me = process_of(os.getpid())
    write_engine(engine_file(run_folder, "w1"), EngineFile(me, 12, "starting", 0, ""))
    assert reasons(with_spark) == ["silent", "group", "disk", "engine"]
    write_engine(engine_file(run_folder, "w1"), EngineFile(me, 12, "running", 0, ""))
    assert reasons(with_spark) == ["silent", "group", "disk"]
    assert with_spark.get("/health/live").json() == {"status": "alive"}


def test_a_process_that_does_not_matter_may_be_slow(api: RestApi) -> None:
    api.group.ask("seat", "w1")
    (api.data_dir / "run").mkdir()
    write_slow(api.data_dir / "run", [SlowProcess("worker", "w1", 12, time.monotonic(), 30.0)])
    assert ready(api.client) == READY


def test_probes_answer_anybody_by_any_name(api: RestApi) -> None:
    async def refuse(_: Request) -> Principal:
        raise AssertionError("nobody is asked who they are")

    client = Client(make_app(api.service, identify=refuse))
    for path, code in (("/health/live", 200), ("/health/ready", 503)):
        assert client.get(path, headers={"host": "10.1.2.3:8083"}).status_code == code
    assert client.get("/health", headers={"host": "10.1.2.3:8083"}).status_code == 403
