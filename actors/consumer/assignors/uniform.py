"""The assignor `uniform`: members hold as equal numbers of partitions as subscriptions allow.

Where all subscribe to the same topics, nobody has more than one partition more than another, and
a member keeps what the last target gave it up to its share.

Where subscriptions differ, each keeps what it had and may still have, what is free goes to the
least loaded of its topic's subscribers, and then loads are levelled: from a member to one that has
at least two fewer, partitions are shifted, directly or by way of others (an augmenting path), for
as long as there is such a pair. What is reached then is a *semi-matching* of the least cost: no
other assignment has loads that are more equal (Harvey, Ladner, Lovász, Tamir: "Semi-matchings for
bipartite graphs and load balancing", 2006). Shortest paths are taken first, so little moves.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from ....events.model import Resource
from ...assignors.built_in.counting import level
from ...messages.computing import Assignment, Snapshot
from .subscribers import as_assignment, find_subscribers, partitions_of

Path = Sequence[tuple[str, str]]
"""The steps of a shift: whose partition is given on, and of which topic."""


def assign_uniformly(snapshot: Snapshot) -> Assignment:
    """Compute `uniform`: return where every partition is to go."""
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
    """What each member has of each topic, while partitions are moved."""

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
        """Return what each member has."""
        return {each: set().union(*held.values()) for each, held in self._held.items()}

    def deal(self, snapshot: Snapshot) -> None:
        """Give free partitions to a least loaded subscriber; topics with few subscribers first."""
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
        """Return the steps to a nearest member that has at least two fewer, if there is any."""
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
        """Yield the members that could take a partition from a member, each with its topic."""
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
        """Move as many partitions along a path as level its two ends, or as there are."""
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
