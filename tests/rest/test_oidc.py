"""Tokens of an identity provider: only those that it has signed, for us, now; and their roles."""

import asyncio
import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from rest.conftest import RestApi

from fairlead.runtime.config.load import load_config
from fairlead.runtime.config.sources import ConfigError
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.server.admission import Authenticator
from fairlead.runtime.security.proofs.entries import follow_entries
from fairlead.runtime.security.proofs.oidc import Bearer, OidcTokens, values_at
from fairlead.runtime.security.proofs.signed_tokens import ProviderKeys
from fairlead.runtime.security.rights import RIGHTS, Access, Grant, Right, Role
from fairlead.runtime.security.settings import (
    AccessSettings,
    Authentication,
    BearerRefusedError,
    OidcSettings,
)
from fairlead_tests.rest.client import Client

jwt = pytest.importorskip("jwt")

OWN = rsa.generate_private_key(65_537, 2_048)
CURVE = ec.generate_private_key(ec.SECP256R1())
OTHER = rsa.generate_private_key(65_537, 2_048)
ISSUER, AUDIENCE = "https://id.example", "fairlead"
MAPPING = "admins:admin,ops:operator:orders-*,urn:x:viewer"


def jwks_of(**keys: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    listed: list[dict[str, Any]] = []
    for key_id, key in keys.items():
        kind = "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"
        algorithm = jwt.get_algorithm_by_name(kind)
        jwk = json.loads(algorithm.to_jwk(key.public_key()))
        listed.append({**jwk, "kid": key_id})
    return {"keys": listed}


def claims(**others: Any) -> dict[str, Any]:
    now = int(time.time())
    usual = {"iss": ISSUER, "aud": AUDIENCE, "exp": now + 600, "sub": "ann", "groups": ["admins"]}
    return {**usual, **others}


def signed(key: Any = OWN, key_id: str | None = "k1", algorithm: str = "RS256", **of: Any) -> str:
    headers = {} if key_id is None else {"kid": key_id}
    token: str = jwt.encode(claims(**of), key, algorithm, headers)
    return token


@pytest.fixture
def settings(tmp_path: Path) -> OidcSettings:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps(jwks_of(k1=OWN, k2=CURVE)))
    access = AccessSettings.parse(
        [
            "authentication=oidc",
            f"oidc.issuer={ISSUER}",
            f"oidc.jwks={file}",
            f"oidc.audience={AUDIENCE}",
            "oidc.roles_claim=groups",
            f"oidc.roles={MAPPING}",
        ]
    )
    assert access.oidc is not None
    assert AccessSettings.parse(access.texts()) == access
    return access.oidc


async def refusal(tokens: OidcTokens, token: str) -> str:
    with pytest.raises(BearerRefusedError) as refused:
        await tokens.read(token)
    return str(refused.value)


def read(settings: OidcSettings, token: str) -> Bearer:
    bearer: Bearer = run(OidcTokens(settings).read, token)
    return bearer


def run(function: Callable[..., Any], *arguments: Any) -> Any:
    return asyncio.run(function(*arguments))


def test_a_token_that_the_provider_signed_has_the_roles_of_its_groups(
    settings: OidcSettings,
) -> None:
    assert read(settings, signed()) == Bearer("ann", Access((Grant(RIGHTS[Role.ADMIN]),)))
    both = signed(CURVE, "k2", "ES256", groups=["ops", "urn:x", "unknown"])
    assert read(settings, both).access == Access(
        (Grant(RIGHTS[Role.OPERATOR], ("orders-*",)), Grant(RIGHTS[Role.VIEWER]))
    )
    assert read(settings, signed(groups="ops others")).access.has(Right.OPERATE, "orders-a")
    nested = replace(settings, roles_claim="realm.roles", name_claim="email")
    bearer = read(nested, signed(realm={"roles": ["admins"]}, email="a\nb@example.org"))
    assert bearer == Bearer("'a\\nb@example.org'", Access((Grant(RIGHTS[Role.ADMIN]),)))
    assert read(settings, signed(groups={"admins": 1})).access == Access(())
    assert read(settings, signed(exp=int(time.time()) - 30)).name == "ann"  # clocks differ


def unsigned() -> str:
    parts = ({"alg": "none", "kid": "k1"}, claims())
    encoded = (urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts)
    return f"{'.'.join(encoded)}."


def by_public_key() -> str:
    """A token signed by HMAC with the public key as its secret."""
    import hashlib  # noqa: PLC0415
    import hmac  # noqa: PLC0415

    secret = OWN.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = ({"alg": "HS256", "kid": "k1"}, claims())
    encoded = [urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in parts]
    signature = hmac.new(secret, b".".join(encoded), hashlib.sha256).digest()
    return b".".join([*encoded, urlsafe_b64encode(signature).rstrip(b"=")]).decode()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (unsigned, "its algorithm is 'none'"),
        (by_public_key, "its algorithm is 'HS256'"),
        (lambda: signed(OTHER), "Signature verification failed"),
        (lambda: signed(key_id="k2"), "The specified alg value is not allowed"),
        (lambda: signed(key_id="../../k1"), "its key '../../k1' is unknown"),
        (lambda: signed(key_id=None), "its key None is unknown"),
        (lambda: signed(aud="others"), "Audience doesn't match"),
        (lambda: signed(aud=None), 'Token is missing the "aud" claim'),
        (lambda: signed(iss="https://evil.example"), "Invalid issuer"),
        (lambda: signed(exp=int(time.time()) - 90), "Signature has expired"),
        (lambda: signed(exp=None), 'Token is missing the "exp" claim'),
        (lambda: signed(nbf=int(time.time()) + 90), "The token is not yet valid (nbf)"),
        (lambda: signed(sub=""), "it has no claim sub"),
        (lambda: "a.b.c", "Invalid header padding"),
        (lambda: "x", "Not enough segments"),
        (lambda: "\udcff.a.b", ""),
    ],
    ids=range(16),
)
def test_any_other_token_is_refused_with_its_reason(
    settings: OidcSettings, make: Callable[[], str], why: str
) -> None:
    assert why in run(refusal, OidcTokens(settings), make())


