"""The range assignor: each member runs a stretch of the list of all connectors and tasks.

The list is in the order of names, each connector before its tasks, and the stretches in the
order of the workers' names, none longer than another by more than one. So the tasks of a
connector run on as few workers as can be, and who runs what follows from who is there alone:
nobody keeps work because it had it. Lost work waits, parked, as with the others; since it
was one stretch of the list, the other stretches stay where they are meanwhile.
"""

from ...events.model import Resources
from ..messages.computing import Assignment, Snapshot
from .eligibility import Shares
from .placing import place

NAME = "range"
VERSION = 0


def assign(snapshot: Snapshot) -> Assignment:
    """Return where everything configured is to go; see `place`."""

    def deal(free: Resources, claims: Shares, _: object) -> Shares:
        members = snapshot.members
        return _cut(free, sorted(claims, key=lambda each: (members[each].worker, each)))

    return place(snapshot, deal, VERSION)


def _cut(free: Resources, order: list[str]) -> Shares:
    """Cut the list into as many stretches as there are members; the first are the longer."""
    listed = sorted(free)
    length, odd = divmod(len(listed), len(order))
    shares: Shares = {}
    start = 0
    for place_in_order, member in enumerate(order):
        end = start + length + (place_in_order < odd)
        shares[member] = set(listed[start:end])
        start = end
    return shares
