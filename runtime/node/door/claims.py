"""Decides when a node claims its group, and keeps its role: all nodes follow, and one of them owns.

Which claim counts is decided by the store alone, so that a claim at the wrong time harms no data.
It only ends the work of an owner that was well. So a node claims if there is a reason to believe
that nobody owns the group: its owner has been silent, or was a process of this very folder, which
is locked, or has resigned. And never before its copies have all that counts: until then it may take
itself for the last owner although another one came after it.

Nodes have ranks, so that not all of them claim at once: each next one waits a sixteenth of the
owner's silence longer, and one that finds a new owner follows that. A node has its rank from its
folder alone, since it does not know which others live: steps are short, as the first may be lost.
One whose listener does not take connections yet comes after all others: it could not serve them.
So does one that has given the group up itself: another one is to have it.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from ....events.records import OwnerBegan, OwnerResigned
from ....events.stores.port import StoreOwner

RANKS: Final = 4
"""How many ranks there are; nodes may have the same one."""
RANKS_PER_SILENCE: Final = 16
"""So many nodes would claim one after the other within one more silence."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A group's owner as a node sees it."""

    is_whole: bool
    """Whether the copies here have all of both logs that counted when the owner was looked up."""
    owner: StoreOwner | None
    """The last claim; None: nobody has ever claimed the group."""
    record: OwnerBegan | OwnerResigned | None
    """What the control log says last about owners."""
    rank: int
    """How many other nodes are to claim before this one."""

    @property
    def has_resigned(self) -> bool:
        """Whether the owner of the last claim has given the group up."""
        return (
            self.owner is not None
            and isinstance(self.record, OwnerResigned)
            and self.record.epoch == self.owner.epoch
        )


@dataclass(frozen=True, slots=True)
class ClaimRule:
    """When a node claims; a claim asks the store for the least silence of the owner, in seconds."""

    node: str
    folder: str
    """The identity of its data folder."""
    silence_seconds: float
    """`owner.silence.ms`: after how much silence the first node claims."""
    is_reachable: bool = True
    """Whether other nodes can reach this one: one that is set up to be alone takes nothing over
    from a node that others reach, unless that one has resigned, and then after all others."""

    def silence_of_claim(self, sight: Sight) -> float | None:
        """Return after how much silence a claim may count, if one is to be made now; else None."""
        if not sight.is_whole:
            return None
        if sight.owner is None:  # of several first ones, one counts: its owner is not silent then
            return self.silence_seconds
        if not sight.has_resigned and self._was_owner(sight):
            return 0.0
        if not (sight.has_resigned or self.is_reachable) and sight.owner.claimant.address:
            return None
        silence = self._patience(sight)
        return silence if sight.owner.silent_seconds >= silence else None

    def _was_owner(self, sight: Sight) -> bool:
        return sight.owner is not None and sight.owner.claimant.folder == self.folder

    def _patience(self, sight: Sight) -> float:
        """Return for how long the owner has to be silent before this node claims."""
        turn = sight.rank / RANKS_PER_SILENCE + (0 if self.is_reachable else 1)
        if sight.has_resigned and isinstance(sight.record, OwnerResigned):
            if sight.record.to == self.node:
                return 0.0
            if not sight.record.to and not self._was_owner(sight):
                return self.silence_seconds * turn
        return self.silence_seconds * (1 + turn)


class NodeRole(Enum):
    """The roles of a node towards its group."""

    FOLLOWS = "follows"
    CLAIMS = "claims"
    """Its claim is on its way, or counts, and its first record does not yet."""
    OWNS = "owns"


class RoleEnding(Enum):
    """How a node's ownership, or its attempt at it, ended."""

    REFUSED = "another node has claimed the group, or its owner is not silent"
    FENCED = "another node has claimed the group"
    RESIGNED = "it has given the group up"
    FAILED = "its process failed, or what became of a write is unknown"

    @property
    def is_failure(self) -> bool:
        """Whether a pause has to grow before the next attempt: a change of role is no failure."""
        return self is RoleEnding.FAILED


class RoleTracker:
    """The role of one node at any time."""

    def __init__(self, rule: ClaimRule) -> None:
        self.role = NodeRole.FOLLOWS
        self._rule = rule

    def would_claim(self, sight: Sight) -> bool:
        """Tell whether a claim is to be made now because of the silence of another node."""
        silence_seconds = self._rule.silence_of_claim(sight)
        return silence_seconds is not None and sight.owner is not None

    def look(self, sight: Sight) -> float | None:
        """Return the silence that a claim asks for if one is to be made now: it is under way then.

        While this node claims or owns there is none to be made.
        """
        if self.role is not NodeRole.FOLLOWS:
            return None
        silence_seconds = self._rule.silence_of_claim(sight)
        if silence_seconds is not None:
            self.role = NodeRole.CLAIMS
        return silence_seconds

    def begin(self) -> None:
        """Record that the first record of its claim counts: it owns the group."""
        self.role = NodeRole.OWNS

    def end(self, ending: RoleEnding) -> bool:
        """Record that it does not own the group, or not any more; return whether that is a failure.

        It follows whoever owns the group, and may claim again as soon as there is a reason.
        """
        self.role = NodeRole.FOLLOWS
        return ending.is_failure
