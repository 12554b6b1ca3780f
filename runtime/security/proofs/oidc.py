"""Bearer tokens of an identity provider (OpenID Connect) at the REST interface, and their roles."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast

from ..rights import RIGHTS, Access, Grant
from ..settings import BearerRefusedError, OidcSettings
from .signed_tokens import SignedTokens

LEEWAY_SECONDS: Final = 60
LONGEST_NAME: Final = 200


class Bearer(NamedTuple):
    """The holder of a token: their name, and what they may do."""

    name: str
    access: Access


class OidcTokens:
    """Checks the tokens of one provider."""

    def __init__(self, settings: OidcSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        audiences = (settings.audience,)
        self._tokens = SignedTokens(
            settings.jwks, settings.issuer, audiences, LEEWAY_SECONDS, clock
        )

    async def read(self, token: str) -> Bearer:
        """Return the holder of a token; raises `BearerRefusedError`."""
        claims = await self._tokens.verify(token)
        return Bearer(self._name_in(claims), self._access_in(claims))

    def _name_in(self, claims: Mapping[str, Any]) -> str:
        name = claims.get(self._settings.name_claim)
        if not isinstance(name, str) or not name.strip():
            raise BearerRefusedError(f"it has no claim {self._settings.name_claim}")
        name = name[:LONGEST_NAME]
        return name if name.isprintable() else ascii(name)

    def _access_in(self, claims: Mapping[str, Any]) -> Access:
        groups = values_at(claims, self._settings.roles_claim)
        return Access(
            tuple(
                Grant(RIGHTS[each.role], each.connectors)
                for each in self._settings.roles
                if each.group in groups
            )
        )


def values_at(claims: Mapping[str, Any], path: str) -> frozenset[str]:
    """Return the texts of a claim: a text with spaces between words, or a list.

    `realm_access.roles` is the member `roles` of the claim `realm_access`, if no claim has the
    whole as its name.
    """
    value: Any = claims
    for name in [path] if path in claims else path.split("."):
        value = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return frozenset(value.split())
    if isinstance(value, list):
        return frozenset(each for each in cast("list[object]", value) if isinstance(each, str))
    return frozenset()
