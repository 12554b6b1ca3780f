"""The work of one kind, connectors or tasks, as it stands before it is balanced."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import sub

from ....events.model import CONNECTOR, NOTHING, Resource, Resources
from ...messages.computing import MemberView
from .spread import Spread
from .workers import Workers


@dataclass(frozen=True, slots=True)
class Stock:
    """What each taker has of a kind, by its place among the workers, and what nobody has.

    `held` may hold other kinds beside it, which are in `others`, by place as well; that is
    how ten thousand takers' tasks are told from connectors without a copy of each share.
    `kept` is what workers have that take no work: it stays there, and counts for the spread.
    """

    held: Sequence[Resources]
    others: Sequence[Resources]
    free: Sequence[Resource]
    kept: Sequence[tuple[MemberView, Resources]]
    are_tasks: bool

    def counts(self) -> list[int]:
        """Return how much of the kind each taker has."""
        return [*map(sub, map(len, self.held), map(len, self.others))]

    def all(self) -> Iterator[Resource]:
        """Yield all of the kind."""
        for each in chain(self.free, chain.from_iterable(self.held)):
            if (each[1] != CONNECTOR) is self.are_tasks:
                yield each

    def of(self, index: int) -> Resources:
        """Return what a taker has of the kind."""
        other = self.others[index]
        return self.held[index] - other if other else self.held[index]

    def spread(self, workers: Workers, share_of: Callable[[int], Resources]) -> Spread:
        """Return how the kind is spread over the zones; on workers it is not counted yet.

        `share_of` is asked then what a worker has. Where there is but one zone all is in it,
        and nothing is counted.
        """
        spread = Spread(workers, share_of)
        if len(workers.zone_names) == 1:
            return spread
        places: dict[str, list[int]] = {zone: [] for zone in workers.zone_names}
        for index, zone in enumerate(workers.zones):
            places[zone].append(index)
        for zone, indices in places.items():
            spread.count_in(zone, [self.held[index] for index in indices])
            spread.uncount_in(zone, chain.from_iterable(self.others[index] for index in indices))
        for member, share in self.kept:
            spread.count_in(member.rack or "", (share,))
        return spread


def stocks(
    held: Sequence[Resources],
    free: Resources,
    connectors: Resources,
    kept: Sequence[tuple[MemberView, Resources]],
) -> tuple[Stock, Stock]:
    """Return connectors and tasks apart, given which of all resources are connectors."""
    own = [NOTHING if share.isdisjoint(connectors) else share & connectors for share in held]
    nothing = [NOTHING] * len(held)
    tasks = [each for each in free if each[1] != CONNECTOR]
    kept_tasks = [(member, share - connectors) for member, share in kept]
    return (
        Stock(own, nothing, [*free & connectors], (), are_tasks=False),
        Stock(held, own, tasks, kept_tasks, are_tasks=True),
    )
