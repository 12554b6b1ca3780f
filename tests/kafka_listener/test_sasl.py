"""Clients of a SASL listener prove who they are before anything else is answered."""
# pyright: basic

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairlead.runtime.kafka.security import session
from fairlead.runtime.kafka.wire.served import API_VERSIONS, LIST_GROUPS, METADATA
from fairlead.runtime.security.followed_files import FileRefused
from fairlead.runtime.security.kafka.scram import ScramClient
from fairlead.runtime.security.kafka.users import load_users
from fairlead_tests.kafka_listener.behind import Behind
from fairlead_tests.kafka_listener.sasl import (
    AUTHENTICATE,
    HANDSHAKE,
    MECHANISMS,
    PASSWORDS,
    authenticate,
    bytes_in,
    guarded,
    plain,
    scram,
    shake,
    write_users,
)
from fairlead_tests.kafka_listener.served import Client, Served, listening
from fairlead_tests.kafka_listener.spoken import ask, asking

UNSUPPORTED_MECHANISM, ILLEGAL_STATE, FAILED = 33, 34, 58
INVALID = "Authentication failed: invalid credentials"
SCRAM = MECHANISMS[:2]
ANN = "ann", PASSWORDS["ann"]


@pytest.fixture(autouse=True)
def failing_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "FAILED_SECONDS", 0.0)


async def is_let_in(client: Client) -> bool:
    """Return whether the client may list groups."""
    answer = await client.asks(asking(LIST_GROUPS, 0, {}))
    return bool(answer)


async def counted(served: Served, reason: str = "not authenticated") -> None:
    """Wait until the connection was closed for this reason."""
    while served.counts.opened:
        await asyncio.sleep(0)
    assert served.counts.reasons == [reason]


def test_every_user_comes_in_by_every_mechanism(tmp_path: Path) -> None:
    async def play(served: Served, _: Behind) -> None:
        for user, password in PASSWORDS.items():
            for mechanism in SCRAM:
                client = await served.dial()
                assert (await scram(client, mechanism, user, password))["ErrorCode"] == 0
                assert await is_let_in(client)
            for version in range(3):
                client = await served.dial()
                assert await shake(client, "PLAIN") == {
                    "ErrorCode": 0,
                    "Mechanisms": [*MECHANISMS],
                }
                answer = await authenticate(client, plain(user, password), version)
                lifetime = {"SessionLifetimeMs": 0} if version else {}
                wanted = {"ErrorCode": 0, "ErrorMessage": None, "AuthBytes": "hex:", **lifetime}
                assert answer == wanted
                assert await is_let_in(client)

    guarded(tmp_path, play)


@pytest.mark.parametrize("user", ["ann", "nobody"])
@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_wrong_password_and_an_unknown_user_fail_alike(
    tmp_path: Path, mechanism: str, user: str
) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        answer = await scram(client, mechanism, user, "open says me")
        assert (answer["ErrorCode"], answer["ErrorMessage"]) == (FAILED, INVALID)
        assert await client.receive() == b""
        await counted(served)
        assert served.counts.mechanisms == [mechanism]
        reason = f"not authenticated: {mechanism}: invalid credentials"
        assert served.counts.told == [f"closed the connection of 127.0.0.1: {reason}"]

    guarded(tmp_path, play)


def test_the_salt_of_an_unknown_user_stays_the_same(tmp_path: Path) -> None:
    salts = Counter[str]()

    async def play(served: Served, _: Behind) -> None:
        for user in ("nobody", "nobody", "ann", "no one"):
            client = await served.dial()
            await shake(client, "SCRAM-SHA-256")
            first = await authenticate(client, ScramClient("SCRAM-SHA-256", user, "").first)
            salt, iterations = bytes_in(first).decode().split(",")[1:]
            salts[salt] += 1
            assert iterations in {"i=8192", "i=4096"}  # the users of this test have the least

    guarded(tmp_path, play)
    guarded(tmp_path, play)  # after a restart
    assert sorted(salts.values()) == [2, 2, 4]


@pytest.mark.parametrize(
    "message",
    [
        plain("ann", "wrong password"),
        plain("nobody", PASSWORDS["ann"]),
        plain("ann", PASSWORDS["ann"], "bob"),
        plain("ann", ""),
        plain("", PASSWORDS["ann"]),
        b"",
        b"\0ann",
        b"\0a\0b\0c",
        b"\0ann\0\xff",
        b"\0ann\0" + b"x" * 5_000,
    ],
)
def test_plain_lets_nobody_in_without_the_password(tmp_path: Path, message: bytes) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await shake(client, "PLAIN")
        assert (await authenticate(client, message))["ErrorCode"] == FAILED
        assert await client.receive() == b""
        await counted(served)

    guarded(tmp_path, play)


