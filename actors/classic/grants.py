"""The grant epochs of Connect's workers: since which generation each runs what its leader assigned.

A leader sends increments (what a worker takes over and gives up, beside what it named as its own
when it joined) or, in the eager protocol, everything. From these and from the grants of the last
generation follows what each worker runs:

* what it named, keeps, and held before: since the generation that granted it;
* what it is assigned, and what it named and did not hold: since this generation;
* what it named, held before, and is to give up: pending, with its old grant epoch, until a
  generation for which it does not name it any more.

What is pending is granted to no other worker. What a leader assigns to several workers is granted
to one of them: to the one that held it before, else to the first. The others start nothing of it.

Eager workers stop everything before they join, so all their grants are new. But a worker that spoke
another protocol before learns only by its assignment that the group is eager now. What it named and
is not assigned is pending as well, and another round follows once all have their assignments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...events.model import CONNECT, ClassicMember, Grants, Resource
from ...events.records import ClassicGroup
from ..assignors.classic.protocol import EAGER, VERSIONS
from .bytes import connect
from .bytes.primitives import UnwritableError


def carry_over(before: ClassicMember, member: ClassicMember) -> ClassicMember:
    """Return a member that rejoins, with the assignment and grants that it had before."""
    return replace(
        member,
        instance_id=before.instance_id,
        assignment=before.assignment,
        assigned=before.assigned,
        pending=before.pending,
        returns=before.returns,
    )


def without_grants(member: ClassicMember) -> ClassicMember:
    """Return a member without grants."""
    return replace(member, assigned={}, pending={})


def take_over(last: ClassicGroup, before: ClassicMember, member: ClassicMember) -> ClassicMember:
    """Return the new process of a static member, with the work of the old one under new tokens.

    Its assignment is complete: the increments of the generation were meant for the old process.
    """
    version = _version_of(last)
    if version is None:
        return replace(
            member,
            assignment=before.assignment,
            assigned=before.assigned,
            pending=before.pending,
        )
    assignment = _in_full(before, version)
    return replace(
        member, assignment=assignment, assigned=before.assigned, returns=before.returns + 1
    )


def _in_full(member: ClassicMember, version: int) -> bytes:
    if not member.assignment:
        return b""
    assignment = connect.decode_assignment(member.assignment, version)
    runs = tuple(sorted(member.assigned))
    try:
        return connect.encode_assignment(
            replace(assignment, assigned=runs, revoked=(), delay_ms=0, version=version)
        )
    except UnwritableError:  # it does not fit into one message: the worker begins with a round
        return member.assignment


def grant_assignments(
    last: ClassicGroup, members: Sequence[ClassicMember], assignments: Mapping[str, bytes]
) -> tuple[ClassicMember, ...]:
    """Return the members with their assignments and grants; members left out are assigned nothing.

    Raises UnreadableError for unreadable assignments.
    """
    members = [replace(each, assignment=assignments.get(each.member_id, b"")) for each in members]
    version = _version_of(last)
    if version is None or last.protocol is None:  # what a downgrade left is over
        return tuple(map(without_grants, members))
    shares = [_share_of(each, last.protocol, version) for each in members]
    holders = _settle(members, shares)
    return tuple(
        _granted(each, share, holders, last.generation)
        for each, share in zip(members, shares, strict=True)
    )


def _version_of(last: ClassicGroup) -> int | None:
    return VERSIONS.get(last.protocol or "") if last.protocol_type == CONNECT else None


@dataclass(frozen=True, slots=True)
class _Share:
    """The resources that one worker keeps, is assigned, and has to revoke."""

    kept: Sequence[Resource]
    assigned: Sequence[Resource]
    pending: Sequence[Resource]
    """What it held, still runs, and gives up only when it gets this generation's assignment."""


def _share_of(member: ClassicMember, protocol: str, version: int) -> _Share:
    assignment = (
        connect.decode_assignment(member.assignment, version) if member.assignment else None
    )
    assigned = () if assignment is None else assignment.assigned
    if version == EAGER:
        kept, leaving = list[Resource](), _runs(member)
    else:
        named, revoked = _named(member, protocol, version), assignment.revoked if assignment else ()
        kept = [each for each in named if each not in revoked]
        leaving = [each for each in named if each in revoked]
    held = member.assigned.keys() | member.pending.keys()
    return _Share(
        kept, assigned, [each for each in leaving if each in held and each not in assigned]
    )


def _named(member: ClassicMember, protocol: str, version: int) -> Sequence[Resource]:
    """Return the resources that a worker runs, by its metadata for one protocol."""
    metadata = next(each.metadata for each in member.protocols if each.name == protocol)
    allocation = connect.decode_metadata(metadata, version).allocation
    return allocation.assigned if allocation else ()


def _runs(member: ClassicMember) -> Sequence[Resource]:
    """Return the resources that a worker ran when it joined; eager workers do not report them."""
    versions = {each.name: VERSIONS.get(each.name, EAGER) for each in member.protocols}
    name = max(versions, key=versions.__getitem__)
    return _named(member, name, versions[name]) if versions[name] != EAGER else ()


def _settle(members: Sequence[ClassicMember], shares: Sequence[_Share]) -> Mapping[Resource, str]:
    """Return the id of the worker to which each resource belongs."""
    pending = {
        resource: member.member_id
        for member, share in zip(members, shares, strict=True)
        for resource in share.pending
    }
    holders = {**pending}
    for member, share in zip(members, shares, strict=True):
        for resource in (*share.kept, *share.assigned):
            if resource in pending:
                continue
            if resource in member.assigned or resource in member.pending:
                holders[resource] = member.member_id
            else:
                holders.setdefault(resource, member.member_id)
    return holders


def _granted(
    member: ClassicMember, share: _Share, holders: Mapping[Resource, str], generation: int
) -> ClassicMember:
    before: Grants = {**member.pending, **member.assigned}
    kept = {each: before.get(each, generation) for each in share.kept}
    assigned = {each: kept.get(each, generation) for each in share.assigned}
    return replace(
        member,
        assigned={
            each: since
            for each, since in {**kept, **assigned}.items()
            if holders[each] == member.member_id
        },
        pending={each: before[each] for each in share.pending},
    )


def needs_another_round(last: ClassicGroup | None) -> bool:
    """Return whether an eager generation has pending work: only a new round assigns that."""
    if last is None or not last.is_synced or not is_eager(last):
        return False
    return any(each.pending for each in last.members)


def is_eager(last: ClassicGroup) -> bool:
    """Return whether a generation speaks Connect's eager protocol."""
    return _version_of(last) == EAGER
