"""What changes hands while work is balanced; who is not named here keeps just what it has."""

from collections import defaultdict
from collections.abc import Collection, Iterable

from ....events.model import Resource, Resources


class Changes:
    """What each taker gives up, and what it gets; work that comes back was never away."""

    __slots__ = ("firsts", "given_up", "got")

    def __init__(self) -> None:
        self.given_up: defaultdict[int, set[Resource]] = defaultdict(set)
        self.got: defaultdict[int, set[Resource]] = defaultdict(set)
        self.firsts: dict[int, Resources] = {}

    def give_up(self, index: int, resource: Resource) -> None:
        """Note that a taker gives a resource up."""
        got = self.got.get(index)
        if got and resource in got:
            got.remove(resource)
        else:
            self.given_up[index].add(resource)

    def get(self, index: int, resource: Resource) -> None:
        """Note that a taker gets a resource."""
        given_up = self.given_up.get(index)
        if given_up and resource in given_up:
            given_up.remove(resource)
        else:
            self.got[index].add(resource)

    def get_first(self, index: int, resources: Iterable[Resource]) -> None:
        """Note that a taker gets these, and had nothing, nor will get any more."""
        self.firsts[index] = frozenset(resources)

    def share(self, index: int, share: Resources) -> Resources:
        """Return what a taker has that had this share."""
        given_up, got = self.given_up.get(index), self.got.get(index)
        if given_up:
            share -= given_up
        return share | got if got else share

    def made_to(self, held: list[Resources]) -> None:
        """Put into effect on what each taker has, and forget: there may be a lot of them."""
        for index in self.touched:
            held[index] = self.share(index, held[index])
            self.given_up.pop(index, None)
            self.got.pop(index, None)
        for index, first in self.firsts.items():
            held[index] = held[index] | first if held[index] else first

    @property
    def touched(self) -> Collection[int]:
        """All takers that give up or get anything bit by bit."""
        return self.given_up.keys() | self.got.keys()
