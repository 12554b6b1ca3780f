"""Steps 2 and 3 of the exchange: levels amounts by augmenting paths, then by negative cycles.

See `exchange` for the theory. An augmenting path leads from a taker through others, each of which
has as much after as before, to one that is less full.

Negative cycles are found in a graph with three kinds of nodes. An arc costs as many moves as it
makes (-1, 0 or 1):

* from a taker to a class: the taker gives one of it; -1 if it has more of it than it had,
* from a class to a taker: the taker gets one; 0 if it has less of it than it had, else 1,
* from a taker to a level of load: it keeps one more, and is as full as that then,
* from a level of load to a taker: it has one less, and was as full as that.

See Ahuja, Magnanti and Orlin, "Network Flows", section 9.6.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

AmountsByClass = list[dict[int, int]]
"""How much each taker has, by class, in the order of the takers; a missing class counts 0."""

Step = tuple[int, int]
"""The last step of a path to a taker: the taker that gives to it, and the class."""

Arc = tuple[int, int]
"""The node to which an arc leads, and how many moves it costs."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """The amounts while they are levelled: `has` and `loads` change in place."""

    eligible: Sequence[Sequence[int]]
    """The takers that may run each class."""
    scales: Sequence[int]
    """What turns each taker's load into load per capacity; see `Workers`."""
    had: AmountsByClass
    """What each taker would keep if nothing moved."""
    has: AmountsByClass
    loads: list[int]
    """How much each taker has of all classes together."""

    def fullness(self, index: int) -> int:
        """Return a taker's load per capacity."""
        return self.loads[index] * self.scales[index]

    def with_one_more(self, index: int) -> int:
        """Return a taker's load per capacity with one more resource."""
        return (self.loads[index] + 1) * self.scales[index]

    def shift(self, giver: int, number: int, receiver: int, amount: int) -> None:
        """Move an amount of a class from a taker to another."""
        for index, by in ((giver, -amount), (receiver, amount)):
            self.add(index, number, by)

    def add(self, index: int, number: int, amount: int) -> None:
        """Change how much a taker has of a class."""
        has = self.has[index]
        # A copy: takers with equal amounts share one mapping, also with `had`.
        self.has[index] = {**has, number: has.get(number, 0) + amount}
        self.loads[index] += amount


def level_amounts(amounts: Amounts) -> bool:
    """Make the amounts level with the fewest moves; False if they were already."""
    has_changed = False
    while _relieve_some(amounts):
        has_changed = True
    while cycle := _CycleSearch(amounts).find():
        _cancel(amounts, cycle)
        has_changed = True
    return has_changed


def _relieve_some(amounts: Amounts) -> bool:
    """Relieve takers by augmenting paths, the fullest first; False if none could be relieved.

    Searches skip takers that an earlier one has reached, so that the whole round costs no more than
    one search. If no taker was relieved, none can be: a taker that can be reached at all is reached
    by the fullest that can reach it.
    """
    has_changed = False
    search = _PathSearch(amounts)
    takers = range(len(amounts.loads))
    for start in sorted(takers, key=lambda each: (-amounts.fullness(each), each)):
        if start not in search.steps:
            end = search.reach(start)
            if end is not None:
                _pass_on(amounts, search.steps, start, end)
                has_changed = True
    return has_changed


class _PathSearch:
    """Finds the takers that augmenting paths reach, by breadth-first search."""

    def __init__(self, amounts: Amounts) -> None:
        self._amounts = amounts
        self._passed: set[int] = set()
        """The classes whose takers are all reached."""
        self.steps: dict[int, Step] = {}
        """The last step to each reached taker; its class is -1 where a search began."""

    def reach(self, start: int) -> int | None:
        """Return a taker that can relieve this one: less full with one more than this one is."""
        amounts, steps = self._amounts, self.steps
        steps[start] = start, -1
        queue = [start]
        for giver in queue:  # it grows
            for number, amount in amounts.has[giver].items():
                if not amount or number in self._passed:
                    continue
                self._passed.add(number)
                reached = [each for each in amounts.eligible[number] if each not in steps]
                steps.update(dict.fromkeys(reached, (giver, number)))
                queue += reached
                end = min(reached, key=amounts.with_one_more, default=start)
                if amounts.with_one_more(end) < amounts.fullness(start):
                    return end
        return None


def _pass_on(amounts: Amounts, steps: dict[int, Step], start: int, end: int) -> None:
    """Pass along the path as much as every giver has, and as lowers the sum of costs."""
    path: list[tuple[int, int, int]] = []
    receiver = end
    while receiver != start:
        giver, number = steps[receiver]
        path.append((giver, number, receiver))
        receiver = giver
    scales = amounts.scales
    ahead = amounts.fullness(start) + scales[start] - amounts.fullness(end) - 1
    amount = min(
        ahead // (scales[start] + scales[end]),
        *(amounts.has[giver][number] for giver, number, _ in path),
    )
    for giver, number, receiver in path:
        amounts.shift(giver, number, receiver, amount)


class _CycleSearch:
    """One search for a negative cycle, by Bellman and Ford.

    Nodes are numbered: takers, then classes, then levels.
    """

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
        """Lower the costs of the nodes behind these; return the nodes whose cost fell."""
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
        starts: dict[int, int] = {}
        for start in nodes:
            node = start
            while node != -1 and node not in starts:
                starts[node] = start
                node = self._before[node]
            if node != -1 and starts[node] == start:
                return self._cycle_at(node)
        return []

    def _cycle_at(self, node: int) -> list[int]:
        cycle = [node]
        while (previous := self._before[cycle[-1]]) != node:
            cycle.append(previous)
        return cycle[::-1]


def _cancel(amounts: Amounts, cycle: list[int]) -> None:
    """Move one resource along each edge of a cycle: each taker gives one and gets one."""
    takers, classes = len(amounts.loads), len(amounts.eligible)
    for node, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        if node < takers <= after < takers + classes:
            amounts.add(node, after - takers, -1)
        elif takers <= node < takers + classes:
            amounts.add(after, node - takers, 1)
