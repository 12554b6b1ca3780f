"""What classic members of a mixed group own by their metadata, and what they are assigned."""

from ....events.group import Group, Member
from ....events.model import NOTHING, ClassicMetadata, Resources
from .protocol import AssignmentContent, OfferedMetadata, Translation


def offered_metadata(classic: ClassicMetadata, translation: Translation) -> OfferedMetadata:
    """Return a classic member's metadata for its first protocol; raises UnreadableError."""
    return translation.read(classic.protocols[0])


def owned_resources(classic: ClassicMetadata, translation: Translation) -> Resources | None:
    """Return what a member owned when it joined; None: it did not say.

    One that stops everything before it joins owns nothing, whatever its metadata still name. Raises
    UnreadableError.
    """
    if classic.spoke and translation.stops_first(classic.spoke):
        return NOTHING
    return offered_metadata(classic, translation).owned


def assignment_content(group: Group, member: Member, translation: Translation) -> AssignmentContent:
    """Return what a classic member's assignment has to say now.

    The config offset is that of the record which says what is configured, or the furthest that any
    classic member has read if that is higher: one that all can reach. Raises UnreadableError.
    """
    leader = min(group.translated, default=member.member_id)
    told = {
        each: offered_metadata(classic, translation)
        for each in group.translated
        if (classic := group.members[each].metadata.classic) is not None
    }
    classic = member.metadata.classic
    owned = None if classic is None else owned_resources(classic, translation)
    return AssignmentContent(
        frozenset(member.current.assigned),
        owned or NOTHING,
        leader,
        told[leader].url if leader in told else member.metadata.url,
        max([group.configured_offset, *(each.offset for each in told.values())]),
        told[member.member_id].version if member.member_id in told else 0,
    )
