"""The eager assignor: with every target all is dealt anew, to one worker after the other.

One cursor goes round the workers in the order of their names: first all connectors, then all
tasks, as the classic one of Connect does it (KIP-415, version 0). Who had what does not
count, so that most of what runs moves whenever a worker comes or goes, and nothing is parked.
Only the order of the workers is another: by their names and not by their member ids, which
are new with every start of a worker.

Operators' orders stand as with the others: what a cordoned worker has stays there, and what
demands anything of its worker stays with who has it, if that one meets it, or goes to one
that does. The cursor goes round with the rest.
"""

from ...events.model import Resources
from ..messages.computing import Assignment, Snapshot
from .classic import eager
from .eligibility import Shares
from .losses import without_losses
from .placing import place

NAME = "eager"
VERSION = 0


def assign(snapshot: Snapshot) -> Assignment:
    """Return where everything configured is to go, nothing parked; see `place`."""

    def deal(free: Resources, claims: Shares, _: object) -> Shares:
        members = snapshot.members
        order = sorted(claims, key=lambda each: (members[each].worker, each))
        dealt = eager.assign(free, claims)
        turns = (set(dealt[turn]) for turn in sorted(dealt))
        return dict(zip(order, turns, strict=True))

    return place(without_losses(snapshot), deal, VERSION)
