"""The indexes of a group, as kept and as recomputed."""

from collections import Counter
from typing import Any

from fairlead.events.group import Group
from fairlead.events.model import MemberState

INDEXES = (
    "owner",
    "instances",
    "away",
    "translated",
    "away_urls",
    "target_owner",
    "stable_at",
    "assignor_ranges",
    "runners",
    "ballots",
    "server_choices",
    "loss_deadlines",
    "next_deadline_ms",
)


def indexes_of(group: Group) -> dict[str, Any]:
    """Return the indexes that a group maintains."""
    return {name: getattr(group, name) for name in INDEXES}


def indexes_from_scratch(group: Group) -> dict[str, Any]:
    """Recompute the indexes from the group's members, targets and schedule."""
    members = group.members.values()
    spoken = [each.metadata for each in members]
    schedule = group.schedule
    return {
        "owner": {
            resource: each.member_id
            for each in members
            for resource in (*each.current.assigned, *each.current.pending)
        },
        "instances": {each.instance_id: each.member_id for each in spoken if each.instance_id},
        "away": {each.member_id for each in members if each.is_away},
        "translated": {each.member_id for each in spoken if each.classic is not None},
        "away_urls": sorted(
            (each.metadata.url, each.member_id) for each in members if each.is_away
        ),
        "target_owner": {
            resource: member_id
            for member_id, share in group.target_of.items()
            for resource in share
        },
        "stable_at": Counter(
            each.current.member_epoch
            for each in members
            if each.current.state is MemberState.STABLE
        ),
        "assignor_ranges": Counter(
            (each.name, each.minimum_version, each.maximum_version, each.version)
            for metadata in spoken
            for each in metadata.assignors
        ),
        "runners": sorted(
            ((a.name, a.minimum_version, a.maximum_version, a.version), each.member_id)
            for each in members
            if not each.is_away
            for a in each.metadata.assignors
        ),
        "ballots": Counter(
            tuple(each.name for each in metadata.assignors)
            for metadata in spoken
            if metadata.assignors
        ),
        "server_choices": Counter(
            each.server_assignor for each in spoken if each.server_assignor is not None
        ),
        "loss_deadlines": sorted(
            (each.deadline_ms, each.member_id) for each in group.losses.values()
        ),
        "next_deadline_ms": min(
            (due for each, due in schedule.parked.items() if each not in schedule.fired),
            default=None,
        ),
    }
