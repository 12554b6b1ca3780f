"""The fewest moves among all level shares: circles of gifts by which work stays at home.

Once the shares are level, what is left to choose is who has what of it. Seen as a flow of work
from classes to takers, each resource beyond what a taker had is one move, and a circle of
gifts that leaves the loads as they are, or lets two takers swap the odd one, saves as many
moves as it is short of. A flow is the cheapest when no circle of negative cost is left (Klein
1967); those are found as Bellman and Ford do. See Ahuja, Magnanti and Orlin, "Network Flows",
section 9.6.
"""

from collections.abc import Iterator

from .standing import Standing

Arc = tuple[int, int]
"""Where to, and how many moves it costs (-1, 0 or 1)."""


def save_moves(standing: Standing) -> bool:
    """Make all circles of gifts that save moves; tell whether there was any."""
    has_changed = False
    while circle := _Search(standing).circle():
        _go_round(standing, circle)
        has_changed = True
    return has_changed


class _Search:
    """One search; takers are the nodes from 0 up, then come classes, then levels of load.

    From a taker to a class: it gives one of it. From a class to a taker: that gets one. From a
    taker to a level: it keeps one more, and is as full as that then; from a level to a taker:
    it has one less, and was as full as that.
    """

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._takers = len(standing.loads)
        self._levels: dict[int, list[int]] = {}
        for index, load in enumerate(standing.loads):
            if load:
                self._levels.setdefault(standing.fullness(index), []).append(index)
        first = self._takers + len(standing.seated)
        self._level_nodes = {level: first + place for place, level in enumerate(self._levels)}
        self._at_level = [*self._levels.values()]
        self._costs = [0] * (first + len(self._levels))
        self._before = [-1] * len(self._costs)

    def circle(self) -> list[int]:
        """Return the nodes of a circle that saves moves, or none."""
        standing = self._standing
        queue = [
            index
            for index, (has, had) in enumerate(zip(standing.has, standing.had, strict=True))
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
        standing, takers = self._standing, self._takers
        if node < takers:
            had = standing.had[node]
            for number, amount in standing.has[node].items():
                if amount:
                    yield takers + number, -1 if amount > had.get(number, 0) else 0
            level = self._level_nodes.get(standing.with_one_more(node))
            if level is not None:
                yield level, 0
            return
        number = node - takers
        if number >= len(standing.seated):
            for index in self._at_level[number - len(standing.seated)]:
                yield index, 0
            return
        for index in standing.seated[number]:
            is_short = standing.has[index].get(number, 0) < standing.had[index].get(number, 0)
            yield index, 0 if is_short else 1

    def _round(self, nodes: list[int]) -> list[int]:
        """Return the circle that the ways back from these nodes run into, if any."""
        seen: dict[int, int] = {}
        for start in nodes:
            node = start
            while node != -1 and node not in seen:
                seen[node] = start
                node = self._before[node]
            if node != -1 and seen[node] == start:
                return self._circle_at(node)
        return []

    def _circle_at(self, node: int) -> list[int]:
        circle = [node]
        while (previous := self._before[circle[-1]]) != node:
            circle.append(previous)
        return circle[::-1]


def _go_round(standing: Standing, circle: list[int]) -> None:
    """Let every taker of the circle give and get as it says, one resource each."""
    takers, classes = len(standing.loads), len(standing.seated)
    for node, after in zip(circle, [*circle[1:], circle[0]], strict=True):
        if node < takers <= after < takers + classes:
            standing.add(node, after - takers, -1)
        elif takers <= node < takers + classes:
            standing.add(after, node - takers, 1)
