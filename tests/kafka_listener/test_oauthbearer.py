"""Tokens at a listener that verifies them itself: whom they let in, for how long, and all others.

The exchange is that of Kafka's broker: a refused token is answered with JSON, which the client
acknowledges before it hears that it has failed.
"""
# pyright: basic

import json
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from fairlead.runtime.cluster.kafka_security import BearerSpec
from fairlead.runtime.kafka.security import session
from fairlead.runtime.kafka.wire.served import HEARTBEAT
from fairlead_tests.kafka_listener.behind import Behind
from fairlead_tests.kafka_listener.sasl import authenticate, bytes_in, guarded, plain, shake
from fairlead_tests.kafka_listener.served import Served
from fairlead_tests.kafka_listener.spoken import ask
from fairlead_tests.kafka_listener.tokens import AUDIENCE, ISSUER, Provider, bearer

FAILED, ILLEGAL_STATE = 58, 34
REFUSED = {"status": "invalid_token"}
MINUTE_AGO = int(time.time()) - 60


@pytest.fixture(autouse=True)
def failing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "FAILED_SECONDS", 0.0)


def by_token(provider: Provider, play: Any, **spec: Any) -> None:
    """Play against a listener that takes this provider's tokens, without rights for anybody."""
    folder = provider.folder
    (folder / "acls").write_text("")
    counts = {"jwks": str(provider.jwks), "issuer": ISSUER, "audiences": (AUDIENCE, "kafka")}
    guarded(
        folder,
        play,
        mechanisms=("OAUTHBEARER", "PLAIN"),
        acls=str(folder / "acls"),
        bearer=BearerSpec(**{**counts, **spec}),
    )


async def principal_of(served: Served, message: bytes, version: int = 2) -> str:
    """Authenticate a new client, and return its principal from what it may not do."""
    client = await served.dial()
    await shake(client, "OAUTHBEARER")
    answer = await authenticate(client, message, version)
    assert (answer["ErrorCode"], bytes_in(answer)) == (0, b""), answer
    served.counts.told.clear()
    await ask(client, HEARTBEAT, 2, GroupId="g", GenerationId=1, MemberId="m")
    return served.counts.told[0].split("'")[1]


def test_a_token_of_the_provider_lets_its_subject_in(tmp_path: Path) -> None:
    provider = Provider(tmp_path)

    async def play(served: Served, _: Behind) -> None:
        for message, name in (
            (bearer(provider.sign()), "User:ann"),
            (bearer(provider.sign(sub="bob, x=1"), "y,a=bob=2C x=3D1,"), "User:bob, x=1"),
            (bearer(provider.sign(aud=["others", "kafka"]), more="a=b\x01"), "User:ann"),
            (bearer(provider.sign(exp=int(time.time()) - 5)), "User:ann"),  # clocks differ
        ):
            assert await principal_of(served, message) == name

    by_token(provider, play)


def test_another_claim_may_have_the_name(tmp_path: Path) -> None:
    provider = Provider(tmp_path)

    async def play(served: Served, _: Behind) -> None:
        assert await principal_of(served, bearer(provider.sign(azp="app")), 0) == "User:app"

    by_token(provider, play, subject_claim="azp")


def test_a_session_lasts_as_long_as_its_token_and_is_renewed_with_another_one(
    tmp_path: Path,
) -> None:
    provider, now = Provider(tmp_path), int(time.time())

    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        for seconds in (300, 600):
            await shake(client, "OAUTHBEARER")
            answer = await authenticate(client, bearer(provider.sign(exp=now + seconds)))
            assert 200_000 < answer["SessionLifetimeMs"] - (seconds - 300) * 1_000 <= 330_000
        await shake(client, "OAUTHBEARER")
        forever = bearer(provider.sign(exp=10**17))
        assert (await authenticate(client, forever))["SessionLifetimeMs"] > 10**10
        await shake(client, "OAUTHBEARER")
        answer = await authenticate(client, bearer(provider.sign(sub="bob")))
        assert (answer["ErrorCode"], await client.receive()) == (FAILED, b"")
        late = await served.dial()
        await shake(late, "OAUTHBEARER")
        answer = await authenticate(late, bearer(provider.sign(exp=now - 20)))
        assert 0 < answer["SessionLifetimeMs"] <= 10_000  # clocks differ

    by_token(provider, play)


