"""What workers have above their share, so that others may have it in the round after.

The measure is what is configured, not what runs; a plain count, connectors and tasks apart.
See `performLoadBalancingRevocations` of Connect's `IncrementalCooperativeAssignor`.
"""

from collections.abc import Sequence

from ....events.model import Resource, Resources
from .loads import KINDS, Loads, kind_of, of_kind


def surplus(configured: Resources, loads: Loads) -> Loads:
    """Return what each worker has too much, the longest held first; who has none is left out."""
    if not configured or not any(loads.values()):
        return {}
    taken: dict[str, Sequence[Resource]] = {}
    for tasks in KINDS:
        total = len(of_kind(configured, tasks=tasks))
        for worker, over in _above(total, kind_of(loads, tasks=tasks)).items():
            taken[worker] = (*taken.get(worker, ()), *over)
    return taken


def _above(total: int, loads: Loads) -> Loads:
    """Return what has to go for every worker to have its even part of the total, or less.

    The odd ones stay with those that come first, by their ids, of who has more than that.
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
