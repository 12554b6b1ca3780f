"""Who has what, sort by sort, while it changes hands."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

from ....events.model import Resource, Resources
from .changes import Changes
from .classes import ANYWHERE, Classes
from .pile import Pile, by_connector
from .roster import Roster
from .stock import Stock
from .table import Table

Sort = tuple[int, int]
"""Work that only the spread tells apart: its weight, and its class."""


class Hands:
    """The takers' hands, how much of every sort is in each, and what is in nobody's hands.

    What a taker has and may not run is in nobody's hands from the beginning.
    """

    def __init__(
        self, roster: Roster, stock: Stock, classes: Classes, weights: Mapping[Resource, int]
    ) -> None:
        self.roster = roster
        self.classes = classes
        self.changes = Changes()
        self.loads: list[int] = []
        self.amounts: list[dict[Sort, int]] = []
        self._stock, self._weights = stock, weights
        self._tally = stock.tally(roster)
        self._piles: dict[tuple[int, Sort], Pile] = {}
        self._homeless: dict[Sort, list[Resource]] = {}
        self._tables: dict[int, Table] = {}
        self._tables_of: defaultdict[int, list[Table]] = defaultdict(list)
        self._leasts: dict[Sort, int] = {}
        for resource in stock.free:
            self._homeless.setdefault(self._sort_of(resource), []).append(resource)
        allowed = [frozenset(some) for some in classes.seated]
        for index in range(len(roster.takers)):
            self._take_up(index, allowed)

    def _take_up(self, index: int, allowed: Sequence[frozenset[int]]) -> None:
        share = self._stock.of(index)
        self._tally.count_on(index, share)
        amounts = self._by_sort(share)
        self.amounts.append(amounts)
        self.loads.append(sum([weight * amounts[weight, number] for weight, number in amounts]))
        for sort in [each for each in amounts if index not in allowed[each[1]]]:
            for _ in range(amounts[sort]):
                self.put_aside(index, sort)

    def _by_sort(self, share: Resources) -> dict[Sort, int]:
        if not self.classes.of:
            weights = Counter([self._weights.get(each, 1) for each in share])
            return {(weight, ANYWHERE): amount for weight, amount in weights.items()}
        # In order, for what comes of them must not hang on the order of a set.
        return dict(sorted(Counter(map(self._sort_of, share)).items()))

    def _sort_of(self, resource: Resource) -> Sort:
        return self._weights.get(resource, 1), self.classes.of.get(resource, ANYWHERE)

    def least(self, sort: Sort) -> int:
        """Return how full anybody would be, at the least, with one more of a sort."""
        if sort not in self._leasts:
            self._leasts[sort] = self._table(sort[1]).least(sort[0])
        return self._leasts[sort]

    def give_up(self, index: int, sort: Sort) -> Resource:
        """Take from a hand the one of a sort by which the spread gains most; return it."""
        resource = self._pile(index, sort).take(partial(self._tally.room, index))
        self.amounts[index][sort] -= 1
        if not self.amounts[index][sort]:
            del self.amounts[index][sort]
        self.loads[index] -= sort[0]
        self._leasts.clear()
        for table in self._tables_of[index]:
            table.reseat(self.roster, index)
        self._tally.move(resource.connector, index, -1)
        self.changes.give_up(index, resource)
        return resource

    def put_aside(self, index: int, sort: Sort) -> None:
        """Take from a hand one of a sort, and leave it in nobody's."""
        self._homeless.setdefault(sort, []).append(self.give_up(index, sort))

    def deal(self, resource: Resource, sort: Sort) -> None:
        """Give a resource to whom it makes least full."""
        (index,) = self._table(sort[1]).deal(resource.connector, sort[0], 1)
        self._receive(index, resource, sort)

    def deal_homeless(self, rooms: Mapping[int, dict[int, int]] | None = None) -> None:
        """Deal all that is in nobody's hands: the heaviest, and what fewest may run, first.

        `rooms` says of each class how much of it each taker may be dealt, if that is bounded.
        """
        for sort in sorted(self._homeless, key=lambda sort: (-sort[0], -sort[1])):
            weight, number = sort
            table = self._table(number) if rooms is None else self._bounded(rooms[number])
            for connector, run in by_connector(self._homeless[sort]).items():
                dealt = table.deal(connector, weight, len(run))
                for resource, index in zip(run, dealt, strict=True):
                    self._receive(index, resource, sort)
        self._homeless.clear()

    def _table(self, number: int) -> Table:
        """Return the table at which the work of a class is dealt."""
        if number not in self._tables:
            seated = self.classes.seated[number]
            table = Table(self.roster, self.loads, self._tally, seated)
            self._tables[number] = table
            for index in seated:
                self._tables_of[index].append(table)
        return self._tables[number]

    def _bounded(self, rooms: dict[int, int]) -> Table:
        return Table(self.roster, self.loads, self._tally, [*rooms], rooms)

    def _receive(self, index: int, resource: Resource, sort: Sort) -> None:
        if (index, sort) in self._piles:
            self._piles[index, sort].add(resource)
        self.changes.get(index, resource)
        self.amounts[index][sort] = self.amounts[index].get(sort, 0) + 1
        self._leasts.clear()

    def _pile(self, index: int, sort: Sort) -> Pile:
        """Return the pile of a hand; most hands never give, and so are never sorted."""
        if (index, sort) not in self._piles:
            share = self.changes.share(index, self._stock.of(index))
            alike = [each for each in share if self._sort_of(each) == sort]
            self._piles[index, sort] = Pile(alike)
        return self._piles[index, sort]
