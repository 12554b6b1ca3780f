"""The settings of a node about who may send requests to its REST interface, and how many."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...security.settings import (
    AccessSettings,
    Authentication,
    OidcSettings,
    parse_authentication,
    parse_group_roles,
)
from .kafka import KafkaSettings
from .kinds import INT32_MAX, JWKS, TEXT, number
from .setting import Contradiction, Domain, setting


def _check_authentication(text: str) -> str:
    return ",".join(parse_authentication(text))


def _check_group_roles(text: str) -> str:
    parse_group_roles(text)
    return text


GROUP_ROLES: Final = Domain(_check_group_roles, "GROUP:ROLE, with commas between them, or nothing")
AUTHENTICATION: Final = Domain(
    _check_authentication, f"any of {', '.join(Authentication)}, with commas between them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKeys(KafkaSettings):
    """The settings of a node about the callers of its REST interface."""

    rest_authentication: str = setting(
        AUTHENTICATION,
        Authentication.NONE,
        "How callers of the REST interface prove who they are: basic (users and passwords), token,"
        " both of `fairlead auth`; mtls; oidc. With none, whoever can connect on this machine may"
        " do everything.",
    )
    rest_requests_per_second: int = setting(
        number(0, INT32_MAX, "requests/s"),
        0,
        "How many requests each caller may send per second; more are answered 429. 0: any number.",
    )
    rest_request_max_bytes: int = setting(
        number(0, INT32_MAX, "bytes"),
        0,
        "The largest body of a request, where its route has no smaller limit. 0: only those.",
    )

    rest_oidc_issuer: str = setting(
        TEXT, "", "The identity provider whose tokens count: the claim iss of them."
    )
    rest_oidc_jwks: str = setting(
        JWKS, "", "The keys of the identity provider, a JWKS document: a file, or an https URL."
    )
    rest_oidc_audience: str = setting(
        TEXT, "", "The name of this node, or of all, at the provider: the claim aud of tokens."
    )
    rest_oidc_roles_claim: str = setting(
        TEXT,
        "groups",
        "The claim with the groups of a token's holder; realm_access.roles is a member of a claim.",
    )
    rest_oidc_roles: str = setting(
        GROUP_ROLES,
        "",
        "The role of each group, GROUP:ROLE with commas; GROUP:ROLE:PATTERN is for connectors whose"
        " names match.",
    )
    rest_oidc_name_claim: str = setting(
        TEXT, "sub", "The claim with the name of a token's holder, as the log has it."
    )

    def oidc(self) -> OidcSettings | None:
        """Return the identity provider, None if its tokens are not asked for."""
        if Authentication.OIDC not in parse_authentication(self.rest_authentication):
            return None
        return OidcSettings(
            self.rest_oidc_issuer,
            self.rest_oidc_jwks,
            self.rest_oidc_audience,
            self.rest_oidc_roles_claim,
            parse_group_roles(self.rest_oidc_roles),
            self.rest_oidc_name_claim,
        )

    def access(self) -> AccessSettings:
        """Return who may send requests, and how many."""
        return AccessSettings(
            parse_authentication(self.rest_authentication),
            self.rest_requests_per_second,
            self.rest_request_max_bytes,
            self.oidc(),
        )


def flaws_in_access(settings: AccessKeys) -> Iterator[Contradiction]:
    """Yield what is missing if tokens of an identity provider are asked for."""
    needed = {
        "rest.oidc.issuer": settings.rest_oidc_issuer,
        "rest.oidc.jwks": settings.rest_oidc_jwks,
        "rest.oidc.audience": settings.rest_oidc_audience,
        "rest.oidc.roles": settings.rest_oidc_roles,
    }
    missing = [key for key, value in needed.items() if not value]
    if settings.oidc() is not None and missing:
        yield Contradiction(
            ("rest.authentication", *missing),
            f"rest.authentication = {settings.rest_authentication} needs {', '.join(missing)}:"
            " whose tokens count, for whom, and which role each group has",
        )
