"""How much of every sort each taker has, while work changes hands."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from itertools import repeat

from ....events.model import Resource, Resources
from .dealer import Dealer
from .holdings import Holdings, Transfers
from .spread import RemovalQueue, by_connector
from .workers import ANYWHERE, Classes, Workers

Sort = tuple[int, int]
"""Work that only the spread tells apart: its weight, and its class."""


class Allocation:
    """The resources of each taker while they change hands, and those that nobody has yet.

    Work that its taker may not run is unassigned from the beginning. Most takers never give, so
    only their loads are counted at the beginning, and everything else on demand.
    """

    def __init__(
        self,
        workers: Workers,
        holdings: Holdings,
        classes: Classes,
        weights: Mapping[Resource, int],
    ) -> None:
        self.workers = workers
        self.classes = classes
        self.transfers = Transfers()
        self._holdings, self._weights = holdings, weights
        # No method: a reference to itself would keep all of this until it is garbage collected.
        self._share = partial(_share, self.transfers, holdings)
        self._spread = holdings.count_spread(workers, self._share)
        self._amounts: dict[int, dict[Sort, int]] = {}
        """How many of each sort a taker has, by taker; counted on demand."""
        self._heaviest: dict[int, Collection[Sort]] = {}
        """The heaviest sort of each class that a taker has, by taker, as far as it is known."""
        self._queues: dict[int, dict[Sort, RemovalQueue]] = {}
        """What a taker that gives has of each sort, in the order in which it leaves."""
        self._unassigned: dict[Sort, list[Resource]] = {}
        """The resources that no taker has, by sort."""
        self._dealers: dict[int, Dealer] = {}
        """The dealer of each class, by its number."""
        self._dealers_of: defaultdict[int, list[Dealer]] = defaultdict(list)
        """The dealers that deal to a taker, by taker."""
        self._leasts: dict[Sort, int] = {}
        """What `least` returned of a sort, until anything changes."""
        for resource in holdings.free:
            self._unassigned.setdefault(self._sort_of(resource), []).append(resource)
        self.loads = self._weigh_shares() if weights else [*holdings.counts()]
        """The weight of all that each taker has."""
        if classes.are_many:
            self._put_forbidden_aside()

    def _weigh_shares(self) -> list[int]:
        """Return how much each taker's work weighs, and note the heaviest on the way."""
        loads: list[int] = []
        for index in range(len(self.workers.takers)):
            weights = self._weights_of(self._holdings.of(index))
            loads.append(sum(weights))
            if weights and not self.classes.are_many:
                self._heaviest[index] = ((max(weights), ANYWHERE),)
        return loads

    def _put_forbidden_aside(self) -> None:
        allowed = [frozenset(some) for some in self.classes.eligible]
        for index in range(len(self.loads)):
            numbers = set(self.classes.of_each(self._holdings.of(index)))
            if all(index in allowed[number] for number in numbers):
                continue
            for sort, amount in [*self.amounts(index).items()]:
                for _ in range(amount if index not in allowed[sort[1]] else 0):
                    self.put_aside(index, sort)

    def _weights_of(self, share: Iterable[Resource]) -> list[int]:
        return [*map(self._weights.get, share, repeat(1))]

    def _sort_of(self, resource: Resource) -> Sort:
        return self._weights.get(resource, 1), self.classes.of(resource)

    def amounts(self, index: int) -> Mapping[Sort, int]:
        """Return how much of every sort a taker has."""
        if index not in self._amounts:
            share = self._share(index)
            weights = self._weights_of(share) if self._weights else repeat(1)
            sorts = Counter(zip(weights, self.classes.of_each(share), strict=False))
            # In order: the result must not depend on the order of a set.
            self._amounts[index] = dict(sorted(sorts.items()))
        return self._amounts[index]

    def heaviest(self, index: int) -> Collection[Sort]:
        """Return the heaviest sort of each class that a taker has."""
        if not self._weights:
            return self.amounts(index).keys()
        if index not in self._heaviest:
            self._heaviest[index] = self._find_heaviest(index)
        return self._heaviest[index]

    def _find_heaviest(self, index: int) -> Collection[Sort]:
        if not self.classes.are_many:
            weights = self._weights_of(self._share(index))
            return ((max(weights), ANYWHERE),) if weights else ()
        in_order = sorted(self.amounts(index))
        return [*{number: (weight, number) for weight, number in in_order}.values()]

    def least(self, sort: Sort) -> int:
        """Return how full a taker would be, at the least, with one more of a sort."""
        if sort not in self._leasts:
            self._leasts[sort] = self._dealer(sort[1]).least(sort[0])
        return self._leasts[sort]

    def give_up(self, index: int, sort: Sort) -> Resource:
        """Remove from a taker the resource of a sort that improves the spread most; return it.

        The dealers take note of it only when the taker is requeued: it may give more.
        """
        resource = self._queues_of(index)[sort].take(partial(self._spread.room, index))
        self.loads[index] -= sort[0]
        self._count(index, sort, -1)
        self._spread.move(resource.connector, index, -1)
        self.transfers.give_up(index, resource)
        return resource

    def requeue(self, index: int) -> None:
        """Queue a taker that has given a resource by its current load, at all its dealers."""
        for dealer in self._dealers_of[index]:
            dealer.requeue(self.workers, index)
        self._leasts.clear()

    def put_aside(self, index: int, sort: Sort) -> None:
        """Remove one resource of a sort from a taker, and leave it unassigned."""
        self._unassigned.setdefault(sort, []).append(self.give_up(index, sort))

    def deal(self, resource: Resource, sort: Sort) -> None:
        """Assign a resource to the taker that has the lowest load per capacity with it."""
        (index,) = self._dealer(sort[1]).deal(resource.connector, sort[0], 1)
        self._receive(index, resource, sort)

    def deal_unassigned(self, rooms: Mapping[int, dict[int, int]] | None = None) -> None:
        """Assign all unassigned resources: the heaviest, and those that fewest may run, first.

        `rooms` says of each class how much of it each taker may be dealt, if that is bounded.
        """
        for sort in sorted(self._unassigned, key=lambda sort: (-sort[0], -sort[1])):
            weight, number = sort
            dealer = self._dealer(number) if rooms is None else self._bounded_dealer(rooms[number])
            if self.classes.are_many:  # the next class has takers of its own: forget the others
                self._spread.on_workers.clear()
            for connector, run in by_connector(self._unassigned.pop(sort)).items():
                dealt = dealer.deal(connector, weight, len(run))
                for resource, index in zip(run, dealt, strict=True):
                    self._receive(index, resource, sort)
        self._spread.on_workers.clear()

    def _dealer(self, number: int) -> Dealer:
        """Return the dealer of a class."""
        if number not in self._dealers:
            eligible = self.classes.eligible[number]
            dealer = Dealer(self.workers, self.loads, self._spread, eligible)
            self._dealers[number] = dealer
            for index in eligible:
                self._dealers_of[index].append(dealer)
        return self._dealers[number]

    def _bounded_dealer(self, rooms: dict[int, int]) -> Dealer:
        return Dealer(self.workers, self.loads, self._spread, [*rooms], rooms)

    def _receive(self, index: int, resource: Resource, sort: Sort) -> None:
        if index in self._queues:
            self._queues[index].setdefault(sort, RemovalQueue([])).add(resource)
        self.transfers.get(index, resource)
        self._count(index, sort, 1)

    def _count(self, index: int, sort: Sort, by: int) -> None:
        """Update the counts of a taker."""
        self._leasts.clear()
        self._heaviest.pop(index, None)
        amounts = self._amounts.get(index)
        if amounts is not None:
            amounts[sort] = amounts.get(sort, 0) + by
            if not amounts[sort]:
                del amounts[sort]

    def _queues_of(self, index: int) -> dict[Sort, RemovalQueue]:
        """Return the queues of a taker; most never give, and so are never sorted."""
        if index not in self._queues:
            alike: defaultdict[Sort, list[Resource]] = defaultdict(list)
            for each in self._share(index):
                alike[self._sort_of(each)].append(each)
            self._queues[index] = {sort: RemovalQueue(some) for sort, some in alike.items()}
        return self._queues[index]


def _share(transfers: Transfers, holdings: Holdings, index: int) -> Resources:
    return transfers.share(index, holdings.of(index))
