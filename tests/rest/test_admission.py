"""Who is admitted to REST: passwords, tokens, certificates, the Unix socket; and how often."""

import asyncio
import os
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from rest.conftest import RestApi
from rest.test_metrics_page import value
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.server.admission import Authenticator, NotAdmittedError
from fairlead.runtime.security.proofs.entries import (
    AccessEntry,
    EntryKind,
    changing_entries,
    follow_entries,
)
from fairlead.runtime.security.proofs.passwords import (
    PasswordChecks,
    digest_token,
    hash_password,
    make_token,
)
from fairlead.runtime.security.rights import Role
from fairlead.runtime.security.settings import AccessSettings, Authentication
from fairlead.runtime.security.throttling import FREE_FAILURES, FailedLogins
from fairlead_tests.rest.client import Client

PASSWORD = "correct horse"
HASH = hash_password(PASSWORD)
TOKEN = make_token()
ALL = (Authentication.BASIC, Authentication.TOKEN, Authentication.MTLS)

Headers = Mapping[str, str]


def basic(name: str, password: str) -> Headers:
    pair = b64encode(f"{name}:{password}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def bearer(token: str) -> Headers:
    return {"Authorization": f"Bearer {token}"}


def add(data_dir: Path, *entries: AccessEntry) -> None:
    with changing_entries(data_dir) as kept:
        kept.update({each.name: each for each in entries})


def certified(subject: str, **more: float) -> Mapping[str, Any]:
    """Return what the scope has of a connection with a certificate."""
    tls = {"client_cert_name": subject, "client_cert_not_after": time.time() + 60, **more}
    return {"extensions": {"tls": tls}}


def client_of(
    api: RestApi, *methods: Authentication, extensions: Mapping[str, Any] | None = None, **more: Any
) -> Client:
    """Return a client of the interface with some authentication."""
    settings = AccessSettings(methods or ALL, **more)
    identify = Authenticator(settings, follow_entries(api.data_dir))
    app = make_app(api.service, identify=identify, access=settings)

    async def extended(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, **(extensions or {})}, receive, send)

    return Client(extended)


@pytest.fixture
def ann(api: RestApi) -> RestApi:
    """An interface with a user, a token and a certificate."""
    add(
        api.data_dir,
        AccessEntry("ann", EntryKind.USER, Role.ADMIN, HASH),
        AccessEntry("ci", EntryKind.TOKEN, Role.OPERATOR, digest_token(TOKEN), owner="ann"),
        AccessEntry("bob", EntryKind.CERTIFICATE, Role.VIEWER),
    )
    return api


def told(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["message"]


def test_who_proves_nothing_is_asked_who_they_are(ann: RestApi) -> None:
    refused = client_of(ann).get("/connectors")
    assert told(refused) == (
        401,
        "this interface asks who you are: send a user with a password (Authorization: Basic), or a"
        " token (Authorization: Bearer fl_...), or a certificate with the connection; nothing was"
        " done",
    )
    assert refused.headers.get_list("www-authenticate") == [
        'Basic realm="fairlead", charset="UTF-8"',
        'Bearer realm="fairlead"',
    ]
    assert client_of(ann).get("/no/such/path").status_code == 401


def test_a_right_pair_a_token_and_a_certificate_are_admitted(ann: RestApi) -> None:
    client = client_of(ann)
    assert client.get("/connectors", headers=basic("ann", PASSWORD)).status_code == 200
    assert client.get("/connectors", headers=bearer(TOKEN)).status_code == 200
    assert client_of(ann, extensions=certified("CN=bob,O=Example")).get("/").status_code == 200


@pytest.mark.parametrize(
    ("subject", "more"),
    [
        (r"CN=eve,O=x\,CN=bob", {}),
        ("CN=eve,CN=bob", {}),
        (r"CN=CN=ann\,O=acme", {}),
        ("O=bob", {}),
        ("CN=bob", {"client_cert_not_after": 1.0}),
    ],
)
def test_a_certificate_is_nobody_elses_and_does_not_count_after_its_end(
    ann: RestApi, subject: str, more: dict[str, float]
) -> None:
    add(ann.data_dir, AccessEntry("CN=ann,O=acme", EntryKind.CERTIFICATE, Role.ADMIN))
    refused = client_of(ann, extensions=certified(subject, **more)).get("/")
    assert refused.status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        basic("ann", "wrong horse"),
        basic("ann", ""),
        basic("ann", "x" * 10_000),
        basic("ben", PASSWORD),
        basic("ci", TOKEN),
        bearer("fl_" + "A" * 43),
        bearer(""),
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic " + b64encode(b"\xff:\xff").decode()},
        {"Authorization": "Basic " + b64encode(b"ann").decode()},
        {"Authorization": b"Basic \xff\xfe"},
        {"Authorization": "Digest username=ann"},
        {"Authorization": ""},
        bearer("x" * 100_000),
    ],
    ids=range(14),
)
def test_what_proves_nothing_is_refused(ann: RestApi, headers: Headers) -> None:
    refused = client_of(ann).get("/connectors", headers=headers)
    assert (refused.status_code, "www-authenticate" in refused.headers) == (401, True)


