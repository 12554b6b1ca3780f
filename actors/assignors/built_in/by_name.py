"""Assignors that go by the order of names alone: eager and range.

Neither cares where work has been.

* `eager` deals everything anew with every target, to one worker after the other. One cursor goes
  round the workers in the order of their names: first all connectors, then all tasks, as the
  classic one of Connect does it (KIP-415, version 0). So most of what runs moves whenever a worker
  comes or goes, and nothing is parked. Only the order of the workers is another: by their names
  and not by their member ids, which are new with every start of a worker.
* `range` gives each member a stretch of the list of all connectors and tasks. The list is in the
  order of names, each connector before its tasks, and the stretches in the order of the workers'
  names, none longer than another by more than one. So the tasks of a connector run on as few
  workers as can be. Lost work waits, parked, as with the others; since it was one stretch of the
  list, the other stretches stay where they are meanwhile. The group itself can compute it.

Operators' orders stand as with the others: what a cordoned worker has stays there, and what
demands anything of its worker stays with the one that has it, if that one meets it, or goes to one
that does. The rest is dealt as said.
"""

from collections.abc import Iterable

from ....events.model import Resource, Resources
from ...messages.computing import Assignment, Snapshot
from ..classic.loads import deal_eagerly
from ..eligibility import Shares
from ..placing import demands_first, drop_losses, place

EAGER = "eager"
RANGE = "range"


def assign_eagerly(snapshot: Snapshot) -> Assignment:
    """Compute `eager`: return where everything configured is to go, nothing parked."""

    def deal(free: Resources, claims: Shares, _: object) -> Shares:
        dealt = deal_eagerly(free, claims)
        turns = (set(dealt[turn]) for turn in sorted(dealt))
        return dict(zip(_by_name(snapshot, claims), turns, strict=True))

    return place(drop_losses(snapshot), demands_first(deal))


def assign_ranges(snapshot: Snapshot) -> Assignment:
    """Compute `range`: return where everything configured is to go; see `place`."""

    def deal(free: Resources, claims: Shares, _: object) -> Shares:
        return _cut(sorted(free), _by_name(snapshot, claims))

    return place(snapshot, demands_first(deal))


def _by_name(snapshot: Snapshot, member_ids: Iterable[str]) -> list[str]:
    """Return member ids in the order of their workers' names."""
    return sorted(member_ids, key=lambda each: (snapshot.members[each].worker, each))


def _cut(listed: list[Resource], order: list[str]) -> Shares:
    """Cut the list into as many stretches as there are members; the first are the longer."""
    length, odd = divmod(len(listed), len(order))
    shares: Shares = {}
    start = 0
    for place_in_order, member in enumerate(order):
        end = start + length + (place_in_order < odd)
        shares[member] = set(listed[start:end])
        start = end
    return shares
