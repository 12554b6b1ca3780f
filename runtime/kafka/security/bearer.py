"""OAUTHBEARER (RFC 7628, KIP-255, KIP-768): a client sends a token, and the name that it has.

A refused token is answered with JSON. The client acknowledges that, and only then the exchange has
failed: so both sides of the mechanism know why.
"""

import re
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ...security.kafka.users import check_name
from ...security.proofs.signed_tokens import SignedTokens
from ...security.settings import BearerRefusedError
from .mechanisms import AuthenticationFailed, SaslStep, Verified

REFUSED: Final = b'{"status":"invalid_token"}'
LONGEST_REASON: Final = 200
LEAST_SECONDS: Final = 1.0
MOST_SECONDS: Final = 366 * 86_400.0
"""The longest session, whatever the token says."""
_FIRST: Final = re.compile(
    r"[ny],(?:a=(?P<acts_as>(?:[^\x00,=]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x20-\x7e\t\r\n]*\x01)*)\x01"
)


class BearerMessage(NamedTuple):
    """The message of a client."""

    token: str
    acts_as: str = ""
    """The name that the client wants to have; empty: that in the token."""


def read_bearer(message: bytes) -> BearerMessage:
    """Return the content of a message; raises `AuthenticationFailed`."""
    try:
        parts = _FIRST.fullmatch(message.decode())
    except UnicodeDecodeError:
        parts = None
    pairs = parts["pairs"].split("\1") if parts else []
    values = [each.partition("=")[2] for each in pairs if each.startswith("auth=")]
    scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    if parts is None or scheme.lower() != "bearer" or not token.strip():
        raise AuthenticationFailed("the message is malformed")
    acts_as = (parts["acts_as"] or "").replace("=2C", ",").replace("=3D", "=")
    return BearerMessage(token.strip(), acts_as)


class BearerExchange:
    """An exchange with a client whose token is verified here."""

    def __init__(self, tokens: SignedTokens, skew_seconds: int, subject_claim: str) -> None:
        """`subject_claim` has the name of the user; a token counts until its end and the skew."""
        self._tokens, self._skew_seconds = tokens, skew_seconds
        self._subject_claim = subject_claim
        self._reason = ""
        """Why the token was refused."""

    async def respond(self, message: bytes) -> SaslStep:
        """Verify the token; raises `AuthenticationFailed`, for a bad one at the second message."""
        if self._reason:
            raise AuthenticationFailed(REFUSED.decode(), reason=self._reason)
        content = read_bearer(message)
        try:
            claims = await self._tokens.verify(content.token)
            verified = Verified(self._name_in(claims), self._seconds_left(claims))
        except BearerRefusedError as refused:
            self._reason = f"the token is refused: {str(refused)[:LONGEST_REASON]!a}"
            return SaslStep(REFUSED)
        if content.acts_as not in {"", verified.user}:
            raise AuthenticationFailed("one user may not act as another")
        return SaslStep(b"", verified)

    def _seconds_left(self, claims: Mapping[str, Any]) -> float:
        """Return how long the token will be accepted."""
        seconds = int(claims["exp"]) + self._skew_seconds - time.time()
        return min(max(LEAST_SECONDS, seconds), MOST_SECONDS)

    def _name_in(self, claims: Mapping[str, Any]) -> str:
        name = claims.get(self._subject_claim)
        try:
            return check_name(name if isinstance(name, str) else "")
        except ValueError:
            raise BearerRefusedError(
                f"its claim {self._subject_claim} is no name of a user"
            ) from None