def test_who_is_refused_is_counted_by_how_they_tried(ann: RestApi) -> None:
    client = client_of(ann, Authentication.BASIC, Authentication.MTLS)
    for headers in (None, basic("ann", "wrong horse"), bearer(TOKEN)):
        client.get("/connectors", headers=headers)
    client_of(ann, extensions=certified("CN=eve")).get("/connectors")
    counted = {
        mechanism: value(ann, "fairlead_auth_failures_total", listener="rest", mechanism=mechanism)
        for mechanism in ("none", "basic", "other", "mtls", "token")
    }
    assert counted == {"none": 1, "basic": 1, "other": 1, "mtls": 1, "token": None}


def test_a_kind_of_proof_that_is_not_chosen_is_refused(ann: RestApi) -> None:
    by_token = client_of(ann, Authentication.TOKEN)
    assert told(by_token.get("/", headers=basic("ann", PASSWORD))) == (
        401,
        "this is not accepted here: send a token (Authorization: Bearer fl_...); nothing was done",
    )
    bob = client_of(ann, Authentication.TOKEN, extensions=certified("CN=bob"))
    assert bob.get("/").status_code == 401


def test_a_token_in_the_url_is_refused_and_told_where_it_belongs(ann: RestApi) -> None:
    assert told(client_of(ann).get(f"/connectors?access_token={TOKEN}")) == (
        401,
        "access_token is in the URL, where logs and histories keep it: treat it as known to others,"
        " and send another one as the header `Authorization: Bearer TOKEN`; nothing was done",
    )


def test_an_expired_entry_is_refused_with_its_reason_in_the_log(
    ann: RestApi, caplog: pytest.LogCaptureFixture
) -> None:
    token = make_token()
    old = AccessEntry("old", EntryKind.TOKEN, Role.ADMIN, digest_token(token), expires_ms=1)
    add(ann.data_dir, old)
    assert told(client_of(ann).get("/", headers=bearer(token))) == (
        401,
        "this token is unknown, wrong, or has expired; nothing was done",
    )
    assert caplog.messages[-1] == "token old is refused: it has expired (from 127.0.0.1)"


@pytest.mark.parametrize(
    ("is_own", "uid", "status"),
    [(True, os.geteuid(), 200), (True, os.geteuid() + 1, 401), (False, os.geteuid(), 401)],
)
def test_the_nodes_own_user_proves_nothing_at_the_nodes_own_socket_alone(
    ann: RestApi, is_own: bool, uid: int, status: int
) -> None:
    known = {"fairlead.listener": {"own": is_own}, "unix": {"uid": uid}}
    scope = {"server": ("/run/rest.sock", None), "client": None, "extensions": known}
    assert client_of(ann, extensions=scope).get("/connectors").status_code == status
    open_too = client_of(ann, Authentication.NONE, *ALL, extensions=scope)
    assert open_too.get("/connectors").status_code == 200


def test_with_none_whoever_is_on_this_machine_proves_nothing(ann: RestApi) -> None:
    methods = (Authentication.NONE, Authentication.TOKEN)
    assert client_of(ann, *methods).get("/connectors").status_code == 200
    elsewhere = client_of(ann, *methods, extensions={"server": ("192.0.2.1", 8083)})
    assert elsewhere.get("/connectors").status_code == 401


