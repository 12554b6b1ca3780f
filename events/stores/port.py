"""The port of a store: an engine in which the commits of a log count (LOG.md §13).

A log whose commits lie in a store outlives its host. What counts is decided by the store, never by
a clock of a host: an append counts if its owner's claim is still the last one, and so do beats.
Any node may claim at any time, and whoever claimed last owns the log. What an earlier owner sends
afterwards, however late it arrives, counts for nobody.

Commits are bytes to a store: they are sealed by the owner, and lie in every copy as they are.
A store has one log; its calls are made by one thread at a time, and all of them return or raise
within some seconds.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from ..log.errors import LogError

DIFFERS: Final = (
    "The store was emptied, or restored from an older copy; nothing was changed. Restore the newer"
    " one; or stop all nodes and publish a log; or move the copies aside, if what they have may go"
)
"""What to do with a store that is not what it was."""


class StoreAwayError(LogError):
    """The store cannot be reached, or did not answer in time: nothing counted; ask again."""


class StoreDiffersError(LogError):
    """The store has another history than the copy on this host, or a shorter one.

    It was emptied, or restored from an older copy. Nothing was changed.
    """


class StoreSettingsError(LogError):
    """A file that the settings of the store name cannot be used; the message says what to do."""


class StoreUnsafeError(LogError):
    """The engine is set up so that it may lose what it has acknowledged; the message says how."""


class Claimant(NamedTuple):
    """A node that claims a log."""

    node: str
    address: str
    """The address of its listener as other nodes reach it, `host:port`."""
    folder: str
    """The identity of its data folder: who comes back with it need not wait for silence."""


class StoreOwner(NamedTuple):
    """The last claim of a log, as a reader of the store sees it."""

    epoch: int
    claimant: Claimant
    silent_seconds: float
    """How long nothing has been heard of it, by the clock of the store or that of this reader;
    never of another host."""


class StoredCommit(NamedTuple):
    """One commit, as the owner sealed it (`pack_body`)."""

    base: int
    """The offset of its first entry."""
    end: int
    """The offset behind its last entry."""
    body: bytes


class StoreSnapshot(NamedTuple):
    """The stand-in for the beginning of a log that its store has forgotten (`pack_snapshot`)."""

    end: int
    """The offset behind the last entry that it stands for."""
    body: bytes


class StorePosition(NamedTuple):
    """Where in a store a copy of its log stands."""

    end: int = 0
    """The offset behind the last entry of the copy."""
    mark: bytes = b""
    """The store's own name of the place, kept beside the copy: empty at the log's beginning."""


class StoredSlice(NamedTuple):
    """The next part of what counts: first a snapshot if the store begins later, then commits."""

    snapshot: StoreSnapshot | None
    commits: Sequence[StoredCommit]
    position: StorePosition
    """Where the copy stands once it has them."""
    is_whole: bool
    """Whether all is delivered that counted when `read` was called."""


class Claimed(NamedTuple):
    """A claim that counts."""

    epoch: int
    """The owner epoch, above those of all earlier claims."""
    stored_bytes: int
    """The size of the commits that the store keeps, without the snapshot."""


class LogStore(Protocol):
    """One log in a store."""

    def owner(self) -> StoreOwner | None:
        """Return the last claim; None if nobody has claimed the log yet.

        Raises `StoreAwayError`, and `StoreDiffersError` if the log is another one than it was.
        """
        ...

    def claim(
        self, claimant: Claimant, silence_seconds: float, at_least: int = 1
    ) -> Claimed | None:
        """Claim the log, unless its owner has been heard of within some seconds: None then.

        The folder of the last claim may claim again at once. The epoch is `at_least` so high. When
        it returns, nothing of earlier owners counts any more but what `read` delivers from now on.
        Whoever has a copy reads to the end first: so its store knows whether it is the same log.
        Raises `StoreAwayError`: whether the claim counts is unknown then, and harms nobody.
        """
        ...

    def append(self, epoch: int, *commits: StoredCommit) -> StorePosition:
        """Make commits count, durably, one or many in their order, in one round.

        The base of the first is the end of what counts, that of each other the end of the one
        before. Raises `OwnerFencedError` if another claim came first: it will never count. Raises
        `LogFailedError` if that is unknown: exit, claim and read what counts. Raises, with nothing
        sent, `OffsetConflictError` for another base, and `StoreAwayError`.
        """
        ...

    def beat(self, epoch: int) -> None:
        """Confirm that this claim is the last one, as of a moment after the call began.

        That moment, or one up to 0.2 s before it, also ends the owner's silence. Raises
        `OwnerFencedError`, `StoreAwayError`.
        """
        ...

    def read(self, position: StorePosition, wait_seconds: float) -> StoredSlice:
        """Return what counts from a position on; wait for a while if there is nothing.

        Positions are those of the last `StoredSlice` or append, or the one kept beside the copy.
        Raises `StoreAwayError`, and `StoreDiffersError` if there is no such place in the store.
        """
        ...

    def compact(self, epoch: int, snapshot: StoreSnapshot) -> None:
        """Put a snapshot in the place of all commits; its end is that of the log, or it is empty.

        Readers that stand before it get the snapshot; others notice nothing. Raises as `append`.
        """
        ...

    def flaws(self) -> Sequence[str]:
        """Return how the engine is set up to lose what it has acknowledged, as sentences.

        Of a log that nobody has claimed yet, not all may be known. Raises `StoreAwayError`.
        """
        ...

    def warnings(self) -> Sequence[str]:
        """Return what people should know of the engine otherwise, as sentences."""
        ...

    def close(self) -> None:
        """Close the connections; a second time does nothing."""
        ...
