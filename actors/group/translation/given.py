"""What the members of a mixed group say that they run, and what they are told to run."""

from ....events.group import Group, Member
from ....events.model import NOTHING, ClassicMetadata, Resources
from .protocol import Given, Said, Translation


def said_by(classic: ClassicMetadata, translation: Translation) -> Said:
    """Return what a classic member tells with its own first protocol; raises UnreadableError."""
    return translation.read(classic.protocols[0])


def owned_by(classic: ClassicMetadata, translation: Translation) -> Resources | None:
    """Return what a member ran when it joined; None: it did not say.

    Who stops everything before it joins runs nothing, whatever its metadata still name. Raises
    UnreadableError.
    """
    if classic.spoke and translation.stops_first(classic.spoke):
        return NOTHING
    return said_by(classic, translation).owned


def given_to(group: Group, member: Member, translation: Translation) -> Given:
    """Return what a classic member may run now, and whom it takes for its leader.

    The offset is that of the record which says what is configured, or beyond it the furthest that
    any classic member has read: one that all can reach. Raises UnreadableError.
    """
    leader = min(group.translated, default=member.member_id)
    told = {
        each: said_by(classic, translation)
        for each in group.translated
        if (classic := group.members[each].metadata.classic) is not None
    }
    classic = member.metadata.classic
    owned = None if classic is None else owned_by(classic, translation)
    return Given(
        frozenset(member.current.assigned),
        owned or NOTHING,
        leader,
        told[leader].url if leader in told else member.metadata.url,
        max([group.configured_offset, *(each.offset for each in told.values())]),
        told[member.member_id].version if member.member_id in told else 0,
    )
