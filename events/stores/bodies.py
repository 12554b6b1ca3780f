"""Commits and snapshots as the bytes that a store keeps.

The body of a commit is the msgpack array of the commit and its frames, both as they lie in a log
(LOG.md §2, §3): so a copy of the log is the same byte for byte, and its chain can be checked. The
body of a snapshot is the last commit before its end with the chain before that, the summary of what
the owner had trimmed, and the latest frame of each key, without tombstones.

Both tell how far another log was by then, in which a copy has to be so far before it has this: a
control log rests on the offset log beside it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from msgspec import MsgspecError
from msgspec.msgpack import Decoder, Encoder

from ..log.errors import CorruptLogError
from ..log.frame import LogCommit, pack_commit, unpack_commit
from .port import StoredCommit, StoreSnapshot

T = TypeVar("T")

_encode: Final = Encoder().encode
_decode_commit: Final = Decoder(tuple[bytes, list[bytes], int]).decode


class SnapshotContent(NamedTuple):
    """The beginning of a log as its latest frames."""

    commit: LogCommit
    """The last commit that it stands for."""
    chain_before: bytes
    """The chain before that commit."""
    summary: bytes | None
    """The sealed summary of what the owner had trimmed; None if there was none."""
    frames: Sequence[tuple[int, bytes]]
    """The latest frame of each key with its offset, in order of offsets."""
    rests_on: int = 0
    """The end of the other log by then."""


class CommitContent(NamedTuple):
    """A commit with its frames."""

    commit: LogCommit
    frames: Sequence[bytes]
    rests_on: int
    """The end of the other log by then."""


_Packed = tuple[int, bytes, bytes, bytes | None, list[tuple[int, bytes]], int]
_decode_snapshot: Final = Decoder(_Packed).decode


def pack_body(commit: LogCommit, frames: Sequence[bytes], rests_on: int) -> StoredCommit:
    """Return a commit as a store keeps it."""
    return StoredCommit(commit.base, commit.end, _encode((pack_commit(commit), frames, rests_on)))


def unpack_body(stored: StoredCommit) -> CommitContent:
    """Return the commit and its frames; raises `CorruptLogError` if they are damaged."""
    try:
        packed, frames, rests_on = _decode_commit(stored.body)
    except (MsgspecError, RecursionError) as error:
        raise _damaged(stored.base, error) from None
    commit = unpack_commit(stored.base, packed)
    if commit.end != stored.end or len(frames) != commit.length:
        raise _damaged(stored.base, f"it has {len(frames)} entries up to {stored.end}, {commit}")
    return CommitContent(commit, frames, rests_on)


def pack_snapshot(content: SnapshotContent) -> StoreSnapshot:
    """Return a snapshot as a store keeps it."""
    commit, chain, summary, frames, rests_on = content
    packed: _Packed = commit.base, pack_commit(commit), chain, summary, list(frames), rests_on
    return StoreSnapshot(commit.end, _encode(packed))


def unpack_snapshot(snapshot: StoreSnapshot) -> SnapshotContent:
    """Return the content of a snapshot; raises `CorruptLogError` if it is damaged."""
    try:
        base, packed, chain, summary, frames, rests_on = _decode_snapshot(snapshot.body)
    except (MsgspecError, RecursionError) as error:
        raise _damaged(snapshot.end, error) from None
    commit = unpack_commit(base, packed)
    if commit.end != snapshot.end:
        raise _damaged(snapshot.end, f"its last commit is {commit}")
    return SnapshotContent(commit, chain, summary, frames, rests_on)


def in_rounds(items: Sequence[T], size: Callable[[T], int], most: int) -> Iterator[Sequence[T]]:
    """Yield items in their order, at a time one or as many as have no more bytes than `most`."""
    begun = total = 0
    for at, each in enumerate(items):
        total += size(each)
        if at > begun and total > most:
            yield items[begun:at]
            begun, total = at, size(each)
    if items:
        yield items[begun:]


def _damaged(offset: int, why: object) -> CorruptLogError:
    return CorruptLogError(f"what the store has of offset {offset} is damaged: {why}")
