"""Groups as an assignor sees them, written in the short form of resources."""

from collections.abc import Mapping
from dataclasses import replace

from fairlead.actors.assignors.built_in.balanced import NAME
from fairlead.actors.messages.computing import Assignment, LossView, MemberView, Snapshot
from fairlead.events.model import CONNECTOR, Resource, Resources

NOW_MS = 1_000_000
DEADLINE_MS = NOW_MS + 300_000


def work(text: str) -> Resources:
    """Read `A A-0 B`: a connector, its first task, another connector."""
    return frozenset(one(word) for word in text.split())


def one(word: str) -> Resource:
    connector, _, task = word.partition("-")
    return Resource(connector, int(task) if task else CONNECTOR)


def member(
    member_id: str,
    target: str | Resources = "",
    *,
    owned: str | Resources | None = None,
    instance_id: str | None = None,
    url: str = "",
    metadata: bytes = b"",
) -> MemberView:
    goal = work(target) if isinstance(target, str) else target
    has = work(owned) if isinstance(owned, str) else owned
    return MemberView(
        member_id=member_id,
        member_epoch=1,
        instance_id=instance_id,
        url=url,
        rack=None,
        version=0,
        reason=0,
        metadata=metadata,
        owned=goal if has is None else has,
        target=goal,
    )


def loss(
    member_id: str,
    resources: str,
    *,
    deadline_ms: int = DEADLINE_MS,
    instance_id: str | None = None,
    url: str = "",
) -> LossView:
    return LossView(member_id, instance_id, url, work(resources), deadline_ms)


def snapshot(
    configured: str | Resources,
    *members: MemberView,
    losses: tuple[LossView, ...] = (),
    parked: Mapping[Resource, int] | None = None,
    fired: str = "",
) -> Snapshot:
    return Snapshot(
        group_epoch=2,
        assignment_epoch=1,
        assignor=NAME,
        assignor_metadata=b"",
        configured=work(configured) if isinstance(configured, str) else configured,
        members={each.member_id: each for each in members},
        losses=losses,
        parked=parked or {},
        fired=work(fired),
        now_ms=NOW_MS,
    )


def outcome(
    shares: Mapping[str, str], parked: str = "", deadline_ms: int = DEADLINE_MS
) -> Assignment:
    return Assignment(
        members={member_id: work(text) for member_id, text in shares.items()},
        parked=dict.fromkeys(work(parked), deadline_ms),
    )


def after(before: Snapshot, assignment: Assignment) -> Snapshot:
    """Return the snapshot after every member has reached the assignment."""
    members = {
        member_id: replace(view, target=given, owned=given)
        for member_id, view in before.members.items()
        for given in [assignment.members[member_id]]
    }
    return replace(before, members=members, parked=assignment.parked)
