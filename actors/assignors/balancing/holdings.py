"""Holdings of one kind, connectors or tasks, by taker, and the transfers that level them."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import sub

from ....events.model import CONNECTOR, NOTHING, Resource, Resources
from ...messages.computing import MemberView
from .spread import Spread
from .workers import Workers


@dataclass(frozen=True, slots=True)
class Holdings:
    """The resources of one kind by taker, in the order of `Workers`, and those that nobody has.

    The work of the other kind is left in the shares, and named beside them: so no share of ten
    thousand takers is copied to tell tasks from connectors.
    """

    held: Sequence[Resources]
    """What each taker has, of both kinds perhaps."""
    others: Sequence[Resources]
    """What of that is of the other kind."""
    free: Sequence[Resource]
    """What no member has."""
    kept: Sequence[tuple[MemberView, Resources]]
    """What keepers have: it stays there, and counts for the spread."""
    are_tasks: bool

    def counts(self) -> list[int]:
        """Return how many of the kind each taker has, in their order."""
        return [*map(sub, map(len, self.held), map(len, self.others))]

    def all(self) -> Iterator[Resource]:
        """Yield all of the kind."""
        for each in chain(self.free, chain.from_iterable(self.held)):
            if (each[1] != CONNECTOR) is self.are_tasks:
                yield each

    def of(self, index: int) -> Resources:
        """Return the resources of this kind that a taker has."""
        other = self.others[index]
        return self.held[index] - other if other else self.held[index]

    def count_spread(self, workers: Workers, share_of: Callable[[int], Resources]) -> Spread:
        """Return the counts of this kind by zone; those by worker are counted on demand.

        It is counted when it is asked for, of the share that `share_of` returns by then. Where
        there is but one zone all is in it, and nothing is counted.
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


def split_holdings(
    held: Sequence[Resources],
    free: Resources,
    connectors: Resources,
    kept: Sequence[tuple[MemberView, Resources]],
) -> tuple[Holdings, Holdings]:
    """Return the holdings of connectors, and those of tasks; `connectors` are all connectors."""
    own = [NOTHING if share.isdisjoint(connectors) else share & connectors for share in held]
    nothing = [NOTHING] * len(held)
    tasks = [each for each in free if each[1] != CONNECTOR]
    kept_tasks = [(member, share - connectors) for member, share in kept]
    return (
        Holdings(own, nothing, [*free & connectors], (), are_tasks=False),
        Holdings(held, own, tasks, kept_tasks, are_tasks=True),
    )


class Transfers:
    """The resources that each taker gives up and gets; one that comes back never moved."""

    __slots__ = ("firsts", "given_up", "got")

    def __init__(self) -> None:
        self.given_up: defaultdict[int, set[Resource]] = defaultdict(set)
        """The resources that each taker gives up, by taker."""
        self.got: defaultdict[int, set[Resource]] = defaultdict(set)
        """The resources that each taker gets, by taker."""
        self.firsts: dict[int, Resources] = {}
        """What each taker gets that had nothing, where all of it is dealt at once."""

    def give_up(self, index: int, resource: Resource) -> None:
        """Record that a taker gives a resource up."""
        got = self.got.get(index)
        if got and resource in got:
            got.remove(resource)
        else:
            self.given_up[index].add(resource)

    def get(self, index: int, resource: Resource) -> None:
        """Record that a taker gets a resource."""
        given_up = self.given_up.get(index)
        if given_up and resource in given_up:
            given_up.remove(resource)
        else:
            self.got[index].add(resource)

    def get_first(self, index: int, resources: Iterable[Resource]) -> None:
        """Record the whole share of a taker that had nothing."""
        self.firsts[index] = frozenset(resources)

    def share(self, index: int, share: Resources) -> Resources:
        """Return a taker's share after its transfers, given its share before them."""
        given_up, got = self.given_up.get(index), self.got.get(index)
        if given_up:
            share -= given_up
        return share | got if got else share

    def apply_to(self, held: list[Resources]) -> None:
        """Apply all transfers to the shares in place, and drop them to free their memory."""
        for index in self.changed_takers:
            held[index] = self.share(index, held[index])
            self.given_up.pop(index, None)
            self.got.pop(index, None)
        for index, first in self.firsts.items():
            held[index] = held[index] | first if held[index] else first

    @property
    def changed_takers(self) -> Collection[int]:
        """The takers with changed shares, except those in `firsts`."""
        return self.given_up.keys() | self.got.keys()
