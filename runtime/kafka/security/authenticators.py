"""The two ways to authenticate clients: by what is known here, or by the broker.

The broker decides by the same messages: each is passed on to it, on the connection of this client
to the broker, which then serves the rest of its requests as this user. The name of the user is in
the messages: a broker that has accepted them has accepted the name.
"""
# pyright: basic

import json
from base64 import urlsafe_b64decode
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from ...security.kafka.scram import ScramError
from ..wire.served import SASL_AUTHENTICATE, SASL_HANDSHAKE
from .bearer import read_bearer
from .login_throttle import LoginThrottle
from .mechanisms import (
    OAUTHBEARER,
    PLAIN,
    SCRAM,
    Attempt,
    AuthenticationFailed,
    Credentials,
    Exchange,
    PlainExchange,
    SaslStep,
    ScramExchange,
    Verified,
    read_first,
    read_plain,
)
from .session import AskBroker

HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 1
SUCCESS: Final = b"v="
"""How the last message of SCRAM's server begins."""


class OwnAuthenticator:
    """Authenticates clients by the file of users, and by the keys of an identity provider."""

    def __init__(
        self,
        mechanisms: tuple[str, ...],
        credentials: Credentials,
        begin_bearer: Callable[[], Exchange],
        throttle: LoginThrottle,
    ) -> None:
        """Offer these mechanisms."""
        self._mechanisms, self._credentials = mechanisms, credentials
        self._begin_bearer, self._throttle = begin_bearer, throttle

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are offered."""
        return self._mechanisms

    async def begin(self, mechanism: str, address: str, _: AskBroker) -> Exchange | None:
        """Begin an exchange; None: the mechanism is not offered."""
        if mechanism not in self._mechanisms:
            return None
        if mechanism == OAUTHBEARER:
            return self._begin_bearer()
        attempt = partial(self._throttle.attempt, address)
        if mechanism == PLAIN:
            return PlainExchange(self._credentials, attempt)
        return ScramExchange(mechanism, self._credentials, attempt)


class BrokerAuthenticator:
    """Lets the broker authenticate clients."""

    def __init__(
        self, mechanisms: tuple[str, ...], subject_claim: str, throttle: LoginThrottle
    ) -> None:
        """`subject_claim` is the claim of tokens that has the name of the user."""
        self._wanted, self._subject_claim = mechanisms, subject_claim
        self._throttle = throttle
        self._mechanisms = mechanisms
        """Those that the broker offers, too, as of the last answer."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that are offered."""
        return self._mechanisms

    async def begin(self, mechanism: str, address: str, ask_broker: AskBroker) -> Exchange | None:
        """Begin an exchange with the broker; None: the mechanism is not offered."""
        shaken = await ask_broker(SASL_HANDSHAKE, HANDSHAKE_VERSION, mechanism=mechanism)
        self._mechanisms = tuple(each for each in self._wanted if each in shaken.mechanisms)
        if mechanism not in self._mechanisms or shaken.error_code is not ErrorCode.none:
            return None
        attempt = partial(self._throttle.attempt, address)
        return BrokerExchange(mechanism, self._subject_claim, ask_broker, attempt)


class BrokerExchange:
    """An exchange between a client and the broker."""

    def __init__(
        self, mechanism: str, subject_claim: str, ask_broker: AskBroker, attempt: Attempt
    ) -> None:
        self._mechanism, self._subject_claim = mechanism, subject_claim
        self._ask_broker, self._attempt = ask_broker, attempt
        self._user = ""
        """The user's name in the first message."""

    async def respond(self, message: bytes) -> SaslStep:
        """Pass a message to the broker; raises `AuthenticationFailed`."""
        is_first = not self._user
        self._user = self._user or self._read_user(message)
        has_password = self._mechanism == PLAIN if is_first else self._mechanism in SCRAM
        async with self._attempt(self._user) if has_password else nullcontext():
            return await self._pass_on(message)

    async def _pass_on(self, message: bytes) -> SaslStep:
        reply = await self._ask_broker(SASL_AUTHENTICATE, AUTHENTICATE_VERSION, auth_bytes=message)
        if reply.error_code is not ErrorCode.none:
            raise AuthenticationFailed("the broker has refused it", reply=reply.auth_bytes)
        seconds = reply.session_lifetime.total_seconds()
        is_done = self._is_last(reply.auth_bytes)
        return SaslStep(reply.auth_bytes, Verified(self._user, seconds) if is_done else None)

    def _read_user(self, message: bytes) -> str:
        if self._mechanism == PLAIN:
            return read_plain(message)[0]
        if self._mechanism in SCRAM:
            try:
                return read_first(message).name
            except ScramError as error:
                raise AuthenticationFailed(str(error)) from None
        assert self._mechanism == OAUTHBEARER  # noqa: S101  # no others are offered
        return _subject_of(read_bearer(message).token, self._subject_claim)

    def _is_last(self, reply: bytes) -> bool:
        """Return whether this answer of the broker ends the exchange.

        In OAUTHBEARER an answer with content is a failure, which the client has to acknowledge.
        """
        return reply.startswith(SUCCESS) if self._mechanism in SCRAM else not reply


def _subject_of(token: str, claim: str) -> str:
    """Return the user in a token whose signature the broker verifies."""
    try:
        body = token.split(".")[1]
        claims: Any = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        subject = claims[claim]
    except (ValueError, LookupError, TypeError, RecursionError):
        subject = None
    if not isinstance(subject, str) or not subject:
        raise AuthenticationFailed(f"the token has no claim {claim} with a name")
    return subject