def test_a_last_message_of_another_exchange_is_refused(tmp_path: Path) -> None:
    async def play(served: Served, _: Behind) -> None:
        client, exchange = await served.dial(), ScramClient(SCRAM[0], *ANN)
        await shake(client, SCRAM[0])
        last = exchange.prove(bytes_in(await authenticate(client, exchange.first)))
        assert (await authenticate(client, last))["ErrorCode"] == 0
        thief = await served.dial()
        await shake(thief, SCRAM[0])
        await authenticate(thief, exchange.first)
        assert (await authenticate(thief, last))["ErrorCode"] == FAILED
        assert await thief.receive() == b""
        assert await is_let_in(client)

    guarded(tmp_path, play)


def test_a_mechanism_that_is_not_offered_is_refused_with_those_that_are(tmp_path: Path) -> None:
    async def play(served: Served, _: Behind) -> None:
        for mechanism in ("GSSAPI", "PLAIN", ""):
            client = await served.dial()
            answer = await shake(client, mechanism)
            assert answer == {"ErrorCode": UNSUPPORTED_MECHANISM, "Mechanisms": [SCRAM[0]]}
            assert await client.receive() == b""

    guarded(tmp_path, play, mechanisms=SCRAM[:1])


def test_nothing_but_versions_is_answered_before(tmp_path: Path) -> None:
    async def play(served: Served, broker: Behind) -> None:
        keys = [{"ApiKey": key, "MinVersion": 0, "MaxVersion": 9} for key in (17, 36, 3)]
        broker.says(API_VERSIONS, 0, {"ErrorCode": 0, "ApiKeys": keys})
        client = await served.dial()
        answer = await ask(client, API_VERSIONS, 0)
        ranges = {each["ApiKey"]: each["MaxVersion"] for each in answer["ApiKeys"]}
        assert (ranges[HANDSHAKE], ranges[AUTHENTICATE]) == (1, 2)
        assert not await is_let_in(client)
        for api in (METADATA, LIST_GROUPS):
            client = await served.dial()
            await shake(client, SCRAM[0])
            assert await client.asks(asking(api, 0, {"Topics": []})) == b""
        assert len(broker.seen) == 1

    guarded(tmp_path, play)


def test_messages_out_of_order_are_refused(tmp_path: Path) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        answer = await authenticate(client, plain(*ANN))
        assert (answer["ErrorCode"], await client.receive()) == (ILLEGAL_STATE, b"")
        client = await served.dial()
        await shake(client, "PLAIN")
        answer = await shake(client, "PLAIN")
        assert (answer["ErrorCode"], await client.receive()) == (ILLEGAL_STATE, b"")

    guarded(tmp_path, play)


@pytest.mark.parametrize("size", [session.LONGEST_BEFORE, 1 << 20])
def test_a_long_message_before_closes_the_connection(tmp_path: Path, size: int) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await shake(client, "PLAIN")
        await client.send(asking(AUTHENTICATE, 1, {"AuthBytes": f"hex:{bytes(size).hex()}"}))
        assert await client.receive() == b""
        await counted(served)

    guarded(tmp_path, play)


@pytest.mark.parametrize("is_half", [False, True])
def test_a_client_that_says_no_more_is_closed_in_time(
    tmp_path: Path, is_half: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "AUTHENTICATE_SECONDS", 0.01)

    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await shake(client, "PLAIN")
        if is_half:
            frame = asking(AUTHENTICATE, 1, {"AuthBytes": "hex:00"})
            client.writer.write(len(frame).to_bytes(4) + frame[:-1])
        assert await client.receive() == b""
        await counted(served)

    guarded(tmp_path, play)


def test_old_clients_send_their_messages_without_headers(tmp_path: Path) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await shake(client, "PLAIN", 0)
        assert await client.asks(plain(*ANN)) == b""
        assert await is_let_in(client)
        client, exchange = await served.dial(), ScramClient(SCRAM[1], *ANN)
        await shake(client, SCRAM[1], 0)
        last = await client.asks(exchange.prove(await client.asks(exchange.first)))
        exchange.verify(last)
        assert await is_let_in(client)
        client = await served.dial()
        await shake(client, "PLAIN", 0)
        assert await client.asks(plain("ann", "wrong")) == b""
        assert not await is_let_in(client)

    guarded(tmp_path, play)


