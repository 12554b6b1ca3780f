"""A store in memory: the plainest one that keeps the port's word, and can be told to fail."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fairlead.events.log.errors import LogFailedError, OwnerFencedError
from fairlead.events.stores.port import (
    Claimant,
    Claimed,
    StoreAwayError,
    StoredCommit,
    StoreDiffersError,
    StoredSlice,
    StoreOwner,
    StorePosition,
    StoreSnapshot,
)


@dataclass
class MemoryEngine:
    """What the handles of one log share."""

    owner: tuple[int, Claimant] | None = None
    heard_at: float = 0.0
    snapshot: StoreSnapshot | None = None
    commits: list[StoredCommit] = field(default_factory=list[StoredCommit])
    clock: Callable[[], float] = time.monotonic
    is_away: bool = False
    loses_answers: bool = False
    flaws: Sequence[str] = ()
    most: int = 1_000
    """How many commits are delivered at once."""

    @property
    def end(self) -> int:
        if self.commits:
            return self.commits[-1].end
        return self.snapshot.end if self.snapshot else 0


class MemoryStore:
    """A handle of one node."""

    def __init__(self, engine: MemoryEngine) -> None:
        self.engine = engine
        self.is_closed = False

    def owner(self) -> StoreOwner | None:
        engine = self._reached()
        if engine.owner is None:
            return None
        return StoreOwner(*engine.owner, engine.clock() - engine.heard_at)

    def claim(
        self, claimant: Claimant, silence_seconds: float, at_least: int = 1
    ) -> Claimed | None:
        engine, epoch = self._reached(), at_least
        if engine.owner is not None:
            before, former = engine.owner
            is_silent = engine.clock() - engine.heard_at >= silence_seconds
            if former.folder != claimant.folder and not is_silent:
                return None
            epoch = max(epoch, before + 1)
        engine.owner, engine.heard_at = (epoch, claimant), engine.clock()
        return Claimed(epoch, sum(len(each.body) for each in engine.commits))

    def append(self, epoch: int, *commits: StoredCommit) -> StorePosition:
        engine = self.engine
        if engine.is_away:
            raise LogFailedError("the store did not answer")
        self._require(epoch)
        for commit in commits:
            assert commit.base == engine.end
            engine.commits.append(commit)
        if engine.loses_answers:
            raise LogFailedError("the store did not answer")
        return StorePosition(engine.end, b"here")

    def beat(self, epoch: int) -> None:
        engine = self._reached()
        self._require(epoch)
        engine.heard_at = engine.clock()

    def read(self, position: StorePosition, wait_seconds: float) -> StoredSlice:  # noqa: ARG002
        engine = self._reached()
        if position.end > engine.end:
            raise StoreDiffersError(f"the store ends at {engine.end}, not at {position.end}")
        begin = engine.snapshot.end if engine.snapshot else 0
        snapshot = engine.snapshot if position.end < begin else None
        start = max(begin, position.end)
        rest = [each for each in engine.commits if each.base >= start]
        commits = rest[: engine.most]
        end = commits[-1].end if commits else start
        return StoredSlice(snapshot, commits, StorePosition(end, b"here"), commits == rest)

    def compact(self, epoch: int, snapshot: StoreSnapshot) -> None:
        self._require(epoch)
        self.engine.snapshot = snapshot
        self.engine.commits = [each for each in self.engine.commits if each.base >= snapshot.end]

    def flaws(self) -> Sequence[str]:
        return self.engine.flaws

    def warnings(self) -> Sequence[str]:
        return ()

    def close(self) -> None:
        self.is_closed = True

    def _reached(self) -> MemoryEngine:
        if self.engine.is_away:
            raise StoreAwayError("the store cannot be reached")
        return self.engine

    def _require(self, epoch: int) -> None:
        if self.engine.owner is None or self.engine.owner[0] != epoch:
            raise OwnerFencedError(f"the owner is {self.engine.owner}, not {epoch}")