def test_the_interface_admits_and_names_its_holder_and_tells_a_stranger_no_reason(
    api: RestApi, settings: OidcSettings, caplog: pytest.LogCaptureFixture
) -> None:
    methods = (Authentication.OIDC, Authentication.TOKEN)
    access = AccessSettings(methods, oidc=settings)
    identify = Authenticator(access, follow_entries(api.data_dir))
    client = Client(make_app(api.service, identify=identify, access=access))
    whole = client.get("/whoami", headers={"Authorization": f"Bearer {signed()}"}).json()
    assert (whole["name"], whole["authentication"]) == ("ann (oidc)", "oidc")
    none = signed(groups=[])
    assert client.get("/", headers={"Authorization": f"Bearer {none}"}).status_code == 403
    for token in (signed(OTHER), "x" * 100_000, "a.b.c"):
        refused = client.get("/", headers={"Authorization": f"Bearer {token}"})
        assert refused.status_code == 401
        assert "ignature" not in refused.text
    assert "Signature verification failed" in caplog.text


@pytest.fixture
def provider() -> Iterator[tuple[str, dict[str, Any], list[str]]]:
    """A server with a JWKS document, which a test may change, and the requests that it had."""
    document, asked = dict[str, Any](), list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # its name
            asked.append(self.path)
            body = json.dumps(document).encode()
            self.send_response(302 if self.path == "/elsewhere" else 200)
            self.send_header("Location", "/jwks")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", document, asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_keys_of_a_url_are_read_once_and_for_unknown_ones_once_a_minute(
    settings: OidcSettings, provider: tuple[str, dict[str, Any], list[str]]
) -> None:
    url, document, asked = provider
    document.update(jwks_of(k1=OWN))
    now = 0.0

    async def use() -> None:
        nonlocal now
        tokens = OidcTokens(replace(settings, jwks=f"{url}/jwks"), clock=lambda: now)
        for _ in range(3):
            assert (await tokens.read(signed())).name == "ann"
        for number in range(5):
            assert "is unknown" in await refusal(tokens, signed(OTHER, f"n{number}"))
        assert asked == ["/jwks"]
        document.update(jwks_of(k1=OWN, new=OTHER))
        now = 61.0
        assert (await tokens.read(signed(OTHER, "new"))).name == "ann"
        document.clear()  # what the provider has now is no document of keys
        now = 5_000.0
        assert (await tokens.read(signed())).name == "ann"
        assert len(asked) == 3

    run(use)


def test_nobody_with_a_known_key_waits_while_an_unknown_one_is_asked_for(
    settings: OidcSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    async def use() -> None:
        nonlocal now
        tokens, answered = OidcTokens(settings, clock=lambda: now), threading.Event()
        await tokens.read(signed())
        now = 61.0
        monkeypatch.setattr(ProviderKeys, "_load", lambda _: answered.wait(60) and b"")
        unknown = asyncio.create_task(refusal(tokens, signed(OTHER, "new")))
        await asyncio.sleep(0)
        assert (await tokens.read(signed())).name == "ann"
        assert not unknown.done()
        answered.set()
        assert "is unknown" in await unknown

    run(use)


def test_a_provider_that_cannot_be_read_admits_nobody_and_is_told(
    settings: OidcSettings,
    provider: tuple[str, dict[str, Any], list[str]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    url, document, _ = provider
    document.update(jwks_of(k1=OWN))
    for place in (f"{url}/elsewhere", "/nowhere/jwks.json", "http://127.0.0.1:1/jwks"):
        assert "is unknown" in run(refusal, OidcTokens(replace(settings, jwks=place)), signed())
        assert f"cannot be read from {place}" in caplog.messages[-1]


def test_a_claim_is_found_by_its_path_or_its_whole_name() -> None:
    known = {"a": {"b": ["x", 1, "y"]}, "https://e/roles": ["z"], "c": "v w"}
    assert values_at(known, "a.b") == {"x", "y"}
    assert values_at(known, "https://e/roles") == {"z"}
    assert values_at(known, "c") == {"v", "w"}
    assert [values_at(known, each) for each in ("a", "a.b.c", "d")] == [frozenset()] * 3


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        (["rest.authentication=oidc"], "needs rest.oidc.issuer, rest.oidc.jwks, rest.oidc"),
        (["rest.oidc.jwks=http://id.example/jwks"], "keys that come over a network come by https"),
        (["rest.oidc.roles=admins"], "'admins' is not GROUP:ROLE"),
        (["rest.authentication=password"], "'password' is none of none, basic, token, mtls, oidc"),
    ],
)
def test_settings_of_a_provider_that_cannot_work_are_refused(
    overrides: list[str], why: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(None, {}, overrides)
    assert why in str(refused.value)