def test_a_session_is_renewed_by_its_user_alone(tmp_path: Path) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await shake(client, "PLAIN")
        lifetime = (await authenticate(client, plain(*ANN)))["SessionLifetimeMs"]
        assert 59_000 < lifetime <= 60_000
        await shake(client, "PLAIN")
        assert await is_let_in(client)
        assert (await authenticate(client, plain(*ANN)))["ErrorCode"] == 0
        assert (await shake(client, SCRAM[0]))["ErrorCode"] == ILLEGAL_STATE
        client = await served.dial()
        await shake(client, "PLAIN")
        await authenticate(client, plain(*ANN))
        await shake(client, "PLAIN")
        answer = await authenticate(client, plain("bob,=", PASSWORDS["bob,="]))
        assert (answer["ErrorCode"], await client.receive()) == (FAILED, b"")

    guarded(tmp_path, play, session_ms=60_000)


def test_a_session_that_is_not_renewed_ends_with_its_connection(tmp_path: Path) -> None:
    async def play(served: Served, _: Behind) -> None:
        client = await served.dial()
        await shake(client, "PLAIN")
        assert (await authenticate(client, plain(*ANN)))["SessionLifetimeMs"] <= 20
        assert await client.receive() == b""
        await counted(served, "session over")

    guarded(tmp_path, play, session_ms=20)


def test_a_listener_without_sasl_has_no_handshake(tmp_path: Path) -> None:
    async def run() -> None:
        async with listening(tmp_path) as served:
            client = await served.dial()
            answer = await shake(client, "PLAIN")
            assert answer == {"ErrorCode": ILLEGAL_STATE, "Mechanisms": []}
            assert await client.receive() == b""

    asyncio.run(run())


def test_the_file_of_users_is_read_again_when_it_changes(tmp_path: Path) -> None:
    async def let_in(served: Served, password: str) -> bool:
        client = await served.dial()
        await shake(client, "PLAIN")
        return bool((await authenticate(client, plain("ann", password)))["ErrorCode"] == 0)

    async def play(served: Served, _: Behind) -> None:
        path, refresh = tmp_path / "users.json", served.access.refreshes[0]
        assert await let_in(served, PASSWORDS["ann"])
        write_users(path, {"ann": "another one"})
        refresh()
        assert [await let_in(served, each) for each in (PASSWORDS["ann"], "another one")] == [
            False,
            True,
        ]
        path.write_text(path.read_text()[:50])  # half-written
        refresh()
        assert await let_in(served, "another one")
        write_users(path, PASSWORDS)
        path.chmod(0o644)
        refresh()
        assert await let_in(served, "another one")

    guarded(tmp_path, play)


@pytest.mark.parametrize(
    ("content", "flaw"),
    [
        ("", "Expecting value"),
        ("[]", "it is no file of users"),
        ('{"users": {"": {}}}', "a name has 1 to 255 printable characters"),
        ('{"users": {"ann": {"MD5": {}}}}', "'MD5' is none of"),
        ('{"users": {"ann": {"SCRAM-SHA-256": {}}}}', "it is no file of users (KeyError)"),
        ("[" * 100_000, "it is no file of users (RecursionError)"),
    ],
)
def test_a_file_that_is_no_file_of_users_is_refused_by_name(
    tmp_path: Path, content: str, flaw: str
) -> None:
    path = tmp_path / "users.json"
    path.touch(0o600)
    path.write_text(content)
    with pytest.raises(FileRefused, match=r"users\.json: ") as refused:
        load_users(path)
    assert flaw in str(refused.value)


def test_a_file_of_users_that_others_may_read_is_refused_with_what_mends_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "users.json"
    write_users(path, PASSWORDS)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(FileRefused) as refused:
        load_users(path)
    assert str(refused.value).endswith(f" {path} (mode 644): chmod 600 {path}")


def test_no_password_is_in_the_file(tmp_path: Path) -> None:
    write_users(tmp_path / "users.json", PASSWORDS)
    content: Any = (tmp_path / "users.json").read_text()
    assert [each for each in PASSWORDS.values() if each in content] == []
