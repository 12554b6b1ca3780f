"""A rolling upgrade of four workers from one protocol to the other, with faults."""

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from fairlead.events.model import GroupType, Resource, Token
from fairlead_tests.chaos.crew import GROUP, Crew
from fairlead_tests.chaos.line import Line

CREW = ("r1", "r2", "r3", "r4")
LONGEST_S = 150.0
"""The time limit for recovery after a step."""
TYPES = {"classic": GroupType.CLASSIC, "connect": GroupType.CONNECT}


class RollingCrew:
    """The workers of a node, each with its current protocol, and their pipeline."""

    def __init__(self, node: Crew, line: Line) -> None:
        self.node, self.line = node, line
        self.speaks: dict[str, str] = dict.fromkeys(CREW, "classic")
        self.happened: Counter[str] = Counter()
        for name in CREW:
            node.join(name, "classic")

    def settles(self, what: str, seconds: float = LONGEST_S) -> None:
        """Wait until all four are members, and the pipeline runs."""
        self.node.eventually(self._is_whole, f"all runs again after {what}", seconds)

    def _is_whole(self) -> bool:
        there = all(len(self.node.members(name)) == 1 for name in CREW)
        return (
            there and len(self.node.group.workers()) == 4 and self.node.is_running(self.line.name)
        )

    def roll(self, protocol: str, faults: Sequence[str] = ()) -> None:
        """Upgrade one worker after another; each fault is injected once meanwhile."""
        left = list(faults)
        for name in CREW:
            self.node.leave(name)
            self.speaks[name] = protocol
            self.node.join(name, protocol)
            if left and (fault := left.pop(0)):
                self._befall(fault, name)
            self.settles(f"{name} was rolled to {protocol}")
        assert self.node.look().type is TYPES[protocol]

    def _befall(self, fault: str, rolled: str) -> None:
        faults: dict[str, Callable[[], object]] = {
            "kill worker": lambda: self._kill_worker(rolled),
            "kill group": lambda: self.node.hit(f"group {GROUP}"),
            "kill node": self._kill_node,
        }
        faults[fault]()
        self.happened[fault] += 1

    def _kill_worker(self, rolled: str) -> None:
        """Kill another worker, and start its command again."""
        other = next(name for name in CREW if name != rolled)
        self.node.hit(f"worker {other}")
        self.node.begin_again(other, self.speaks[other])

    def _kill_node(self) -> None:
        """Kill the whole node, and start it again."""
        self.node.crash()
        self.node.up(0)
        for name, protocol in self.speaks.items():
            self.node.join(name, protocol)

    def leave(self) -> None:
        """Stop all workers gracefully."""
        for name in CREW:
            self.node.leave(name)

    def conversions(self) -> tuple[int, int]:
        """Return the number of conversions in the history, to connect and to classic."""
        told = self.node.page(f"/groups/{GROUP}/history?limit=1000")
        return (
            len(re.findall(r"converted from the classic protocol, because \S+ joined", told)),
            len(re.findall(r"converted to the classic protocol, because \S+ was the last", told)),
        )

    def went_back(self) -> list[object]:
        """Return all epochs and fencing tokens that have decreased."""
        found: list[object] = [each for each in pairwise(self.node.epochs()) if each[1] < each[0]]
        last: dict[Resource, Token] = {}
        for each in self.node.statuses:
            before = last.setdefault(each.resource, each.token)
            if each.token < before:
                found.append((each, before))
            last[each.resource] = each.token
        return found


def random_faults(seed: int) -> list[list[str]]:
    """Return the faults for each of two directions, at times that depend on the seed."""
    dice = random.Random(seed)
    kinds = ["kill worker", "kill group", "kill node", "", ""]
    return [dice.sample(kinds, k=4) for _ in range(2)]
