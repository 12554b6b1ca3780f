"""The protocols that Connect's workers offer, and which one a group speaks.

A worker offers the one that it is configured for and all older ones, the newest first. See
KIP-415, KIP-507, and `ConnectProtocolCompatibility` of Connect.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

EAGER = 0
"""The version of the protocol in which everybody stops everything before it rejoins."""

VERSIONS: Mapping[str, int] = {"default": EAGER, "compatible": 1, "sessioned": 2}
"""Protocols by their names on the wire."""

MODES: Mapping[str, str] = {
    "eager": "default",
    "compatible": "compatible",
    "sessioned": "sessioned",
}
"""The newest protocol that a worker offers, by its setting `connect.protocol`."""


def offered(mode: str) -> Sequence[str]:
    """Return what a worker of this mode offers, the one that it likes best first."""
    newest = VERSIONS[MODES[mode]]
    older = [name for name, version in VERSIONS.items() if version <= newest]
    return sorted(older, key=VERSIONS.__getitem__, reverse=True)


def select(offers: Iterable[Sequence[str]]) -> str | None:
    """Return the protocol of a group, or None where its members have none in common.

    Every member votes for the first on its list that all of them offer; most votes win. Of
    equals the first name by the alphabet wins, where Kafka takes the first of a hash map.
    """
    lists = list(offers)
    if not lists:
        return None
    common = frozenset(lists[0]).intersection(*lists)
    if not common:
        return None
    votes = Counter(next(name for name in each if name in common) for each in lists)
    return min(votes, key=lambda name: (-votes[name], name))
