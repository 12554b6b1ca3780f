"""A log whose commits count in a store, as one node has it: a copy that follows, until it claims.

Everything that reads a log reads the copy: it has the same bytes as that of any other node, its
chain is checked commit by commit, and it is a log of its own (LOG.md §13). Into it goes only what
counts: a copy that follows takes what the store delivers, whole commits in their order. The owner's
append goes to the store first, to the copy when it counts, and only then the owner speaks of it. So
a copy is never ahead of the store, and never cut back. One that differs from the store, or goes
beyond it, means that the store is not what it was: then nothing is changed on either side.

Where the store has forgotten the beginning, a copy that has not come so far is replaced by a
snapshot: it is then as a log that was trimmed there (LOG.md §10).

The place in the store is kept in `meta`, in the transaction that writes the commits.

A control log rests on the offset log beside it, which its owner writes first. So does every copy:
whoever reads of a grant in one has in the other all that was committed before it.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Self, TypeVar

from ..log.errors import CorruptLogError
from ..log.files import Mark
from ..log.frame import (
    CHECKSUM_BYTES,
    OFFSET,
    LogCommit,
    next_chain,
    pack_commit,
    unpack_commit,
    unseal,
)
from ..log.space import require_space
from ..log.tables import (
    CHAIN_KEY,
    EPOCH_KEY,
    LOW_KEY,
    POSITION_KEY,
    LogKind,
    Summarize,
    Transaction,
    chain_before,
    commit_base,
    put_summary,
    trimmed,
    view_key,
)
from ..log.writer import Append, GroupLog
from .bodies import (
    CommitContent,
    SnapshotContent,
    in_rounds,
    pack_body,
    pack_snapshot,
    unpack_body,
    unpack_snapshot,
)
from .port import (
    DIFFERS,
    Claimant,
    LogStore,
    StoreAwayError,
    StoredCommit,
    StoreDiffersError,
    StoreOwner,
    StorePosition,
    StoreSnapshot,
    StoreUnsafeError,
)

LOGGER = logging.getLogger(__name__)
_F = TypeVar("_F")
SNAPSHOT_BYTES: Final = 64 << 20
"""So many bytes of commits a store keeps, at least, before a snapshot takes their place."""
SNAPSHOT_TIMES: Final = 3
"""So many times the size of their snapshot it keeps of them, at least."""
COMMITS_PER_READ: Final = 1_000
SAMPLE: Final = 1_000
"""By so many frames the size of a snapshot is estimated."""
BEAT_SECONDS: Final = 0.5
"""The interval at which an owner is heard of while it makes a snapshot."""
PUBLISHED_BYTES: Final = 4 << 20
"""So many bytes of commits go to the store in one round when a log is published, or one commit."""


class StoredLog(GroupLog):
    """A copy of a log in a store; once it has claimed, the log of its owner."""

    is_copy = True
    _durable: Mark | None = None
    """How far it was before its last commit: as far as no power cut takes it back."""

    beside: "StoredLog | None" = None
    """The log that this one rests on."""
    bring_beside: Callable[[int], None] | None = None
    """Returns once the copy of that log has come to an end; None: it is followed here."""
    _store: LogStore
    _position: StorePosition
    """Where in the store this copy stands."""
    stored_bytes = 0
    """The size of the commits that the store keeps; only its owner knows it."""
    _weigh_at = SNAPSHOT_BYTES
    """With so many bytes of commits it is looked at next whether a snapshot is due."""
    _warned: Sequence[str] = ()
    """What the last check of the engine has found."""
    written_ms = 0
    """When the last commit that the store delivered was written, by its owner's clock; 0: none."""

    @classmethod
    def open_copy(cls, path: Path, log_id: str, kind: LogKind | None, store: LogStore) -> Self:
        """Open the copy at `path`, and create it if there is none.

        The store is closed with it. Raises as `open_writer`.
        """
        log = cls.open_writer(path, log_id, kind)
        log._store = store  # noqa: SLF001  # its own
        log._position = StorePosition(log.end, log.store_mark)  # noqa: SLF001
        return log

    def owner(self) -> StoreOwner | None:
        """Return the last claim in the store; None if there was none. Raises `StoreAwayError`."""
        return self._store.owner()

    def follow(self, wait_seconds: float = 0.0) -> bool:
        """Write what counts and is not here yet; return whether that was all.

        Waits for a while if there is nothing. Raises `StoreAwayError`, `StoreDiffersError`,
        `CorruptLogError`, `LowSpaceError`, with nothing written; and `LogFailedError`.
        """
        self._check_writable()
        if self._position.end and not self._position.mark:
            raise StoreDiffersError(
                f"{self.path} has {self.end} entries and was never in the store, or was withdrawn"
                " from it: nothing was changed; `fairlead log publish` puts them there, if the"
                " store is empty"
            )
        part = self._store.read(self._position, wait_seconds)
        if part.snapshot is not None:
            self._load(part.snapshot, part.position)
        if part.commits:
            self._apply(part.commits, part.position)
        self._position = part.position
        return part.is_whole

    def claim(self, claimant: Claimant, silence_seconds: float, after: int | None = None) -> bool:
        """Become the owner, unless the present one was heard of within some seconds.

        `after` is the epoch of the owner that was found to be gone: nor if there is another one by
        now, whom a claim would depose. All that counts is here then. Raises as `follow`, and leaves
        the store as it was if this copy does not fit it.
        """
        self._follow_to_the_end()
        if after is not None and (owner := self._store.owner()) and owner.epoch != after:
            return False
        claimed = self._store.claim(claimant, silence_seconds, self.epoch + 1)
        if claimed is None:
            return False
        self._follow_to_the_end()
        self._take_epoch(claimed.epoch)
        self.stored_bytes = claimed.stored_bytes
        return True

    def check_store(self, *, is_unsafe: bool) -> None:
        """Log how the engine is set up to lose what it has acknowledged, if that is new.

        Raises `StoreUnsafeError` unless that is accepted, and `StoreAwayError`.
        """
        flaws, accepted = self._store.flaws(), "log.store.unsafe = true accepts that"
        warnings = [*self._store.warnings()]
        warnings += [f"{each}: {accepted}" for each in flaws] if is_unsafe else []
        for each in warnings:
            if each not in self._warned:
                LOGGER.warning("%s", each)
        self._warned = warnings
        if flaws and not is_unsafe:
            raise StoreUnsafeError(f"the store is not safe: {'; '.join(flaws)} ({accepted})")

    def beat(self) -> None:
        """Confirm that this process is the owner; raises `OwnerFencedError`, `StoreAwayError`."""
        self._store.beat(self.epoch)

    def compact_store(self, beat: Callable[[], None]) -> bool:
        """Put a snapshot in the place of all commits in the store, if they are three times as big.

        Return whether that was due. A large one takes longer than its owner may be silent: `beat`
        is called meanwhile, and what it raises goes on. Raises as `append` otherwise.
        """
        if self.stored_bytes < self._weigh_at:
            return False
        self._weigh_at = max(SNAPSHOT_BYTES, SNAPSHOT_TIMES * self._snapshot_bytes())
        if self.stored_bytes < self._weigh_at:
            return False
        beat()
        snapshot = self.snapshot(beat=beat)
        self._weigh_at = max(SNAPSHOT_BYTES, SNAPSHOT_TIMES * len(snapshot.body))
        if self.stored_bytes < self._weigh_at:
            return False
        beat()
        self._store.compact(self.epoch, snapshot)
        self.stored_bytes = 0
        return True

    def snapshot(
        self,
        upto: int | None = None,
        summarize: Summarize | None = None,
        rests_on: int = 0,
        beat: Callable[[], object] = bool,
    ) -> StoreSnapshot:
        """Return the latest frames of all keys before the end of a commit; None: the last one.

        With `summarize` the entries up to there are added to the summary of what was trimmed.
        `beat` is called now and then.
        """
        with self._snapshot() as txn:
            before, commit = self._commit_that_ends(txn, self._end if upto is None else upto)
            frames = sorted(_with_beats(self._latest_frames(txn, commit.end), beat))
            low, summary = trimmed(txn, self._tables)
        entries = self.read(low, commit.end - low).entries if summarize else []
        if summarize and entries:
            summary = summarize(summary, entries)
        return pack_snapshot(SnapshotContent(commit, before, summary, frames, rests_on))

    def commits(self, start: int, rests_on: int = 0) -> Iterator[StoredCommit]:
        """Yield the commits from the end of one on, as they are; raises `CorruptLogError`.

        All of them rest on the same end of the other log.
        """
        while rows := self._read_commits(start, rests_on):
            yield from rows
            start = rows[-1].end

    def publish(
        self, claimant: Claimant, summarize: Summarize | None = None, rests_on: int = 0
    ) -> int:
        """Put a log of one host into an empty store, and return its end.

        It rests on an end of the log that was published before it. What was interrupted goes on
        from where it was. The owner epoch of the claim is above all before. Raises
        `StoreDiffersError` if the store has another log; nothing is changed then.
        """
        self._check_writable()
        owner = self._store.owner()
        if owner is not None and owner.claimant.folder != claimant.folder:
            raise StoreDiffersError(
                f"the store has a log of the node {owner.claimant.node}: nothing was changed;"
                f" {self.path} can only be published into an empty store"
            )
        position = StorePosition()
        while owner is not None:
            part = self._store.read(position, 0.0)
            self._require_same(part.commits)
            position = part.position
            if part.is_whole:
                break
        claimed = self._store.claim(claimant, 0.0, self.epoch + 1)
        if claimed is None:
            raise StoreAwayError(f"another node has claimed the log of {self.path}: try again")
        low = self.low()
        if low and not position.end:
            snapshot = self.snapshot(self._end_of_commit(low), summarize, rests_on)
            self._store.compact(claimed.epoch, snapshot)
            position = self._store.read(StorePosition(), 0.0).position
        for some in self._rounds(position.end, rests_on):
            position = self._store.append(claimed.epoch, *some)
        self._position = position
        self._take_epoch(claimed.epoch)
        return self._end

    def withdraw(self) -> None:
        """Be a log of one host from the next opening on: nothing more is taken from the store."""

        def put(txn: Transaction) -> None:
            txn.delete(POSITION_KEY, db=self._tables.meta)

        self._write(put)
        self._env.sync(True)  # noqa: FBT003  # a copy does not flush its root page otherwise

    def rejoin(self, folder: str) -> None:
        """Be a copy again if this log was withdrawn, and has what the store has, as is checked.

        `folder` is the identity of this node's data: nobody else may have claimed the log since.
        """
        owner = self._store.owner()
        if not self.end or self.store_mark or owner is None or owner.claimant.folder != folder:
            return
        part = self._store.read(StorePosition(), 0.0)
        while not part.is_whole:
            self._require_same(part.commits[-1:])
            part = self._store.read(part.position, 0.0)
        self._require_same(part.commits[-1:])
        if part.position.end == self.end:
            self._position = part.position

    def _rounds(self, start: int, rests_on: int) -> Iterator[Sequence[StoredCommit]]:
        """Yield the commits from the end of one on, as many at a time as are sent together."""
        while rows := self._read_commits(start, rests_on):
            yield from in_rounds(rows, lambda each: len(each.body), PUBLISHED_BYTES)
            start = rows[-1].end

    def _require_same(self, stored: Sequence[StoredCommit]) -> None:
        own = self.commits(stored[0].base) if stored else iter(())
        for theirs in stored:
            ours = next(own, None)
            if ours is None or unpack_body(ours)[:2] != unpack_body(theirs)[:2]:
                raise StoreDiffersError(
                    f"the store has other entries from {theirs.base} on than {self.path}:"
                    " nothing was changed; publish into an empty store"
                )

    def _end_of_commit(self, offset: int) -> int:
        """Return the end of the commit that an entry before an offset lies in, if it is kept."""
        with self._snapshot() as txn:
            rows = self._commit_rows(txn, 0)
            return next(row.end for row in rows if row.end >= offset)

    def _snapshot_bytes(self) -> int:
        """Estimate the size of a snapshot by that of some of its frames."""
        with self._snapshot() as txn:
            some = [len(each) for _, each in islice(self._latest_frames(txn, self._end), SAMPLE)]
            entries: int = txn.stat(self._tables.view)["entries"]
        return entries * sum(some) // max(1, len(some))

    def _latest_frames(self, txn: Transaction, upto: int) -> Iterator[tuple[int, bytes]]:
        for _, row in self._rows(txn, b""):
            packed = row[: OFFSET.size]
            offset = int(OFFSET.unpack(packed)[0])
            frame = row[OFFSET.size :] or self._frame(txn, packed)
            if offset < upto and unseal(offset, frame).value is not None:
                yield offset, frame

    def _frame(self, txn: Transaction, packed: bytes) -> bytes:
        frame = txn.get(packed, db=self._tables.events)
        if frame is None:
            raise CorruptLogError(f"{self.path}: entry {OFFSET.unpack(packed)[0]} is missing")
        return frame

    def _commit_that_ends(self, txn: Transaction, end: int) -> tuple[bytes, LogCommit]:
        """Return the chain before a commit, and the commit."""
        cursor = txn.cursor(self._tables.commits)
        base = commit_base(txn, self._tables, end - 1)
        if not cursor.set_key(OFFSET.pack(base)):
            raise CorruptLogError(f"{self.path}: no commit ends at {end}")
        commit = unpack_commit(base, cursor.value())
        if not cursor.prev():
            return chain_before(txn, self._tables), commit
        return unpack_commit(OFFSET.unpack(cursor.key())[0], cursor.value()).chain, commit

    def _commit_rows(self, txn: Transaction, start: int) -> Iterator[LogCommit]:
        cursor = txn.cursor(self._tables.commits)
        if cursor.set_range(OFFSET.pack(start)):
            for key, packed in cursor:
                yield unpack_commit(OFFSET.unpack(key)[0], packed)

    def _read_commits(self, start: int, rests_on: int) -> list[StoredCommit]:
        with self._snapshot() as txn:
            rows = islice(self._commit_rows(txn, start), COMMITS_PER_READ)
            return [pack_body(commit, self._frames(txn, commit), rests_on) for commit in rows]

    def _frames(self, txn: Transaction, commit: LogCommit) -> list[bytes]:
        return [self._frame(txn, OFFSET.pack(each)) for each in range(commit.base, commit.end)]

    # -- what the store delivers

    def _follow_to_the_end(self) -> None:
        while not self.follow():
            pass

    def _apply(self, stored: Sequence[StoredCommit], position: StorePosition) -> None:
        batches: list[Append] = []
        end, chain, rests_on = self._end, self._chain, 0
        for each in stored:
            content = unpack_body(each)
            batches.append(self._sealed(content, end, chain))
            end, chain, rests_on = each.end, content.commit.chain, max(rests_on, content.rests_on)
        self._require_beside(rests_on)
        last = batches[-1].commit
        size = sum(batch.size for batch in batches)
        require_space(self.space, end - self._end, size, into_reserve=True)

        def put(txn: Transaction) -> None:
            self._check_end(txn)
            for batch in batches:
                self._put(txn, batch)
            self._note(txn, last, position)

        self._write(put)
        self._follow_on(last)

    def _require_beside(self, end: int) -> None:
        """Bring the copy of the log beside this one to an end; raises `StoreDiffersError`."""
        beside = self.beside
        if beside is None or beside.end >= end:
            return
        if self.bring_beside is not None:
            self.bring_beside(end)
        else:
            while not beside.follow():
                pass
        if beside.end < end:
            raise StoreDiffersError(
                f"the store has commits of {self.path} that rest on {end} entries of {beside.path},"
                f" which ends at {beside.end}. {DIFFERS}"
            )

    def _sealed(self, content: CommitContent, end: int, chain: bytes) -> Append:
        """Return a commit as rows; raises `StoreDiffersError` if it does not follow this chain."""
        commit, frames, _ = content
        checksums = b"".join([frame[:CHECKSUM_BYTES] for frame in frames])
        if commit.base != end or next_chain(chain, commit, checksums) != commit.chain:
            raise StoreDiffersError(
                f"the store has a commit of the entries {commit.base} to {commit.end}, of another"
                f" history than {self.path}, which ends at {end}. {DIFFERS}"
            )
        events: list[tuple[bytes, bytes]] = []
        view: dict[bytes, bytes] = {}
        for offset, frame in enumerate(frames, commit.base):
            entry, key = unseal(offset, frame), OFFSET.pack(offset)
            events.append((key, frame))
            view[view_key(entry.type, entry.key)] = key
        return Append(events, view, commit, sum(map(len, frames)))

    def _load(self, snapshot: StoreSnapshot, position: StorePosition) -> None:
        """Be as a log that was trimmed at the end of a snapshot."""
        commit, before, summary, frames, rests_on = unpack_snapshot(snapshot)
        self._require_beside(rests_on)
        if commit.end < self._end:
            raise StoreDiffersError(
                f"the store has a snapshot up to {commit.end}, and {self.path} ends at"
                f" {self._end}. {DIFFERS}"
            )
        size = sum(len(frame) for _, frame in frames)
        require_space(self.space, len(frames), size, into_reserve=True)
        view: dict[bytes, bytes] = {}
        for offset, frame in frames:
            entry = unseal(offset, frame)
            view[view_key(entry.type, entry.key)] = OFFSET.pack(offset) + frame

        def put(txn: Transaction) -> None:
            tables = self._tables
            self._check_end(txn)
            for table in (tables.events, tables.commits, tables.view):
                txn.drop(table, delete=False)
            txn.cursor(tables.view).putmulti(sorted(view.items()))
            txn.put(OFFSET.pack(commit.base), pack_commit(commit), db=tables.commits)
            txn.put(LOW_KEY, OFFSET.pack(commit.end), db=tables.meta)
            txn.put(CHAIN_KEY, before, db=tables.meta)
            if summary is not None:
                put_summary(txn, tables, summary)
            self._note(txn, commit, position)

        self._write(put)
        self._follow_on(commit)

    # -- the owner

    def _settle(self, batch: Append) -> None:
        """Append to the store, and only when that counts to the copy."""
        rests_on = self.beside.end if self.beside is not None else 0
        stored = pack_body(batch.commit, [frame for _, frame in batch.events], rests_on)
        self._position = self._store.append(self.epoch, stored)
        self.stored_bytes += len(stored.body)

        def put(txn: Transaction) -> None:
            self._check_end(txn)
            self._put(txn, batch)
            self._note(txn, batch.commit, self._position)

        self._write(put)

    def _note(self, txn: Transaction, commit: LogCommit, position: StorePosition) -> None:
        """Note the place in the store, and the epoch of its last commit if that is a higher one."""
        txn.put(POSITION_KEY, position.mark, db=self._tables.meta)
        if commit.epoch > self.epoch:
            txn.put(EPOCH_KEY, OFFSET.pack(commit.epoch), db=self._tables.meta)

    def _follow_on(self, commit: LogCommit) -> None:
        self._set_epoch(max(self.epoch, commit.epoch))
        self._set_last(commit)
        self.written_ms = commit.timestamp_ms

    def _write_mark(self, mark: Mark) -> None:
        """Note how far the log was before: the flush of a commit makes the one before durable."""
        durable, self._durable = self._durable or mark, mark
        super()._write_mark(durable)

    def _take_epoch(self, epoch: int) -> None:
        """Note the epoch of a claim, and the place in the store."""

        def put(txn: Transaction) -> None:
            txn.put(EPOCH_KEY, OFFSET.pack(epoch), db=self._tables.meta)
            txn.put(POSITION_KEY, self._position.mark, db=self._tables.meta)

        self._write(put)
        self._set_epoch(epoch)

    def close(self) -> None:
        """Release the copy, and close the store; a second time does nothing."""
        super().close()
        self._store.close()


def _with_beats(frames: Iterable[_F], beat: Callable[[], object]) -> Iterator[_F]:
    """Yield frames, and beat now and then."""
    due = time.monotonic() + BEAT_SECONDS
    for each in frames:
        yield each
        if time.monotonic() > due:
            beat()
            due = time.monotonic() + BEAT_SECONDS
