"""Lost work: how long it may wait, and with which member it has come back (PROTOCOL §7)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...events.model import NOTHING, Resource, Resources
from ..messages.computing import LossView, MemberView, Snapshot
from .demands import DemandIndex, demand_of
from .eligibility import Claim, Eligible


def find_waiting(snapshot: Snapshot) -> dict[Resource, int]:
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


def sort_losses(
    snapshot: Snapshot, members: Eligible
) -> tuple[dict[Resource, int], Sequence[Claim]]:
    """Return what stays parked, each with its deadline, and the claims of members that came back.

    Work that came back with a worker that is not warm yet waits no longer, if a warm one may run
    it: the wait was for the worker, not for an engine.
    """
    lost = find_waiting(snapshot)
    back = find_returned(snapshot.losses, members.takers, frozenset(lost))
    came_back = NOTHING.union(*(resources for _, resources in back))
    if members.cold:
        cold = find_returned(snapshot.losses, members.cold, frozenset(lost) - came_back)
        came_back |= _find_runnable(
            snapshot, members.takers, NOTHING.union(*(each for _, each in cold))
        )
    return {resource: at for resource, at in lost.items() if resource not in came_back}, back


def _find_runnable(snapshot: Snapshot, takers: Sequence[MemberView], lost: Resources) -> Resources:
    """Return what of the lost work any of the takers may run."""
    index = DemandIndex(takers)
    demands = {each: demand_of(snapshot, each) for each in lost}
    met = {demand for demand in set(demands.values()) if index.takers_of(demand)}
    return frozenset(each for each, demand in demands.items() if demand in met)


def drop_losses(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot as if nothing had been lost: for assignors that park nothing."""
    return replace(snapshot, losses=(), parked={})


def find_returned(
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
