"""The base of all built-in assignors: the work that is placed before the rest is dealt out.

Lost work that may wait is parked (PROTOCOL §7), work of a cordoned worker stays there, and where no
member takes work all else is unplaceable. Assignors differ in how they share out what is left.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...events.model import NOTHING, Resource, Resources
from ..messages.computing import Assignment, LossView, MemberView, Snapshot
from .demands import NO_DEMAND, DemandIndex, demand_of, nobody_meets, part_met_by, place_demanded
from .eligibility import Claim, Eligible, Shares, claim_shares, eligible, keep_shares

NO_MEMBERS = "no members"


@dataclass(frozen=True, slots=True)
class OpenWork:
    """The resources to distribute among the takers of a snapshot, at least one."""

    snapshot: Snapshot
    members: Eligible
    resources: Resources
    """What is neither parked nor stays with a keeper."""
    back: Sequence[Claim]
    """The claims of members that came back to their lost work."""
    staying: Mapping[str, Resources]
    """What each keeper keeps."""


ShareOut = Callable[[OpenWork], tuple[Mapping[str, Resources], Mapping[Resource, str]]]
"""Returns each taker's share of open work, and what no taker may run, with the reason."""

Dealing = Callable[[Resources, Shares, Mapping[str, Resources]], Shares]
"""Deals out resources, given what each taker has a claim to, and what demanding work it gets."""


def place(snapshot: Snapshot, share_out: ShareOut) -> Assignment:
    """Return the assignment of all configured resources: to a member, parked, or unplaceable.

    Every member of the snapshot has an entry; deadlines are wall clock, in milliseconds. Where no
    member takes work, what no member keeps is unplaceable.
    """
    if not snapshot.members:
        nowhere = dict.fromkeys(sorted(snapshot.configured), NO_MEMBERS)
        return Assignment(members={}, unplaceable=nowhere)
    members = eligible(snapshot.members)
    parked, back = _sort_losses(snapshot, members)
    waiting = snapshot.configured.difference(parked) if parked else snapshot.configured
    staying = keep_shares(members, waiting, partial(part_met_by, snapshot))
    free = waiting.difference(*staying.values()) if staying else waiting
    shares: Mapping[str, Resources] = {}
    unplaceable: Mapping[Resource, str] = {}
    if members.takers:
        shares, unplaceable = share_out(OpenWork(snapshot, members, free, back, staying))
    else:
        unplaceable = dict.fromkeys(sorted(free), nobody_meets(NO_DEMAND, ()))
    shares = {**staying, **shares}
    return Assignment(
        {member: shares.get(member, NOTHING) for member in sorted(snapshot.members)},
        parked,
        unplaceable,
    )


def demands_first(deal: Dealing) -> ShareOut:
    """Return a rule that first assigns resources with demands, and then distributes the others."""

    def share_out(work: OpenWork) -> tuple[Mapping[str, Resources], Mapping[Resource, str]]:
        claims = claim_shares(work.members, work.back)
        demanded = place_demanded(work.snapshot, work.members, work.resources, claims)
        dealt = deal(work.resources - demanded.all, claims, demanded.shares)
        shares = {
            member: demanded.shares.get(member, NOTHING).union(dealt.get(member, ()))
            for member in claims
        }
        return shares, demanded.unplaceable

    return share_out


def drop_losses(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without its losses, for assignors that park nothing."""
    return replace(snapshot, losses=(), parked={})


def _sort_losses(
    snapshot: Snapshot, members: Eligible
) -> tuple[dict[Resource, int], Sequence[Claim]]:
    """Return the resources that stay parked, with deadlines, and the claims of returned members.

    Work that came back with a worker that is not warm yet waits no longer, if a warm one may run
    it: the wait was for the worker, not for an engine.
    """
    lost = _find_waiting(snapshot)
    back = _find_returned(snapshot.losses, members.takers, frozenset(lost))
    came_back = NOTHING.union(*(resources for _, resources in back))
    if members.cold:
        cold = _find_returned(snapshot.losses, members.cold, frozenset(lost) - came_back)
        came_back |= _find_runnable(
            snapshot, members.takers, NOTHING.union(*(each for _, each in cold))
        )
    return {resource: at for resource, at in lost.items() if resource not in came_back}, back


def _find_waiting(snapshot: Snapshot) -> dict[Resource, int]:
    """Return the lost work that may wait, each with its deadline.

    Work that is parked already keeps its deadline; of several losses the latest counts. Work whose
    deadline has fired, or that a present member has or is to have, waits no longer.
    """
    deadlines: dict[Resource, int] = {}
    for loss in sorted(snapshot.losses, key=lambda loss: loss.deadline_ms):
        deadlines.update(dict.fromkeys(loss.resources, loss.deadline_ms))
    deadlines.update(snapshot.parked)
    if not deadlines:
        return {}
    present = snapshot.members.values()
    absent = (snapshot.configured.intersection(deadlines) - snapshot.fired).difference(
        *(member.target for member in present), *(member.owned for member in present)
    )
    pending = (resource for resource in absent if deadlines[resource] > snapshot.now_ms)
    return {resource: deadlines[resource] for resource in sorted(pending)}


def _find_returned(
    losses: Iterable[LossView], takers: Sequence[MemberView], lost: Resources
) -> Sequence[Claim]:
    """Return the claims of members that came back to their lost work, the latest loss first.

    Only the return of `takers` counts. A member comes back with its instance id, its member id, or
    the url of its worker, in this order.
    """
    if not lost:
        return ()
    # Backwards: of several with one url the lowest member id wins.
    by_instance = {taker.instance_id: taker.member_id for taker in reversed(takers)}
    by_url = {taker.url: taker.member_id for taker in reversed(takers)}
    ids = {taker.member_id for taker in takers}
    claims: list[Claim] = []
    for loss in sorted(losses, key=_latest_first):
        if loss.instance_id is not None and loss.instance_id in by_instance:
            claims.append((by_instance[loss.instance_id], loss.resources & lost))
        elif loss.member_id in ids:
            claims.append((loss.member_id, loss.resources & lost))
        elif loss.url and loss.url in by_url:
            claims.append((by_url[loss.url], loss.resources & lost))
    return claims


def _latest_first(loss: LossView) -> tuple[int, str, str, str]:
    return -loss.deadline_ms, loss.member_id, loss.instance_id or "", loss.url


def _find_runnable(snapshot: Snapshot, takers: Sequence[MemberView], lost: Resources) -> Resources:
    """Return the lost resources that at least one taker may run."""
    index = DemandIndex(takers)
    demands = {each: demand_of(snapshot, each) for each in lost}
    runnable = {demand for demand in set(demands.values()) if index.takers_of(demand)}
    return frozenset(each for each, demand in demands.items() if demand in runnable)
