"""Loads: the work of each worker, in the order in which it came; dealing and revoking it.

The eager assignor deals everything in each round: see `deal_eagerly`. For the incremental one the
order matters: work is revoked from the front, which is what was there longest. Work is dealt to the
least loaded workers first, until all are level, then to each in turn; what is above a worker's
share is revoked, so that others get it in the next round. Connectors and tasks are counted
separately. See Connect's `EagerAssignor`, and `assignConnectors`, `assignTasks` and
`performLoadBalancingRevocations` of its `IncrementalCooperativeAssignor`.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from ....events.model import NOTHING, Resource, Resources

Loads = Mapping[str, Sequence[Resource]]
"""Resources by worker."""

KINDS = (False, True)
"""Connectors, then tasks, as `is_task` tells them apart; the assignors level each alone."""


def deal_eagerly(configured: Resources, workers: Collection[str]) -> Loads:
    """Return the whole assignment of every worker, in the order in which it is dealt.

    One cursor goes round the workers in the order of their ids: first all connectors, then the
    tasks of one connector after the other. Where work has been does not count; before it rejoins,
    a worker has stopped all (version 0 of KIP-415's protocol).
    """
    order = sorted(workers)
    in_order = sorted(configured)
    dealt = [each for tasks in KINDS for each in of_kind(in_order, tasks=tasks)]
    return {worker: tuple(dealt[turn :: len(order)]) for turn, worker in enumerate(order)}


def union(loads: Loads) -> Resources:
    """Return all that any of the workers has."""
    return NOTHING.union(*loads.values())


def of_kind(resources: Iterable[Resource], *, tasks: bool) -> list[Resource]:
    """Return only the tasks, or only the connectors, in their order."""
    return [resource for resource in resources if resource.is_task is tasks]


def kind_of(loads: Loads, *, tasks: bool) -> Mapping[str, Sequence[Resource]]:
    """Return only the tasks, or only the connectors, of every worker."""
    return {worker: of_kind(load, tasks=tasks) for worker, load in loads.items()}


def remove_loads(loads: Loads, taken: Loads) -> Loads:
    """Subtract from each worker's resources those that are taken from it."""
    return {worker: _drop(load, taken.get(worker, ())) for worker, load in loads.items()}


def add_loads(loads: Loads, added: Loads) -> Loads:
    """Return the loads with others behind them, worker by worker."""
    return {worker: (*load, *added.get(worker, ())) for worker, load in loads.items()}


def _drop(load: Sequence[Resource], taken: Sequence[Resource]) -> Sequence[Resource]:
    if not taken:
        return load
    gone = frozenset(taken)
    return tuple(resource for resource in load if resource not in gone)


def hand_out(items: Sequence[Resource], loads: Loads) -> Loads:
    """Return what each worker gets of the items, which are handed out in their order."""
    added: dict[str, list[Resource]] = {worker: [] for worker in loads}
    for tasks in KINDS:
        sizes = {worker: len(load) for worker, load in kind_of(loads, tasks=tasks).items()}
        _fill(of_kind(items, tasks=tasks), sizes, added)
    return added


def _fill(
    items: Sequence[Resource], sizes: Mapping[str, int], added: Mapping[str, list[Resource]]
) -> None:
    """Assign items to the least loaded workers, in turns, until none is left.

    A worker that has as much as those by now takes its turn behind them, by its id: so the order of
    Connect's stable sort after every turn comes about without sorting.
    """
    if not sizes:
        return
    others = deque(sorted(sizes, key=lambda worker: (sizes[worker], worker)))
    level = sizes[others[0]]
    remaining = deque(items)
    lowest: list[str] = []
    while remaining:
        while others and sizes[others[0]] == level:
            lowest.append(others.popleft())
        for worker in lowest[: len(remaining)]:
            added[worker].append(remaining.popleft())
        level += 1


def find_surplus(configured: Resources, loads: Loads) -> Loads:
    """Return what each worker has above its share, the longest held first; others are left out."""
    if not configured or not any(loads.values()):
        return {}
    taken: dict[str, Sequence[Resource]] = {}
    for tasks in KINDS:
        total = len(of_kind(configured, tasks=tasks))
        for worker, over in _find_above(total, kind_of(loads, tasks=tasks)).items():
            taken[worker] = (*taken.get(worker, ()), *over)
    return taken


def _find_above(total: int, loads: Loads) -> Loads:
    """Return the resources to revoke so that each worker has at most its even part of the total.

    The odd ones stay with the workers that have more than that, in the order of their ids.
    """
    part, odd = divmod(total, len(loads))
    sizes = sorted(map(len, loads.values()))
    if sizes == [part] * (len(loads) - odd) + [part + 1] * odd:
        return {}
    taken: dict[str, Sequence[Resource]] = {}
    for worker in sorted(loads):
        load = loads[worker]
        if len(load) <= part:
            continue
        keeps = part + 1 if odd > 0 else part
        odd -= 1
        if len(load) > keeps:
            taken[worker] = load[: len(load) - keeps]
    return taken
