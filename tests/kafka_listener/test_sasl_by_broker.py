"""The broker behind authenticates the clients: its answers reach them, and decide who they are."""
# pyright: basic

import json
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from fairlead.runtime.kafka.security import session
from fairlead.runtime.kafka.wire.served import HEARTBEAT
from fairlead_tests.kafka_listener.behind import Behind
from fairlead_tests.kafka_listener.sasl import (
    AUTHENTICATE,
    HANDSHAKE,
    authenticate,
    bytes_in,
    guarded,
    plain,
    shake,
)
from fairlead_tests.kafka_listener.served import Client, Served
from fairlead_tests.kafka_listener.spoken import ask, asking

OFFERED = ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI"]
WANTED = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER")
UNSUPPORTED_MECHANISM, FAILED = 33, 58
DENIED: dict[str, Any] = {"ErrorCode": FAILED, "ErrorMessage": "of the broker", "AuthBytes": "hex:"}


@pytest.fixture(autouse=True)
def failing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "FAILED_SECONDS", 0.0)


def passing(folder: Path, play: Any) -> None:
    """Play against a listener with such a broker, and without any right for its clients."""
    (folder / "acls").write_text("")

    async def begin(served: Served, broker: Behind) -> None:
        broker.says(HANDSHAKE, 1, {"ErrorCode": 0, "Mechanisms": OFFERED})
        says(broker, b"")
        await play(served, broker)

    guarded(folder, begin, sasl="broker", mechanisms=WANTED, acls=str(folder / "acls"))


def says(broker: Behind, data: bytes, lifetime: int = 0, **more: Any) -> None:
    """Set the broker's answer to the next messages."""
    fields = {"ErrorCode": 0, "ErrorMessage": None, "AuthBytes": f"hex:{data.hex()}", **more}
    broker.says(AUTHENTICATE, 1, {**fields, "SessionLifetimeMs": lifetime})


async def name_of(client: Client, served: Served) -> str:
    """Return the principal of a client, from what it may not do."""
    served.counts.told.clear()
    await ask(client, HEARTBEAT, 2, GroupId="g", GenerationId=1, MemberId="m")
    return served.counts.told[0].split("'")[1]


def token(**claims: Any) -> str:
    """Return a token with these claims, whose signature is the broker's to verify."""
    return f"e30.{urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2ln"


def bearer(text: str) -> bytes:
    """Return the message of OAUTHBEARER."""
    return f"n,,\x01auth=Bearer {text}\x01\x01".encode()


def test_a_message_that_the_broker_accepts_lets_its_user_in(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        client = await served.dial()
        assert (await shake(client, "PLAIN"))["Mechanisms"] == [*WANTED[1:]]
        says(broker, b"", lifetime=60_000)
        answer = await authenticate(client, plain("ann", "any password"))
        assert answer["ErrorCode"] == 0
        assert 59_000 < answer["SessionLifetimeMs"] <= 60_000
        assert plain("ann", "any password") in broker.seen[-1]
        assert await name_of(client, served) == "User:ann"

    passing(tmp_path, play)


def test_a_message_that_the_broker_refuses_lets_nobody_in(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        client = await served.dial()
        await shake(client, "PLAIN")
        says(broker, b"", **DENIED)
        answer = await authenticate(client, plain("ann", "wrong"))
        assert (answer["ErrorCode"], await client.receive()) == (FAILED, b"")

    passing(tmp_path, play)


def test_scram_is_over_with_the_brokers_own_proof(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        client = await served.dial()
        await shake(client, "SCRAM-SHA-256")
        says(broker, b"r=abc,s=c2FsdA==,i=4096")
        answer = await authenticate(client, b"n,,n=a=2Cb,r=ab")
        assert bytes_in(answer) == b"r=abc,s=c2FsdA==,i=4096"
        says(broker, b"v=cHJvb2Y=")
        assert bytes_in(await authenticate(client, b"c=biws,r=abc,p=eA==")) == b"v=cHJvb2Y="
        assert await name_of(client, served) == "User:a,b"
        client = await served.dial()
        await shake(client, "SCRAM-SHA-256")
        says(broker, b"r=abc,s=c2FsdA==,i=4096")
        await authenticate(client, b"n,,n=ann,r=ab")
        fields = {"GroupId": "g", "GenerationId": 1, "MemberId": "m"}
        assert await client.asks(asking(HEARTBEAT, 2, fields)) == b""

    passing(tmp_path, play)


def test_a_token_names_its_user_and_a_failure_is_acknowledged(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        client = await served.dial()
        await shake(client, "OAUTHBEARER")
        assert (await authenticate(client, bearer(token(sub="ann"))))["ErrorCode"] == 0
        assert await name_of(client, served) == "User:ann"
        client = await served.dial()
        await shake(client, "OAUTHBEARER")
        says(broker, b'{"status":"invalid_token"}')
        answer = await authenticate(client, bearer(token(sub="ann")))
        assert bytes_in(answer) == b'{"status":"invalid_token"}'
        says(broker, b"", **DENIED)
        answer = await authenticate(client, b"\x01")
        assert (answer["ErrorCode"], await client.receive()) == (FAILED, b"")

    passing(tmp_path, play)


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ("PLAIN", plain("ann", "x", "bob")),
        ("SCRAM-SHA-256", b"n,,n=ann,r=ab,tokenauth=true"),
        ("SCRAM-SHA-256", b"hello"),
        ("OAUTHBEARER", bearer(token(name="ann"))),
        ("OAUTHBEARER", bearer(token(sub=""))),
        ("OAUTHBEARER", bearer(token(sub=["ann"]))),
        ("OAUTHBEARER", bearer("opaque")),
        ("OAUTHBEARER", bearer("a.!!.c")),
        ("OAUTHBEARER", bearer("")),
        ("OAUTHBEARER", b"\xff"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer a\x01auth=Bearer b\x01\x01"),
    ],
)
def test_a_message_without_the_name_of_one_user_reaches_no_broker(
    tmp_path: Path, mechanism: str, message: bytes
) -> None:
    async def play(served: Served, broker: Behind) -> None:
        client = await served.dial()
        await shake(client, mechanism)
        seen = len(broker.seen)
        answer = await authenticate(client, message)
        assert (answer["ErrorCode"], await client.receive()) == (FAILED, b"")
        assert len(broker.seen) == seen

    passing(tmp_path, play)


def test_a_mechanism_that_the_broker_does_not_offer_is_none(tmp_path: Path) -> None:
    async def play(served: Served, _: Behind) -> None:
        for mechanism in ("SCRAM-SHA-512", "GSSAPI"):
            client = await served.dial()
            answer = await shake(client, mechanism)
            assert answer == {"ErrorCode": UNSUPPORTED_MECHANISM, "Mechanisms": [*WANTED[1:]]}
            assert await client.receive() == b""

    passing(tmp_path, play)
