"""Handing work out: the least loaded first, until all are level, then to each in turn.

Connectors and tasks are counted apart. See `assignConnectors` and `assignTasks` of Connect's
`IncrementalCooperativeAssignor`.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from ....events.model import Resource
from .loads import KINDS, Loads, kind_of, of_kind


def hand_out(items: Sequence[Resource], loads: Loads) -> Loads:
    """Return what each worker gets of the items, which are handed out in their order."""
    given: dict[str, list[Resource]] = {worker: [] for worker in loads}
    for tasks in KINDS:
        sizes = {worker: len(load) for worker, load in kind_of(loads, tasks=tasks).items()}
        _fill(of_kind(items, tasks=tasks), sizes, given)
    return given


def _fill(
    items: Sequence[Resource], sizes: Mapping[str, int], given: Mapping[str, list[Resource]]
) -> None:
    """Give each of the least loaded an item, in turns, until there are no more.

    Whoever has as much as those by now takes its turn behind them, by its id; so the order
    of Connect's stable sort after every turn comes about without sorting.
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
            given[worker].append(remaining.popleft())
        level += 1
