"""The fewest moves among all level shares: negative cycles, by which work stays at home.

Once the shares are level, what is left to choose is who has what of it. Seen as a flow of work
from classes to takers, each resource beyond what a taker had is one move, and a cycle of
transfers that leaves the loads as they are, or lets two takers swap the odd one, saves as many
moves as it is short of. A flow is the cheapest when no cycle of negative cost is left (Klein
1967); those are found as Bellman and Ford do. See Ahuja, Magnanti and Orlin, "Network Flows",
section 9.6.
"""

from collections.abc import Iterator

from .amounts import Amounts

Arc = tuple[int, int]
"""Where to, and how many moves it costs (-1, 0 or 1)."""


def save_moves(amounts: Amounts) -> bool:
    """Go round all negative cycles, each of which saves moves; tell whether there was any."""
    has_changed = False
    while cycle := _Search(amounts).cycle():
        _go_round(amounts, cycle)
        has_changed = True
    return has_changed


class _Search:
    """One search; takers are the nodes from 0 up, then come classes, then levels of load.

    From a taker to a class: it gives one of it. From a class to a taker: that gets one. From a
    taker to a level: it keeps one more, and is as full as that then; from a level to a taker:
    it has one less, and was as full as that.
    """

    def __init__(self, amounts: Amounts) -> None:
        self._amounts = amounts
        self._takers = len(amounts.loads)
        self._levels: dict[int, list[int]] = {}
        for index, load in enumerate(amounts.loads):
            if load:
                self._levels.setdefault(amounts.fullness(index), []).append(index)
        first = self._takers + len(amounts.eligible)
        self._level_nodes = {level: first + place for place, level in enumerate(self._levels)}
        self._at_level = [*self._levels.values()]
        self._costs = [0] * (first + len(self._levels))
        self._before = [-1] * len(self._costs)

    def cycle(self) -> list[int]:
        """Return the nodes of a cycle that saves moves, or none."""
        amounts = self._amounts
        queue = [
            index
            for index, (has, had) in enumerate(zip(amounts.has, amounts.had, strict=True))
            if any(amount > had.get(number, 0) for number, amount in has.items())
        ]
        while queue:
            queue = self._relax(queue)
            if found := self._round(queue):
                return found
        return []

    def _relax(self, queue: list[int]) -> list[int]:
        """Lower the costs of whom these nodes lead to; return those whose cost fell."""
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

    def _round(self, nodes: list[int]) -> list[int]:
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


def _go_round(amounts: Amounts, cycle: list[int]) -> None:
    """Let every taker of the cycle give and get as it says, one resource each."""
    takers, classes = len(amounts.loads), len(amounts.eligible)
    for node, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        if node < takers <= after < takers + classes:
            amounts.add(node, after - takers, -1)
        elif takers <= node < takers + classes:
            amounts.add(after, node - takers, 1)
