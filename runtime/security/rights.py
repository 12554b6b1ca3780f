"""Rights, the roles that have them, and the connectors that a role is limited to."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from fnmatch import fnmatchcase
from typing import Final

from ...events.placement import split_list

LONGEST_PATTERN: Final = 255
MOST_PATTERNS: Final = 100


class Right(Enum):
    """A right that a route needs of its caller; none includes another."""

    VIEW = "view"
    """To read what there is, and to compute what would be."""
    OPERATE = "operate"
    """To have what is configured run, pause, restart, move to other workers or other offsets."""
    ADMINISTER = "administer"
    """To change what is configured: connectors, groups, log levels."""


class Role(StrEnum):
    """A set of rights that a user, a token or a certificate has."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


RIGHTS: Final[Mapping[Role, frozenset[Right]]] = {
    Role.VIEWER: frozenset({Right.VIEW}),
    Role.OPERATOR: frozenset({Right.VIEW, Right.OPERATE}),
    Role.ADMIN: frozenset(Right),
}


def parse_patterns(text: str) -> tuple[str, ...]:
    """Parse patterns of connector names, with commas between them; raises `ValueError`.

    A pattern is a glob as of the shell (`*`, `?`, `[abc]`), and matches the whole name, in its
    case. No pattern stands for all connectors.
    """
    patterns = split_list(text)
    if len(patterns) > MOST_PATTERNS:
        raise ValueError(f"there are {len(patterns)} patterns, {MOST_PATTERNS} at most are taken")
    for each in patterns:
        if not each or len(each) > LONGEST_PATTERN or not each.isprintable():
            raise ValueError(f"{each[:LONGEST_PATTERN]!r} is no pattern of connector names")
    return patterns


@dataclass(frozen=True, slots=True)
class Grant:
    """Rights, and the connectors that they are for."""

    rights: frozenset[Right]
    connectors: tuple[str, ...] = ()
    """The patterns of their names; none: all connectors, and the node itself."""

    def covers(self, connector: str) -> bool:
        """Return whether a connector's name matches one of the patterns."""
        return not self.connectors or any(fnmatchcase(connector, p) for p in self.connectors)


@dataclass(frozen=True, slots=True)
class Access:
    """All that a caller may do: the union of their grants."""

    grants: tuple[Grant, ...]

    @classmethod
    def of(cls, role: Role, connectors: tuple[str, ...] = ()) -> "Access":
        """Return the access of one role."""
        return cls((Grant(RIGHTS[role], connectors),))

    @property
    def is_limited(self) -> bool:
        """Whether there may be connectors that the caller does not see."""
        return not self.has_everywhere(Right.VIEW)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of the connectors that the caller sees; none: all."""
        if not self.is_limited:
            return ()
        return tuple(dict.fromkeys(each for grant in self.grants for each in grant.connectors))

    def has(self, right: Right, connector: str) -> bool:
        """Return whether the caller has a right to a connector."""
        return any(right in each.rights and each.covers(connector) for each in self.grants)

    def has_everywhere(self, right: Right) -> bool:
        """Return whether the caller has a right to all connectors, and to the node."""
        return any(right in each.rights and not each.connectors for each in self.grants)

    def has_somewhere(self, right: Right) -> bool:
        """Return whether the caller has a right to any connector."""
        return any(right in each.rights for each in self.grants)

    def sees(self, connector: str) -> bool:
        """Return whether the caller may know that there is a connector of this name."""
        return self.has(Right.VIEW, connector)


FULL: Final = Access.of(Role.ADMIN)
NOTHING: Final = Access(())