def unsigned(provider: Provider) -> str:
    head, body, _ = provider.sign().split(".")
    none = urlsafe_b64encode(b'{"alg":"none","kid":"k"}').rstrip(b"=").decode()
    assert head != none
    return f"{none}.{body}."


def by_another(provider: Provider) -> str:
    folder = provider.folder / "other"
    folder.mkdir()
    return Provider(folder).sign()


def nested(_: Provider) -> str:
    deep = urlsafe_b64encode(b'{"kid":' + b"[" * 30_000).rstrip(b"=").decode()
    return f"{deep}.e30.x"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (unsigned, "its algorithm is 'none'"),
        (by_another, "verification failed"),
        (lambda provider: provider.sign(exp=MINUTE_AGO), "expired"),
        (lambda provider: provider.sign(nbf=MINUTE_AGO + 86_400), "not yet valid"),
        (lambda provider: provider.sign(aud="others"), "Audience"),
        (lambda provider: provider.sign(iss="https://evil.example"), "issuer"),
        (lambda provider: provider.sign(exp=None), 'missing the "exp" claim'),
        (lambda provider: provider.sign(exp=float("inf")), "exp"),
        (lambda provider: provider.sign(sub=""), "its claim sub is no name of a user"),
        (lambda provider: provider.sign(sub="a\nb"), "its claim sub is no name of a user"),
        (lambda provider: provider.sign(sub=["ann"]), ""),
        (lambda _: "opaque", "Not enough segments"),
        (lambda _: "A" * 60_000, "Not enough segments"),
        (nested, ""),
    ],
    ids=range(14),
)
def test_any_other_token_is_answered_with_json_and_then_refused(
    tmp_path: Path, make: Any, reason: str
) -> None:
    provider = Provider(tmp_path)
    token = make(provider)

    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await shake(client, "OAUTHBEARER")
        answer = await authenticate(client, bearer(token))
        assert (answer["ErrorCode"], json.loads(bytes_in(answer))) == (0, REFUSED)
        answer = await authenticate(client, b"\x01")
        assert (answer["ErrorCode"], await client.receive()) == (FAILED, b"")
        assert answer["ErrorMessage"] == 'Authentication failed: {"status":"invalid_token"}'
        assert served.counts.reasons == ["not authenticated"]
        assert reason in served.counts.told[0]
        assert "OAUTHBEARER: the token is refused: " in served.counts.told[0]

    by_token(provider, play)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic YW5u\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01",
        b"n,,\x01auth=Bearer a",
        b"p=tls-unique,,\x01auth=Bearer a\x01\x01",
        b"n,a=,\x01auth=Bearer a\x01\x01",
        plain("ann", "open sesame"),
        b"n,,n=ann,r=ab",
    ],
    ids=range(13),
)
def test_a_message_without_one_token_fails_at_once(tmp_path: Path, message: bytes) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await shake(client, "OAUTHBEARER")
        answer = await authenticate(client, message)
        assert (answer["ErrorCode"], await client.receive()) == (FAILED, b"")

    by_token(Provider(tmp_path), play)


def test_nobody_acts_as_another_by_a_token_and_a_refused_one_is_not_followed_by_a_good_one(
    tmp_path: Path,
) -> None:
    provider = Provider(tmp_path)

    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await shake(client, "OAUTHBEARER")
        answer = await authenticate(client, bearer(provider.sign(), "n,a=bob,"))
        assert (answer["ErrorCode"], await client.receive()) == (FAILED, b"")
        client = await served.dial()
        await shake(client, "OAUTHBEARER", 0)  # without headers from here on
        assert json.loads(await client.asks(bearer("opaque"))) == REFUSED
        assert await client.asks(bearer(provider.sign())) == b""
        client = await served.dial()
        await shake(client, "OAUTHBEARER", 0)
        assert await client.asks(bearer(provider.sign())) == b""
        answer = await ask(client, HEARTBEAT, 2, GroupId="g", GenerationId=1, MemberId="m")
        assert answer["ErrorCode"] == 30

    by_token(provider, play)


def test_a_second_handshake_within_an_exchange_is_refused(tmp_path: Path) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await shake(client, "OAUTHBEARER")
        answer = await authenticate(client, bearer("opaque"))
        assert answer["ErrorCode"] == 0
        answer = await shake(client, "PLAIN")
        assert (answer["ErrorCode"], await client.receive()) == (ILLEGAL_STATE, b"")

    by_token(Provider(tmp_path), play)
