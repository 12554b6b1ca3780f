"""How the listener itself connects to the brokers: with TLS, and with a user of its own."""
# pyright: basic

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from kio.schema.errors import ErrorCode

from ...cluster.kafka_security import UpstreamSpec
from ...security.followed_files import read_owned
from ...security.kafka.scram import ScramClient, ScramError
from ..wire.served import SASL_AUTHENTICATE, SASL_HANDSHAKE

PLAIN: Final = "PLAIN"
HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 1

Ask = Callable[..., Awaitable[Any]]
"""Sends a request on a connection, and returns the response: API, version, and fields."""


class LoginRefused(Exception):  # noqa: N818  # says what happened
    """The broker does not accept the node's user, or the user's password cannot be read."""


class BrokerLogin(NamedTuple):
    """The user of the node at the brokers."""

    mechanism: str
    user: str
    password_file: Path

    async def log_in(self, ask: Ask) -> None:
        """Authenticate a new connection; raises `LoginRefused`, `FileRefused`."""
        password = read_owned(self.password_file, is_secret=True).decode().rstrip("\n")
        shaken = await ask(SASL_HANDSHAKE, HANDSHAKE_VERSION, mechanism=self.mechanism)
        if shaken.error_code is not ErrorCode.none:
            offered = ", ".join(shaken.mechanisms) or "no mechanism"
            raise LoginRefused(f"it offers {offered}, not {self.mechanism}")
        if self.mechanism == PLAIN:
            await self._send(ask, f"\0{self.user}\0{password}".encode())
            return
        client = ScramClient(self.mechanism, self.user, password)
        challenge = await self._send(ask, client.first)
        try:
            proof = await asyncio.to_thread(client.prove, challenge)
            client.verify(await self._send(ask, proof))
        except ScramError as error:
            raise LoginRefused(str(error)) from None

    async def _send(self, ask: Ask, message: bytes) -> bytes:
        reply = await ask(SASL_AUTHENTICATE, AUTHENTICATE_VERSION, auth_bytes=message)
        if reply.error_code is not ErrorCode.none:
            raise LoginRefused("it refuses the user or the password of kafka.upstream.sasl")
        return bytes(reply.auth_bytes)


class BrokerSecurity(NamedTuple):
    """The protection of connections to brokers."""

    tls: ssl.SSLContext | None = None
    login: BrokerLogin | None = None

    def without_login(self) -> "BrokerSecurity":
        """Return the same for connections on which a client logs in itself."""
        return self._replace(login=None)


UNPROTECTED: Final = BrokerSecurity()


def open_broker_security(spec: UpstreamSpec) -> BrokerSecurity:
    """Read the files of a spec; raises `OSError`, `FileRefused`."""
    login = None
    if spec.mechanism:
        login = BrokerLogin(spec.mechanism, spec.user, Path(spec.password_file))
        read_owned(login.password_file, is_secret=True)
    return BrokerSecurity(_open_tls(spec) if spec.is_encrypted else None, login)


def _open_tls(spec: UpstreamSpec) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=spec.truststore or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = spec.checks_host
    if spec.keystore:
        context.load_cert_chain(spec.keystore)
    return context
