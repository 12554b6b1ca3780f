"""What the contract tests of stores ask of an engine, and how they read."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from fairlead.events.stores.port import (
    Claimant,
    Claimed,
    LogStore,
    StoredCommit,
    StorePosition,
    StoreSnapshot,
)

BEGINNING = StorePosition()
A = Claimant("a", "a:9092", "folder of a")
B = Claimant("b", "b:9092", "folder of b")
C = Claimant("c", "c:9092", "folder of c")


class StoreEngine(Protocol):
    """An engine with stores in it."""

    def store(self, log: str) -> LogStore:
        """Return a new handle of a log, as another node would have it."""
        ...

    def empty(self, log: str) -> None:
        """Remove all that the engine has of a log, as an administrator by mistake."""
        ...

    def save(self, log: str) -> Callable[[], None]:
        """Copy all that it has of a log; the result puts the copy in the log's place."""
        ...


class WholeLog(NamedTuple):
    """All that a reader was delivered, from where it stood on."""

    snapshot: StoreSnapshot | None
    commits: Sequence[StoredCommit]
    position: StorePosition


def read_all(store: LogStore, position: StorePosition = BEGINNING) -> WholeLog:
    """Read until all is delivered that counts."""
    snapshot: StoreSnapshot | None = None
    commits: list[StoredCommit] = []
    while True:
        part = store.read(position, 0.0)
        position = part.position
        if part.snapshot:
            snapshot, commits = part.snapshot, []
        commits += part.commits
        if part.is_whole:
            return WholeLog(snapshot, commits, position)


def commit_at(base: int, body: bytes = b"body", entries: int = 1) -> StoredCommit:
    """Return a commit of so many entries."""
    return StoredCommit(base, base + entries, body)


def claimed(store: LogStore, claimant: Claimant = A, silence: float = 0.0) -> Claimed:
    """Claim a log for a node that has read all of it."""
    read_all(store)
    made = store.claim(claimant, silence)
    assert made is not None
    return made