def test_a_change_is_said_to_be_that_of_who_proved_it(ann: RestApi) -> None:
    config = {"connector.class": "Locked"}
    made = client_of(ann).put("/connectors/a/config", json=config, headers=basic("ann", PASSWORD))
    assert made.status_code == 201
    paused = client_of(ann).put("/connectors/a/pause", headers=bearer(TOKEN))
    assert paused.status_code == 202
    assert [each.principal for each in ann.gateway.sent] == ["ann", "ann (token ci)"]


def test_a_revoked_entry_does_not_count_from_the_next_request_on(ann: RestApi) -> None:
    client = client_of(ann)
    assert client.get("/", headers=basic("ann", PASSWORD)).status_code == 200
    with changing_entries(ann.data_dir) as entries:
        del entries["ann"]
    assert client.get("/", headers=basic("ann", PASSWORD)).status_code == 401
    os.unlink(ann.data_dir / "run" / "access.json")  # noqa: PTH108
    assert client.get("/", headers=bearer(TOKEN)).status_code == 401


def test_a_user_who_is_revoked_while_the_password_is_checked_is_not_admitted(
    ann: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def check(*_: object) -> bool:
        with changing_entries(ann.data_dir) as entries:
            del entries["ann"]
        return True

    monkeypatch.setattr(PasswordChecks, "check", check)
    assert client_of(ann).get("/", headers=basic("ann", PASSWORD)).status_code == 401


def test_wrong_passwords_cost_their_address_a_pause_and_nobody_else(ann: RestApi) -> None:
    settings = AccessSettings(ALL)
    failed = FailedLogins(clock=lambda: 0.0)  # no time passes
    identify = Authenticator(settings, follow_entries(ann.data_dir), failed)
    app = make_app(ann.service, identify=identify, access=settings)

    def client_at(address: str) -> Client:
        async def moved(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, "client": (address, 4711)}, receive, send)

        return Client(moved)

    attacker, other = client_at("192.0.2.7"), client_at("192.0.2.8")
    assert attacker.get("/", headers=basic("ann", PASSWORD)).status_code == 200
    statuses = [attacker.get("/", headers=basic("ann", str(n))).status_code for n in range(20)]
    assert statuses == [401] * 6 + [429] * 14
    refused = attacker.get("/", headers=basic("ann", "x"))
    assert int(refused.headers["retry-after"]) >= 1
    assert attacker.get("/", headers=bearer(TOKEN)).status_code == 200
    assert attacker.get("/", headers=basic("ann", PASSWORD)).status_code == 200  # remembered
    assert other.get("/", headers=basic("ann", "x")).status_code == 401
    assert other.get("/", headers=basic("ann", PASSWORD)).status_code == 200


def test_ten_thousand_wrong_passwords_are_slowed_and_others_are_not(ann: RestApi) -> None:
    failed = FailedLogins(clock=lambda: 0.0)  # no time passes
    identify = Authenticator(AccessSettings(ALL), follow_entries(ann.data_dir), failed)

    async def status_of(address: str, password: str) -> int:
        header = basic("ann", password)["Authorization"].encode()
        scope = {"type": "http", "headers": [(b"authorization", header)], "query_string": b""}
        request = Request({**scope, "client": (address, 1), "server": ("127.0.0.1", 8083)})
        try:
            await identify(request)
        except NotAdmittedError as refused:
            return refused.status
        return 200

    async def play() -> tuple[Counter[int], int]:
        guesses = Counter([await status_of("192.0.2.7", str(n)) for n in range(10_000)])
        return guesses, await status_of("192.0.2.8", PASSWORD)

    assert asyncio.run(play()) == ({401: FREE_FAILURES + 1, 429: 9_999 - FREE_FAILURES}, 200)


def test_too_many_requests_of_a_caller_are_told_when_to_come_again(ann: RestApi) -> None:
    client = client_of(ann, requests_per_second=3)
    statuses = [client.get("/", headers=bearer(TOKEN)).status_code for _ in range(3)]
    refused = client.get("/", headers=bearer(TOKEN))
    assert (statuses, refused.status_code) == ([200] * 3, 429)
    assert refused.headers["retry-after"] == "1"
    assert client.get("/", headers=basic("ann", PASSWORD)).status_code == 200
    unknown = [client.get("/").status_code for _ in range(4)]
    assert unknown == [401] * 3 + [429]
