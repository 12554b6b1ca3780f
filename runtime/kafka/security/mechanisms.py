"""SASL mechanisms whose credentials are verified here: PLAIN (RFC 4616) and SCRAM.

An exchange gets the messages of a client one after the other, and returns the answers. A failure
never tells a client whether it was the name or the password.
"""

import asyncio
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple, Protocol

from ...security.followed_files import FollowedFiles
from ...security.kafka.scram import (
    DIGESTS,
    ITERATIONS,
    SALT_BYTES,
    ClientFirst,
    ScramError,
    ScramKeys,
    ScramServer,
    derive_keys,
    read_client_first,
)
from ...security.kafka.users import Users

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
SCRAM: Final = tuple(DIGESTS)
REMEMBERED_SECONDS: Final = 300.0
"""How long a verified password needs no second derivation of its keys."""
MOST_REMEMBERED: Final = 1_000
AT_ONCE: Final = 2
"""The maximum number of passwords that are verified concurrently, each on a thread."""
LONGEST_PLAIN: Final = 2_048
INVALID: Final = "invalid credentials"
TOKEN_AUTH: Final = "tokenauth"  # noqa: S105  # the name of an extension


class AuthenticationFailed(Exception):  # noqa: N818  # says what happened
    """A client that could not prove who it is; the text is for the client."""

    def __init__(self, text: str, *, reason: str = "", reply: bytes = b"") -> None:
        super().__init__(text)
        self.reason = reason or text
        """What the log says."""
        self.reply = reply
        """What the mechanism itself answers to the client, if it has an answer."""


class Verified(NamedTuple):
    """The user that a client has proved to be."""

    user: str
    seconds: float = 0.0
    """How long this is valid; 0: as long as the connection lasts."""


class SaslStep(NamedTuple):
    """The answer to a message of a client, and the user if that was the last one."""

    reply: bytes
    verified: Verified | None = None


Attempt = Callable[[str], AbstractAsyncContextManager[None]]
"""A context in which a password of this user is verified."""


class Exchange(Protocol):
    """One attempt of a client to authenticate."""

    async def respond(self, message: bytes, /) -> SaslStep:
        """Answer a message; raises `AuthenticationFailed`."""
        ...


class Credentials:
    """The keys of all users, and the passwords that were verified a short while ago."""

    def __init__(self, users: FollowedFiles[Users], secret: bytes) -> None:
        """`secret` is the cluster's: what is derived from it is stable, and known to nobody."""
        self._users, self._secret = users, secret
        self._verified: OrderedDict[bytes, float] = OrderedDict()
        """The digests of names with their passwords, and when each was verified."""
        self._digest_key = secrets.token_bytes(32)
        self._threads = asyncio.Semaphore(AT_ONCE)

    def refresh(self) -> bool:
        """Read the file again if it has changed; return whether there is news."""
        is_new = self._users.refresh()
        if is_new:
            self._verified.clear()
        return is_new

    def find_keys(self, name: str, mechanism: str) -> ScramKeys:
        """Return the keys of a user; for an unknown one keys that nobody has."""
        return self._users.content.get(name, {}).get(mechanism) or self._make_keys(name, mechanism)

    def _make_keys(self, name: str, mechanism: str) -> ScramKeys:
        text = f"{mechanism} {name}".encode()
        salt, *keys = (
            hmac.digest(self._secret, part + text, DIGESTS[mechanism])
            for part in (b"salt ", b"stored ", b"server ")
        )
        return ScramKeys(ITERATIONS, salt[:SALT_BYTES], *keys)

    def remembers(self, name: str, password: str) -> bool:
        """Return whether this was verified to be a user's password a short while ago."""
        at = self._verified.get(self._digest(name, password), -REMEMBERED_SECONDS)
        return time.monotonic() - at < REMEMBERED_SECONDS

    def _digest(self, name: str, password: str) -> bytes:
        return hmac.digest(self._digest_key, f"{name}\0{password}".encode(), "sha256")

    async def is_password(self, name: str, password: str) -> bool:
        """Return whether a user has this password; unknown users take the same time."""
        if self.remembers(name, password):
            return True
        async with self._threads:
            users = self._users.content
            mechanism = next(iter(users.get(name, {})), SCRAM[0])
            keys = self.find_keys(name, mechanism)
            derived = await asyncio.to_thread(
                derive_keys, mechanism, password, keys.salt, keys.iterations
            )
        is_right = hmac.compare_digest(derived.stored_key, keys.stored_key)
        if is_right and users is self._users.content:
            self._verified[self._digest(name, password)] = time.monotonic()
            if len(self._verified) > MOST_REMEMBERED:
                self._verified.popitem(last=False)
        return is_right


class PlainExchange:
    """PLAIN: the name and the password in one message."""

    def __init__(self, credentials: Credentials, attempt: Attempt) -> None:
        self._credentials, self._attempt = credentials, attempt

    async def respond(self, message: bytes) -> SaslStep:
        """Verify the password; raises `AuthenticationFailed`."""
        name, password = read_plain(message)
        if not self._credentials.remembers(name, password):
            async with self._attempt(name):
                if not await self._credentials.is_password(name, password):
                    raise AuthenticationFailed(INVALID)
        return SaslStep(b"", Verified(name))


def read_plain(message: bytes) -> tuple[str, str]:
    """Return the name and the password of a message; raises `AuthenticationFailed`."""
    try:
        parts = message.decode().split("\0") if len(message) <= LONGEST_PLAIN else []
    except UnicodeDecodeError:
        parts = []
    if len(parts) != 3 or not parts[1] or not parts[2]:  # noqa: PLR2004  # RFC 4616
        raise AuthenticationFailed("the message is malformed")
    acts_as, name, password = parts
    if acts_as not in {"", name}:
        raise AuthenticationFailed("one user may not act as another")
    return name, password


class ScramExchange:
    """SCRAM: two messages."""

    def __init__(self, mechanism: str, credentials: Credentials, attempt: Attempt) -> None:
        self._mechanism, self._credentials = mechanism, credentials
        self._attempt = attempt
        self._server: ScramServer | None = None
        """The exchange after its first message."""
        self._name = ""

    async def respond(self, message: bytes) -> SaslStep:
        """Answer the first message, verify the second; raises `AuthenticationFailed`."""
        if self._server is not None:
            return await self._finish(self._server, message)
        try:
            first = read_first(message)
        except ScramError as error:
            raise AuthenticationFailed(str(error)) from None
        keys = self._credentials.find_keys(first.name, self._mechanism)
        self._name, self._server = first.name, ScramServer(self._mechanism, first, keys)
        return SaslStep(self._server.challenge)

    async def _finish(self, server: ScramServer, message: bytes) -> SaslStep:
        async with self._attempt(self._name):
            try:
                return SaslStep(server.finish(message), Verified(self._name))
            except ScramError:
                raise AuthenticationFailed(INVALID) from None


def read_first(message: bytes) -> ClientFirst:
    """Parse a first message of SCRAM; raises `ScramError` also for one of a delegation token."""
    first = read_client_first(message)
    if TOKEN_AUTH in first.extensions:
        raise ScramError("delegation tokens are not supported")
    return first
