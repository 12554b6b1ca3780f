"""Clients of a SASL listener: users, handshakes and mechanisms, message by message."""
# pyright: basic

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from fairlead.runtime.cluster.kafka_security import KafkaSecurity
from fairlead.runtime.kafka.security.access import open_access
from fairlead.runtime.security.kafka.scram import (
    DIGESTS,
    LEAST_ITERATIONS,
    ScramClient,
    derive_keys,
)
from fairlead.runtime.security.kafka.users import save_users
from fairlead_tests.kafka_listener.behind import Behind, behind
from fairlead_tests.kafka_listener.served import Client, Served, listening
from fairlead_tests.kafka_listener.spoken import ask

HANDSHAKE, AUTHENTICATE = 17, 36
SECRET = b"of the cluster's".ljust(32)
PASSWORDS = {"ann": "open sesame", "bob,=": "fünf/Wörter"}
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN")


def write_users(path: Path, passwords: Mapping[str, str]) -> None:
    """Write a file of users with as few iterations as there may be."""
    keys = {
        name: {each: derive_keys(each, password, b"salt", LEAST_ITERATIONS) for each in DIGESTS}
        for name, password in passwords.items()
    }
    save_users(path, keys)


def guarded(
    folder: Path, play: Callable[[Served, Behind], Awaitable[Any]], **security: Any
) -> None:
    """Play against a listener that authenticates these users, with such a broker behind it."""
    write_users(folder / "users.json", PASSWORDS)
    spec = {"sasl": "here", "mechanisms": MECHANISMS, "users": str(folder / "users.json")}

    async def run() -> None:
        access = open_access(KafkaSecurity(**{**spec, **security}), SECRET)
        async with (
            behind() as broker,
            listening(folder, broker.port, access=access) as served,
        ):
            await play(served, broker)

    asyncio.run(run())


async def shake(client: Client, mechanism: str, version: int = 1) -> Any:
    """Choose a mechanism."""
    return await ask(client, HANDSHAKE, version, Mechanism=mechanism)


async def authenticate(client: Client, message: bytes, version: int = 2) -> Any:
    """Send a message of the mechanism."""
    sent = f"hex:{message.hex()}"
    return await ask(client, AUTHENTICATE, version, AuthBytes=sent)


def bytes_in(answer: Mapping[str, Any]) -> bytes:
    """Return the message of the mechanism in an answer."""
    return bytes.fromhex(str(answer["AuthBytes"]).removeprefix("hex:"))


def plain(user: str, password: str, acts_as: str = "") -> bytes:
    """Return the message of PLAIN."""
    return "\0".join((acts_as, user, password)).encode()


async def scram(client: Client, mechanism: str, user: str, password: str) -> Any:
    """Authenticate, and return the last answer."""
    exchange = ScramClient(mechanism, user, password)
    await shake(client, mechanism)
    first = await authenticate(client, exchange.first)
    assert first["ErrorCode"] == 0, first
    last = await authenticate(client, exchange.prove(bytes_in(first)))
    if last["ErrorCode"] == 0:
        exchange.verify(bytes_in(last))
    return last
