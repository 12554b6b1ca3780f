"""What each worker has, in the order in which it took it over.

The order counts: what has to go is taken from the front, which is what was there longest.
"""

from collections.abc import Iterable, Mapping, Sequence

from ....events.model import NOTHING, Resource, Resources

Loads = Mapping[str, Sequence[Resource]]
"""Resources by worker."""

KINDS = (False, True)
"""Connectors, then tasks, as `is_task` tells them apart; the assignors level each alone."""


def union(loads: Loads) -> Resources:
    """Return all that any of the workers has."""
    return NOTHING.union(*loads.values())


def of_kind(resources: Iterable[Resource], *, tasks: bool) -> list[Resource]:
    """Return only the tasks, or only the connectors, in their order."""
    return [resource for resource in resources if resource.is_task is tasks]


def kind_of(loads: Loads, *, tasks: bool) -> Mapping[str, Sequence[Resource]]:
    """Return only the tasks, or only the connectors, of every worker."""
    return {worker: of_kind(load, tasks=tasks) for worker, load in loads.items()}


def without(loads: Loads, taken: Loads) -> Loads:
    """Return what is left when each worker gives up what is taken from it."""
    return {worker: _less(load, taken.get(worker, ())) for worker, load in loads.items()}


def joined(loads: Loads, given: Loads) -> Loads:
    """Return what each worker has when it takes over, behind its own, what it is given."""
    return {worker: (*load, *given.get(worker, ())) for worker, load in loads.items()}


def _less(load: Sequence[Resource], taken: Sequence[Resource]) -> Sequence[Resource]:
    if not taken:
        return load
    gone = frozenset(taken)
    return tuple(resource for resource in load if resource not in gone)
