"""The audit log has each change and each refusal; it holds up no request, and its loss is told."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rest.conftest import RestApi

from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.commands.service import Service
from fairlead.runtime.interfaces.rest.server.admission import Authenticator
from fairlead.runtime.security.audit import REFUSALS_PER_SECOND, AuditLog
from fairlead.runtime.security.proofs.entries import (
    AccessEntry,
    EntryKind,
    changing_entries,
    follow_entries,
)
from fairlead.runtime.security.proofs.passwords import digest_token, make_token
from fairlead.runtime.security.rights import Role
from fairlead.runtime.security.settings import AccessSettings, Authentication
from fairlead_tests.rest.client import Client

TOKEN = make_token()
ID = {"X-Request-Id": "r-1"}
HEADERS = {**ID, "Authorization": f"Bearer {TOKEN}"}
LOCKED = {"connector.class": "Locked"}


@pytest.fixture
def audited(api: RestApi, tmp_path: Path) -> Service:
    service = replace(api.service, audit=AuditLog(tmp_path / "logs"))
    (tmp_path / "logs").mkdir()
    entry = AccessEntry("ci", EntryKind.TOKEN, Role.OPERATOR, digest_token(TOKEN), owner="ann")
    with changing_entries(api.data_dir) as entries:
        entries["ci"] = entry
    return service


def client_of(api: RestApi, service: Service, *methods: Authentication) -> Client:
    settings = AccessSettings(methods)
    identify = Authenticator(settings, follow_entries(api.data_dir))
    return Client(make_app(service, identify=identify, access=settings))


def lines(service: Service, folder: Path) -> list[dict[str, Any]]:
    """Return the lines of the log, without their times."""
    assert service.audit is not None
    service.audit.close()
    read = [json.loads(each) for each in (folder / "logs" / "audit.log").read_text().splitlines()]
    return [{name: each[name] for name in each if name != "time"} for each in read]


def test_changes_and_refusals_are_written_and_reads_are_not(
    api: RestApi, audited: Service, tmp_path: Path
) -> None:
    client = client_of(api, audited, Authentication.TOKEN)
    api.client.put("/connectors/a/config", json=LOCKED)
    assert client.get("/connectors", headers=HEADERS).status_code == 200
    assert client.put("/connectors/a/pause", headers=HEADERS).status_code == 202
    assert client.put("/connectors/b/pause", headers=HEADERS).status_code == 404
    assert client.put("/connectors/a/config", json=LOCKED, headers=HEADERS).status_code == 403
    assert client.get("/connectors/a%0Ab").status_code == 400
    assert client.get("/connectors/a?token=x", headers=ID).status_code == 401
    ann = {"principal": "ann (token ci)", "authentication": "token", "address": "127.0.0.1"}
    pause = {"method": "PUT", "route": "/connectors/{connector}/pause", "request_id": "r-1"}
    nobody = {"principal": None, "authentication": None, "address": "127.0.0.1"}
    assert lines(audited, tmp_path) == [
        {
            **ann,
            **pause,
            "path": "/connectors/a/pause",
            "connectors": ["a"],
            "status": 202,
            "outcome": "done",
        },
        {
            **ann,
            **pause,
            "path": "/connectors/b/pause",
            "connectors": ["b"],
            "status": 404,
            "outcome": "failed",
        },
        {
            **ann,
            "method": "PUT",
            "path": "/connectors/a/config",
            "route": "/connectors/{connector}/config",
            "connectors": ["a"],
            "status": 403,
            "outcome": "refused",
            "request_id": "r-1",
        },
        {
            **nobody,
            "method": "GET",
            "path": "/connectors/a",
            "route": None,
            "connectors": [],
            "status": 401,
            "outcome": "refused",
            "request_id": "r-1",
        },
    ]
    assert (tmp_path / "logs" / "audit.log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("caller", ["", "ann"])
def test_refusals_do_not_push_out_what_others_have_changed(tmp_path: Path, caller: str) -> None:
    audit = AuditLog(tmp_path)
    for number in range(10 * REFUSALS_PER_SECOND):
        audit.write({"number": number}, refused=caller)
    audit.write({"number": -1})
    audit.close()
    written = [json.loads(each) for each in (tmp_path / "audit.log").read_text().splitlines()]
    assert written[-1]["number"] == -1
    assert len(written) < 10 * REFUSALS_PER_SECOND
    assert len(written) + sum(each.get("omitted", 0) for each in written) == (
        10 * REFUSALS_PER_SECOND + 1
    )


def test_a_log_that_cannot_be_written_stops_no_request_and_is_told(
    api: RestApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    audit = AuditLog(tmp_path / "file")
    client = Client(make_app(replace(api.service, audit=audit)))
    for name in ("a", "b"):
        assert client.put(f"/connectors/{name}/config", json=LOCKED).status_code == 201
    audit.close()
    problem = f"{tmp_path}/file/audit.log cannot be written: changes are not audited"
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == [problem]
    assert problem in client.get("/health").json()["message"]


def test_a_body_may_have_as_many_bytes_as_the_setting_says(api: RestApi) -> None:
    client = Client(make_app(api.service, access=AccessSettings(request_max_bytes=100)))
    refused = client.put("/connectors/a/config", json={**LOCKED, "extra.a": "x" * 100})
    assert (refused.status_code, refused.json()["message"]) == (
        413,
        "a body may have 100 bytes at most",
    )
    assert client.put("/connectors/a/config", json=LOCKED).status_code == 201
