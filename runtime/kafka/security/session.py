"""Who the client of one connection is: its authentication with SaslHandshake and SaslAuthenticate.

A client of a SASL listener begins as nobody, and may only ask for versions and authenticate. It
chooses a mechanism with SaslHandshake, and sends the messages of that mechanism with
SaslAuthenticate, or after version 0 of SaslHandshake as frames without a header. A failure is
answered after a pause, and ends the connection. Later the client may authenticate again, as the
same user (KIP-368); it has to before its session is over.
"""
# pyright: basic

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final, NamedTuple, Protocol

from kio.schema.errors import ErrorCode

from ..wire.frames import Request, make, response_class
from ..wire.served import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from .mechanisms import AuthenticationFailed, Exchange, SaslStep

BEFORE: Final = frozenset({API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE})
"""The APIs that a client may use before it is authenticated."""
AUTHENTICATE_SECONDS: Final = 30.0
"""The time limit for the authentication of a new connection."""
FAILED_SECONDS: Final = 0.1
"""The pause before a failure is answered: `connection.failed.authentication.delay.ms` of Kafka."""
LONGEST_BEFORE: Final = 64 << 10
"""The maximum size of a request of a client that is not authenticated, in bytes."""
ANONYMOUS: Final = "User:ANONYMOUS"
NO_SESSION: Final = timedelta()
FAILED: Final = "Authentication failed"

AskBroker = Callable[..., Awaitable[Any]]
"""Sends a request to the broker behind this connection: API, version and fields."""


class SaslAuthenticator(Protocol):
    """Begins exchanges with clients, for all connections of a listener."""

    async def begin(
        self, mechanism: str, address: str, ask_broker: AskBroker, /
    ) -> Exchange | None:
        """Begin an exchange with a client; None: the mechanism is not offered."""
        ...

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are offered."""
        ...


class SaslAnswer(NamedTuple):
    """A response, and why the connection ends after it; "": it does not."""

    message: Any
    failure: str = ""


class ClientSession:
    """The principal of one connection, and until when it is valid."""

    def __init__(
        self,
        authenticator: SaslAuthenticator | None,
        max_seconds: float,
        address: str,
        ask_broker: AskBroker,
    ) -> None:
        """Without `authenticator` the client is anonymous, or who its certificate says."""
        self._authenticator, self._max_seconds = authenticator, max_seconds
        self._address, self._ask_broker = address, ask_broker
        self.principal = "" if authenticator else ANONYMOUS
        """Kafka's name of the user, with its type; empty: not authenticated."""
        self.mechanism = ""
        """The mechanism of the current exchange, or of the last one."""
        self._exchange: Exchange | None = None
        self.is_raw = False
        """Whether the next frame is a message of the mechanism, without a header."""
        self._deadline = time.monotonic() + AUTHENTICATE_SECONDS if authenticator else 0.0
        """Until when it has to authenticate, by the monotonic clock; 0: never."""

    def may_ask(self, api: int, length: int) -> bool:
        """Return whether a request may be read."""
        return bool(self.principal) or (api in BEFORE and length <= LONGEST_BEFORE)

    def is_over(self, now: float) -> bool:
        """Return whether the client should have authenticated by now."""
        return bool(self._deadline) and now >= self._deadline

    async def answer(self, request: Request) -> SaslAnswer:
        """Answer a SaslHandshake or a SaslAuthenticate request."""
        kind = response_class(*request.head[:2])
        if self._authenticator is None:
            return self._refuse_state(kind, "this listener has no SASL")
        if request.head.api == SASL_HANDSHAKE:
            return await self._shake_hands(kind, request, self._authenticator)
        if self._exchange is None or self.is_raw:
            return self._refuse_state(kind, "SaslAuthenticate before SaslHandshake")
        try:
            step = await self._take_step(request.message.auth_bytes)
        except AuthenticationFailed as failed:
            await asyncio.sleep(FAILED_SECONDS)
            code, text = ErrorCode.sasl_authentication_failed, f"{FAILED}: {failed}"
            reply = {"auth_bytes": failed.reply, "session_lifetime": NO_SESSION}
            message = make(kind, error_code=code, error_message=text, **reply)
            return SaslAnswer(message, failed.reason)
        fields = {"error_code": ErrorCode.none, "error_message": None, "auth_bytes": step.reply}
        seconds = max(0.0, self._deadline - time.monotonic()) if step.verified else 0.0
        lifetime = timedelta(milliseconds=int(seconds * 1_000))
        return SaslAnswer(make(kind, **fields, session_lifetime=lifetime))

    async def answer_raw(self, message: bytes) -> bytes:
        """Answer a message without a header; raises `AuthenticationFailed`."""
        try:
            return (await self._take_step(message)).reply
        except AuthenticationFailed:
            await asyncio.sleep(FAILED_SECONDS)
            raise

    async def _shake_hands(
        self, kind: Any, request: Request, authenticator: SaslAuthenticator
    ) -> SaslAnswer:
        mechanism = request.message.mechanism
        is_again = bool(self.principal)
        if self._exchange is not None or (is_again and mechanism != self.mechanism):
            return self._refuse_state(kind, "a second SaslHandshake")
        self._exchange = await authenticator.begin(mechanism, self._address, self._ask_broker)
        offered = {"mechanisms": authenticator.mechanisms}
        if self._exchange is None:
            self.mechanism = "other"
            code = ErrorCode.unsupported_sasl_mechanism
            failure = f"the mechanism is none of {', '.join(authenticator.mechanisms)}"
            return SaslAnswer(make(kind, error_code=code, **offered), failure)
        self.mechanism = mechanism
        self.is_raw = request.head.version == 0
        return SaslAnswer(make(kind, error_code=ErrorCode.none, **offered))

    async def _take_step(self, message: bytes) -> SaslStep:
        """Pass a message to the exchange; after the last one the principal is known."""
        assert self._exchange is not None  # noqa: S101  # as the callers have checked
        step = await self._exchange.respond(message)
        if step.verified is None:
            return step
        principal = f"User:{step.verified.user}"
        if self.principal not in {"", principal}:
            raise AuthenticationFailed("another user than before")
        self._exchange, self.is_raw, self.principal = None, False, principal
        limits = [each for each in (step.verified.seconds, self._max_seconds) if each]
        self._deadline = time.monotonic() + min(limits) if limits else 0.0
        return step

    def _refuse_state(self, kind: Any, failure: str) -> SaslAnswer:
        fields = {"error_message": failure, "auth_bytes": b"", "session_lifetime": NO_SESSION}
        offered = self._authenticator.mechanisms if self._authenticator else ()
        code = ErrorCode.illegal_sasl_state
        return SaslAnswer(make(kind, error_code=code, mechanisms=offered, **fields), failure)
