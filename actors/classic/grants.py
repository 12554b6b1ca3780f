"""Since when each worker of Connect runs what its leader gave it: the grant epochs of its tokens.

A leader tells increments (what a worker takes over and gives up, beside what it named as its own
when it joined) or, in the eager protocol, all. From these and from what the last generation left
follows what each worker runs:

* what it named, goes on with, and held before: since the generation that gave it;
* what it is given, and what it named and did not hold: since this generation;
* what it is to give up: pending, as it was, until the next generation finds it without.

What a leader leaves to several workers belongs to one of them: to the one that held it before,
else to the first. The others are granted nothing, and start nothing of it.

Eager workers stop everything before they join: what they get is given anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...events.model import CONNECT, ClassicMember, Grants, Resource
from ...events.records import ClassicGroup
from ..assignors.classic.protocol import EAGER, VERSIONS
from .bytes import connect
from .bytes.primitives import UnwritableError


def succeed(before: ClassicMember, member: ClassicMember) -> ClassicMember:
    """Return a member that joins anew, with what it had before."""
    return replace(
        member,
        instance_id=before.instance_id,
        assignment=before.assignment,
        assigned=before.assigned,
        pending=before.pending,
        returns=before.returns,
    )


def take_over(last: ClassicGroup, before: ClassicMember, member: ClassicMember) -> ClassicMember:
    """Return the next process of a static seat, with the work of the one before under new tokens.

    It is told in full what it is to run: the increments of the generation were for another.
    """
    version = _version_of(last)
    if version is None:
        return replace(member, assignment=before.assignment)
    assignment = _in_full(before, version)
    return replace(
        member, assignment=assignment, assigned=before.assigned, returns=before.returns + 1
    )


def _in_full(member: ClassicMember, version: int) -> bytes:
    if not member.assignment:
        return b""
    told = connect.decode_assignment(member.assignment, version)
    runs = tuple(sorted(member.assigned))
    try:
        return connect.encode_assignment(
            replace(told, assigned=runs, revoked=(), delay_ms=0, version=version)
        )
    except UnwritableError:  # it cannot be told in one message: it starts with a round
        return member.assignment


def grant(
    last: ClassicGroup, members: Sequence[ClassicMember], assignments: Mapping[str, bytes]
) -> tuple[ClassicMember, ...]:
    """Return the members with what the leader assigns; whom it leaves out is assigned nothing.

    Raises UnreadableError for bytes that no worker could read.
    """
    members = [replace(each, assignment=assignments.get(each.member_id, b"")) for each in members]
    version = _version_of(last)
    if version is None or last.protocol is None:
        return tuple(members)
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
    """What one worker goes on with, is given, and gives up."""

    kept: Sequence[Resource]
    given: Sequence[Resource]
    revoked: Sequence[Resource]


def _share_of(member: ClassicMember, protocol: str, version: int) -> _Share:
    if not member.assignment:
        return _Share(_named(member, protocol, version), (), ())
    told = connect.decode_assignment(member.assignment, version)
    if version == EAGER:
        return _Share((), told.assigned, ())
    gone = frozenset(told.revoked)
    named = _named(member, protocol, version)
    return _Share([each for each in named if each not in gone], told.assigned, told.revoked)


def _named(member: ClassicMember, protocol: str, version: int) -> Sequence[Resource]:
    """Return what a worker says that it runs; an eager one runs nothing when it joins."""
    if version == EAGER:
        return ()
    metadata = next(each.metadata for each in member.protocols if each.name == protocol)
    allocation = connect.decode_metadata(metadata, version).allocation
    return allocation.assigned if allocation else ()


def _settle(members: Iterable[ClassicMember], shares: Iterable[_Share]) -> Mapping[Resource, str]:
    """Return to whom each resource belongs that anybody is to run."""
    holders: dict[Resource, str] = {}
    for member, share in zip(members, shares, strict=True):
        for resource in (*share.kept, *share.given):
            if resource in member.assigned:
                holders[resource] = member.member_id
            else:
                holders.setdefault(resource, member.member_id)
    return holders


def _granted(
    member: ClassicMember, share: _Share, holders: Mapping[Resource, str], generation: int
) -> ClassicMember:
    before: Grants = {**member.pending, **member.assigned}
    kept = {each: before.get(each, generation) for each in share.kept}
    given = {each: kept.get(each, generation) for each in share.given}
    return replace(
        member,
        assigned={
            each: since
            for each, since in {**kept, **given}.items()
            if holders[each] == member.member_id
        },
        pending={
            each: before[each] for each in share.revoked if each in before and each not in holders
        },
    )
