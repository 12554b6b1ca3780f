"""The eager assignor: everything is dealt anew, to one worker after the other.

One cursor goes round the workers in the order of their ids: first all connectors, then the
tasks of one connector after the other. Where work has been does not count; before it rejoins, a
worker has stopped all. Version 0 of KIP-415's protocol, `EagerAssignor` of Connect.
"""

from collections.abc import Collection

from ....events.model import Resource, Resources
from .loads import KINDS, Loads, of_kind


def assign(configured: Resources, workers: Collection[str]) -> Loads:
    """Return the whole assignment of every worker, in the order in which it is dealt."""
    order = sorted(workers)
    if not order:
        return {}
    in_order = sorted(configured)
    dealt: list[Resource] = [each for tasks in KINDS for each in of_kind(in_order, tasks=tasks)]
    return {worker: tuple(dealt[turn :: len(order)]) for turn, worker in enumerate(order)}
