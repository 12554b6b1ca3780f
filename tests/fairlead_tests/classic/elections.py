"""The protocol election of a classic group."""

from collections.abc import Iterable, Sequence

from fairlead.actors.classic.rules import elect_protocol
from fairlead.events.model import ClassicMember, ClassicProtocol


def elected(offers: Iterable[Sequence[str]]) -> str | None:
    """Return the protocol of members that each offer these, the preferred one first."""
    return elect_protocol(
        ClassicMember(
            str(number), 6_000, 6_000, tuple(ClassicProtocol(each, b"") for each in names)
        )
        for number, names in enumerate(offers)
    )
