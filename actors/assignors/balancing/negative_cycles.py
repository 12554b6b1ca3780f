"""The fewest moves among all level shares: negative cycles are found and cancelled.

See `exchange` for the theory. The graph has three kinds of nodes. An arc costs as many moves as it
makes (-1, 0 or 1):

* from a taker to a class: the taker gives one of it; -1 if it has more of it than it had,
* from a class to a taker: the taker gets one; 0 if it has less of it than it had, else 1,
* from a taker to a level of load: it keeps one more, and is as full as that then,
* from a level of load to a taker: it has one less, and was as full as that.

See Ahuja, Magnanti and Orlin, "Network Flows", section 9.6.
"""

from collections.abc import Iterator

from .amounts import Amounts

Arc = tuple[int, int]
"""The node that it leads to, and how many moves it costs."""


def save_moves(amounts: Amounts) -> bool:
    """Cancel negative cycles until none is left; tell whether there was any."""
    has_changed = False
    while cycle := _CycleSearch(amounts).find():
        _cancel(amounts, cycle)
        has_changed = True
    return has_changed


class _CycleSearch:
    """One search by Bellman and Ford; nodes are numbered: takers, then classes, then levels."""

    def __init__(self, amounts: Amounts) -> None:
        self._amounts = amounts
        self._takers = len(amounts.loads)
        self._levels: dict[int, list[int]] = {}
        """The takers that are as full as each level, by that."""
        for index, load in enumerate(amounts.loads):
            if load:
                self._levels.setdefault(amounts.fullness(index), []).append(index)
        first = self._takers + len(amounts.eligible)
        self._level_nodes = {level: first + place for place, level in enumerate(self._levels)}
        """The number of each level's node."""
        self._at_level = [*self._levels.values()]
        """The takers of each level, in the order of the levels' nodes."""
        self._costs = [0] * (first + len(self._levels))
        """The least cost of a way to each node that is known so far."""
        self._before = [-1] * len(self._costs)
        """The node before each on that way; -1 where a way begins."""

    def find(self) -> list[int]:
        """Return the nodes of a negative cycle in their order, none if there is none."""
        amounts = self._amounts
        queue = [
            index
            for index, (has, had) in enumerate(zip(amounts.has, amounts.had, strict=True))
            if any(amount > had.get(number, 0) for number, amount in has.items())
        ]
        while queue:
            queue = self._relax(queue)
            if found := self._find_behind(queue):
                return found
        return []

    def _relax(self, queue: list[int]) -> list[int]:
        """Lower the costs of the nodes that these lead to; return those whose cost fell."""
        costs, before = self._costs, self._before
        fell: dict[int, None] = {}
        for node in queue:
            for other, cost in self._arcs(node):
                if costs[node] + cost < costs[other]:
                    costs[other] = costs[node] + cost
                    before[other] = node
                    fell[other] = None
        return [*fell]

    def _arcs(self, node: int) -> Iterator[Arc]:
        amounts, takers = self._amounts, self._takers
        if node < takers:
            had = amounts.had[node]
            for number, amount in amounts.has[node].items():
                if amount:
                    yield takers + number, -1 if amount > had.get(number, 0) else 0
            level = self._level_nodes.get(amounts.with_one_more(node))
            if level is not None:
                yield level, 0
            return
        number = node - takers
        if number >= len(amounts.eligible):
            for index in self._at_level[number - len(amounts.eligible)]:
                yield index, 0
            return
        for index in amounts.eligible[number]:
            is_short = amounts.has[index].get(number, 0) < amounts.had[index].get(number, 0)
            yield index, 0 if is_short else 1

    def _find_behind(self, nodes: list[int]) -> list[int]:
        """Return the cycle that the ways back from these nodes run into, if any."""
        seen: dict[int, int] = {}
        for start in nodes:
            node = start
            while node != -1 and node not in seen:
                seen[node] = start
                node = self._before[node]
            if node != -1 and seen[node] == start:
                return self._cycle_at(node)
        return []

    def _cycle_at(self, node: int) -> list[int]:
        cycle = [node]
        while (previous := self._before[cycle[-1]]) != node:
            cycle.append(previous)
        return cycle[::-1]


def _cancel(amounts: Amounts, cycle: list[int]) -> None:
    """Let each taker of a cycle give one and get one, as the cycle says."""
    takers, classes = len(amounts.loads), len(amounts.eligible)
    for node, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        if node < takers <= after < takers + classes:
            amounts.add(node, after - takers, -1)
        elif takers <= node < takers + classes:
            amounts.add(after, node - takers, 1)
