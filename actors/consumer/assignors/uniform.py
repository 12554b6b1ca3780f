"""The assignor `uniform`: the numbers of partitions are as equal as the subscriptions allow.

If all members subscribe to the same topics, the numbers differ by one at most, and a member keeps
the partitions of the last target up to its share.

If subscriptions differ, a member first keeps its partitions of topics that it still subscribes to.
A free partition goes to the least loaded subscriber of its topic. Then loads are balanced: while a
member has at least two partitions fewer than another, partitions are shifted to it, directly or
via other members (an augmenting path). The result is an optimal *semi-matching*: no other
assignment has more equal loads (Harvey, Ladner, Lovász, Tamir: "Semi-matchings for bipartite graphs
and load balancing", 2006). Shortest paths come first, so few partitions move.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from ....events.model import Resource
from ...assignors.built_in.counting import level
from ...messages.computing import Assignment, Snapshot
from .subscribers import as_assignment, find_subscribers, partitions_of

Path = Sequence[tuple[str, str]]
"""The steps of a shift: the member that gives a partition, and the topic of that."""


def assign_uniformly(snapshot: Snapshot) -> Assignment:
    """Return the target assignment of all partitions."""
    subscribers = find_subscribers(snapshot)
    wanted = {topic: frozenset(members) for topic, members in subscribers.items()}
    claims = {
        each: {resource for resource in view.target if each in wanted.get(resource.connector, ())}
        for each, view in snapshot.members.items()
    }
    claims = {each: claim & snapshot.configured for each, claim in claims.items()}
    if all(len(each) == len(snapshot.members) for each in subscribers.values()) and claims:
        shares = level(snapshot.configured, claims, {})
    else:
        loads = _Loads(subscribers, claims)
        loads.deal(snapshot)
        loads.balance()
        shares = loads.shares()
    return as_assignment(snapshot, {each: frozenset(share) for each, share in shares.items()})


class _Loads:
    """The partitions of each member by topic, while they are moved."""

    def __init__(
        self, subscribers: Mapping[str, Sequence[str]], claims: Mapping[str, set[Resource]]
    ) -> None:
        self._subscribers = subscribers
        self._held: dict[str, dict[str, list[Resource]]] = {each: {} for each in claims}
        """The partitions, in order, by member and topic."""
        self._count = {each: len(claim) for each, claim in claims.items()}
        for member_id, claim in claims.items():
            for resource in sorted(claim):
                self._held[member_id].setdefault(resource.connector, []).append(resource)

    def shares(self) -> dict[str, set[Resource]]:
        """Return the partitions of each member."""
        return {each: set().union(*held.values()) for each, held in self._held.items()}

    def deal(self, snapshot: Snapshot) -> None:
        """Assign each free partition to a least loaded subscriber; scarce topics first."""
        partitions = partitions_of(snapshot)
        taken = {each for held in self._held.values() for share in held.values() for each in share}
        for topic in sorted(self._subscribers, key=lambda each: len(self._subscribers[each])):
            members = self._subscribers[topic]
            for resource in partitions[topic] if members else ():
                if resource not in taken:
                    self._put(min(members, key=self._count.__getitem__), topic, [resource])

    def balance(self) -> None:
        """Shift partitions until no path leads from a member to one with two fewer."""
        is_moving = True
        while is_moving:
            is_moving = False
            for member_id in sorted(self._count, key=lambda each: (-self._count[each], each)):
                while path := self._find_path(member_id):
                    self._shift(member_id, path)
                    is_moving = True

    def _find_path(self, start: str) -> Path:
        """Return the steps to a nearest member with at least two fewer, () without one."""
        most = self._count[start] - 2
        came: dict[str, tuple[str, str]] = {}
        waiting = deque([start])
        while waiting:
            member_id = waiting.popleft()
            for topic, other in self._takers(member_id):
                if other != start and other not in came:
                    came[other] = member_id, topic
                    waiting.append(other)
                    if self._count[other] <= most:
                        return self._trace(came, start, other)
        return ()

    def _takers(self, member_id: str) -> Iterator[tuple[str, str]]:
        """Yield the members to which a partition of a member could move, each with its topic."""
        for topic, share in self._held[member_id].items():
            if share:
                for other in self._subscribers[topic]:
                    yield topic, other

    @staticmethod
    def _trace(came: Mapping[str, tuple[str, str]], start: str, end: str) -> Path:
        steps = [(end, "")]
        while steps[-1][0] != start:
            steps.append(came[steps[-1][0]])
        return steps[::-1]

    def _shift(self, start: str, path: Path) -> None:
        """Move partitions along a path until its two ends are equal, as far as there are enough."""
        end = path[-1][0]
        number = (self._count[start] - self._count[end]) // 2
        number = min(number, *(len(self._held[giver][topic]) for giver, topic in path[:-1]))
        given = [self._take(giver, topic, number) for giver, topic in path[:-1]]
        for (_, topic), (taker, _), share in zip(path, path[1:], given, strict=False):
            self._put(taker, topic, share)

    def _take(self, member_id: str, topic: str, number: int) -> list[Resource]:
        share = self._held[member_id][topic]
        self._count[member_id] -= number
        self._held[member_id][topic] = share[:-number]
        return share[-number:]

    def _put(self, member_id: str, topic: str, share: list[Resource]) -> None:
        held = self._held[member_id]
        held[topic] = sorted([*held.get(topic, ()), *share])
        self._count[member_id] += len(share)
