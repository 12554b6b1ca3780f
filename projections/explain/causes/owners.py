"""The nodes that owned a group one after the other, as its control log has them.

Where the logs lie in a store, another node may own the group after a failure or a planned move. The
epochs of the group do not move by it.
"""

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from ....events.records import OwnerBegan, OwnerResigned, Record

OWNERS_MAX: Final = 50
"""How many of the last owners are kept."""


@dataclass(frozen=True, slots=True)
class OwnerTerm:
    """A node that owned the group from a time on."""

    epoch: int
    """The number of the owner: each is higher than that of the one before."""
    node: str
    since_ms: int
    silence_ms: int
    """How long nothing had been heard of the owner before; 0: there was none, or it had ended."""
    resigned_ms: int | None = None
    """When it gave the group up; None: it did not."""


class OwnerTerms:
    """A fold of the control log that keeps the last owners."""

    def __init__(self) -> None:
        self.lines: deque[OwnerTerm] = deque(maxlen=OWNERS_MAX)

    def apply(self, record: Record, now_ms: int) -> None:
        """Apply the next record of the log."""
        if isinstance(record, OwnerBegan):
            self.lines.append(OwnerTerm(record.epoch, record.node, now_ms, record.silence_ms))
        elif isinstance(record, OwnerResigned) and self.lines:
            self.lines[-1] = replace(self.lines[-1], resigned_ms=now_ms)
