"""Bytes that are no login: each ends with an answer or the end of its connection, and harms nobody.

The bytes are valid messages of each mechanism that were cut, repeated, swapped and overwritten, at
the first step and at the second one, with headers and without.
"""
# pyright: basic

import random
from pathlib import Path

import pytest

from fairlead.runtime.cluster.kafka_security import BearerSpec
from fairlead.runtime.kafka.security import session
from fairlead.runtime.kafka.wire.served import LIST_GROUPS
from fairlead.runtime.security import throttling
from fairlead.runtime.security.kafka.scram import ScramClient
from fairlead_tests.kafka_listener.behind import Behind
from fairlead_tests.kafka_listener.sasl import (
    AUTHENTICATE,
    PASSWORDS,
    authenticate,
    bytes_in,
    guarded,
    plain,
    shake,
)
from fairlead_tests.kafka_listener.served import Client, Served
from fairlead_tests.kafka_listener.spoken import asking
from fairlead_tests.kafka_listener.tokens import AUDIENCE, ISSUER, Provider, bearer

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
ROUNDS = 150
FAILED = 58


@pytest.fixture(autouse=True)
def failing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "FAILED_SECONDS", 0.0)
    for limit in ("FREE_FAILURES", "FREE_FAILURES_OF_NAME"):
        monkeypatch.setattr(throttling, limit, 10 * ROUNDS)


def spoilt(rng: random.Random, message: bytes) -> bytes:
    """Return something like a message."""
    at, end = sorted(rng.choices(range(len(message) + 1), k=2))
    return rng.choice(
        [
            message[:at],
            message[:at] + rng.randbytes(rng.randrange(9)) + message[end:],
            message[:at] + message[at:end] * rng.randrange(2, 40) + message[end:],
            message[:at] + rng.choice([b"\0", b"\x01", b",", b"=", b"\xff"]) + message[at:],
            rng.randbytes(rng.randrange(60)),
        ]
    )


async def log_in(client: Client, rng: random.Random, provider: Provider, mechanism: str) -> None:
    """Say something like a login, of which one message is spoilt."""
    messages = {"PLAIN": plain("ann", PASSWORDS["ann"]), "OAUTHBEARER": bearer(provider.sign())}
    await shake(client, mechanism)
    if mechanism in messages:
        answer = await authenticate(client, spoilt(rng, messages[mechanism]))
        if answer["ErrorCode"] == 0 and bytes_in(answer):
            assert (await authenticate(client, rng.randbytes(3)))["ErrorCode"] == FAILED
        return
    exchange = ScramClient(mechanism, "ann", PASSWORDS["ann"])
    is_first = rng.random() < 0.5
    first = spoilt(rng, exchange.first) if is_first else exchange.first
    answer = await authenticate(client, first)
    if answer["ErrorCode"] == 0 and not is_first:
        answer = await authenticate(client, spoilt(rng, exchange.prove(bytes_in(answer))))
    assert answer["ErrorCode"] in {0, FAILED}


def test_spoilt_messages_are_refused_and_the_next_client_is_let_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    provider, rng = Provider(tmp_path), random.Random(7)
    spec = BearerSpec(jwks=str(provider.jwks), issuer=ISSUER, audiences=(AUDIENCE,))

    async def play(served: Served, _: Behind) -> None:
        for number in range(ROUNDS):
            client = await served.dial()
            await log_in(client, rng, provider, MECHANISMS[number % len(MECHANISMS)])
            client.writer.close()
            raw = await served.dial()
            await shake(raw, rng.choice(MECHANISMS), 0)
            for _turn in range(rng.randrange(3)):
                if not await raw.asks(spoilt(rng, b"n,,n=ann,r=abcdef")):
                    break
            raw.writer.close()
        client = await served.dial()
        await shake(client, "PLAIN")
        assert (await authenticate(client, plain("ann", PASSWORDS["ann"])))["ErrorCode"] == 0
        assert await client.asks(asking(LIST_GROUPS, 0, {}))
        assert {*served.counts.reasons} == {"not authenticated"}

    guarded(tmp_path, play, mechanisms=MECHANISMS, bearer=spec)
    assert [each for each in caplog.records if each.exc_info] == []


@pytest.mark.parametrize("length", [-1, -(1 << 31), session.LONGEST_BEFORE + 1, (1 << 31) - 1])
def test_a_message_without_a_header_has_a_length_that_there_can_be(
    tmp_path: Path, length: int
) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await shake(client, "PLAIN", 0)
        client.writer.write(length.to_bytes(4, signed=True) + b"\0ann\0")
        assert await client.receive() == b""
        assert served.counts.reasons == ["length"]

    guarded(tmp_path, play)


@pytest.mark.parametrize("body", ["", "00", "7fffffff", "ffffffff00", "00000004aa"])
def test_a_request_that_is_cut_within_ends_its_connection(tmp_path: Path, body: str) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await shake(client, "PLAIN")
        whole = asking(AUTHENTICATE, 1, {"AuthBytes": "hex:"})
        assert await client.asks(whole[:-4] + bytes.fromhex(body)) == b""
        assert len(served.counts.reasons) == 1

    guarded(tmp_path, play)
