"""How callers of the REST interface prove who they are, and their limits: the settings of it."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from ...events.placement import split_list
from .rights import Role, parse_patterns

OIDC: Final = "oidc."
"""The prefix of the texts about an identity provider."""


class Authentication(StrEnum):
    """How a caller proves who they are."""

    NONE = "none"
    """By nothing but the address, on this machine."""
    BASIC = "basic"
    """By a user name and a password."""
    TOKEN = "token"  # noqa: S105  # a word
    """By a token of this node."""
    MTLS = "mtls"
    """By the certificate of the connection."""
    OIDC = "oidc"
    """By a signed token of an identity provider."""


def parse_authentication(text: str) -> tuple[Authentication, ...]:
    """Parse kinds of authentication, with commas between them; raises `ValueError`."""
    words = split_list(text.lower())
    if not words:
        raise ValueError("it is blank")
    for each in words:
        if each not in {*Authentication}:
            raise ValueError(f"{each!r} is none of {', '.join(Authentication)}")
    return tuple(dict.fromkeys(map(Authentication, words)))


class GroupRole(NamedTuple):
    """The role of a group of an identity provider, and the connectors that it is for."""

    group: str
    role: Role
    connectors: tuple[str, ...] = ()


def parse_group_roles(text: str) -> tuple[GroupRole, ...]:
    """Parse `GROUP:ROLE` or `GROUP:ROLE:PATTERN`, with commas; raises `ValueError`."""
    return tuple(map(_parse_group_role, split_list(text)))


def _parse_group_role(text: str) -> GroupRole:
    parts = text.split(":")  # the name of a group may have colons, too
    at = next((n for n in range(len(parts) - 1, 0, -1) if parts[n] in {*Role}), 0)
    group, pattern = ":".join(parts[:at]), ":".join(parts[at + 1 :])
    if not group:
        raise ValueError(f"{text!r} is not GROUP:ROLE, with one of {', '.join(Role)} as its role")
    return GroupRole(group, Role(parts[at]), parse_patterns(pattern))


class BearerRefusedError(Exception):
    """A token does not count; the message is the reason, for the log."""


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """An identity provider, and what its tokens let their holders do."""

    issuer: str
    jwks: str
    """A file, or an https URL."""
    audience: str
    roles_claim: str
    """The path of the claim with the holder's groups."""
    roles: tuple[GroupRole, ...]
    name_claim: str = "sub"


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Who may send requests, and how many; passed to the REST process as texts."""

    authentication: tuple[Authentication, ...] = (Authentication.NONE,)
    requests_per_second: int = 0
    """Of each principal; 0 is no limit."""
    request_max_bytes: int = 0
    """Of each body; 0: only the limits of each route."""
    oidc: OidcSettings | None = None

    @property
    def is_open(self) -> bool:
        """Whether callers on this machine may do everything without proof."""
        return Authentication.NONE in self.authentication

    def texts(self) -> list[str]:
        """Return the settings as `NAME=VALUE`."""
        values: dict[str, object] = {
            "authentication": ",".join(self.authentication),
            "requests_per_second": self.requests_per_second,
            "request_max_bytes": self.request_max_bytes,
        }
        if self.oidc is not None:
            roles = (":".join((g.group, g.role, *g.connectors)) for g in self.oidc.roles)
            of_oidc = {**asdict(self.oidc), "roles": ",".join(roles)}
            values |= {f"oidc.{name}": value for name, value in of_oidc.items()}
        return [f"{name}={value}" for name, value in values.items()]

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "AccessSettings":
        """Return the settings of texts; raises `ValueError`."""
        values: Mapping[str, str] = dict(each.split("=", 1) for each in texts)
        of_oidc: dict[str, Any] = {
            name.removeprefix(OIDC): value
            for name, value in values.items()
            if name.startswith(OIDC)
        }
        if of_oidc:
            of_oidc["roles"] = parse_group_roles(of_oidc["roles"])
        return cls(
            parse_authentication(values.get("authentication", Authentication.NONE)),
            int(values.get("requests_per_second", 0)),
            int(values.get("request_max_bytes", 0)),
            OidcSettings(**of_oidc) if of_oidc else None,
        )


OPEN: Final = AccessSettings()
