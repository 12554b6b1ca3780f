"""Offsets of the files source: one for each file that was read.

A source partition is the folder and the path below it, so that another `source.path` means other
partitions. Its offset is the size and modification time of the file when it was read, or when a
user set the offset. A file with any offset is not read again.

Files are dealt out to tasks by hash buckets. A file's bucket depends only on its relative path.
Another number of tasks moves files between tasks, but offsets belong to files and are kept.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from os.path import normpath
from pathlib import Path, PurePosixPath
from typing import Final, Self

from ......events.commits import Document, Lag, identity
from ....spi.config import ConfigInvalid, ParsedConfig
from ....spi.errors import NotReady, OffsetRefused, SourceAway
from ....spi.offsets import Offsets, PartitionOffset, Seek, SeekEnd, check_members
from .. import keys
from .listing import SourceFile, matches_glob, stat_file, walk

_PARTITION: Final = {"root": str, "path": str}
_ROOTLESS: Final = {"path": str}
"""The partitions of older releases, which did not have the folder."""
_OFFSET: Final = {"size": int, "modified_ms": int}

BUCKETS: Final = 256
_TOLERANCE: Final = 0.05
"""How much the loads of tasks may differ."""

Share = frozenset[int]
"""The buckets of one task."""

EVERYTHING: Share = frozenset(range(BUCKETS))


@dataclass(frozen=True, slots=True)
class Folder:
    """A task's share of a source folder, and the lookup of its offsets.

    Older releases wrote offsets without the folder: `rootless` is the folder of these offsets;
    None: unknown.
    """

    root: Path
    glob: str
    share: Share
    min_age_ms: int = 0
    rootless: Path | None = None

    @classmethod
    def of(cls, settings: ParsedConfig, config: Mapping[str, str]) -> Self:
        """Return the share in a task config; raises `ConfigInvalid`."""
        text = settings.text(keys.TASK_BUCKETS)
        try:
            share = read_share(text) if text else EVERYTHING
        except ValueError as error:
            raise ConfigInvalid(f"{keys.TASK_BUCKETS}: {error}") from None
        root = settings.text(keys.SOURCE_PATH)
        rootless = config.get(keys.TASK_ROOTLESS, root)
        return cls(
            Path(root),
            settings.text(keys.SOURCE_GLOB),
            share,
            settings.number(keys.SOURCE_MIN_AGE_MS),
            Path(rootless) if rootless else None,
        )

    def offset(self, offsets: Mapping[str, Document], file: SourceFile) -> Document | None:
        """Return a file's offset; None: it was not read.

        An offset without a folder applies to files of `rootless`. If `rootless` is unknown, it
        applies to a file of exactly its size and time.
        """
        offset = offsets.get(identity(partition_of(self.root, file.path)))
        if offset is not None:
            return offset
        rootless = offsets.get(identity({"path": file.path}))
        if self.rootless is None:
            return rootless if rootless and dict(rootless) == offset_of(file) else None
        return rootless if normpath(self.rootless) == normpath(self.root) else None

    def has_offset(self, offsets: Mapping[str, Document]) -> bool:
        """Return whether any file of the folder was read, by offsets by their partitions' identity.

        It looks at all of them if there is none.
        """
        own = f",{identity({'root': normpath(self.root)})}"  # the last key of a partition
        takes_rootless = self.rootless is not None and normpath(self.rootless) == normpath(
            self.root
        )
        return any(
            each.endswith(own) or (takes_rootless and ",root=" not in each) for each in offsets
        )


def partition_of(root: Path, path: str) -> Document:
    """Return the source partition of a file; links in `root` are not resolved."""
    return {"root": normpath(root), "path": path}


def offset_of(file: SourceFile) -> dict[str, int]:
    """Return the offset of a file that was read in this state."""
    return {"size": file.size, "modified_ms": file.modified_ms}


def check_offset(root: Path, glob: str, partition: Document, offset: Document | None) -> None:
    """Raise `OffsetRefused` for an offset that no file of the folder can have.

    An offset to remove may belong to any file, also of another folder.
    """
    check_members("partition", partition, _PARTITION if "root" in partition else _ROOTLESS)
    if offset is None:
        return
    check_members("offset", offset, _OFFSET)
    for key, value in offset.items():
        if isinstance(value, int) and not 0 <= value < 1 << 63:
            raise OffsetRefused(f"offset.{key} is {value}: it must be 0 or more, below 2^63")
    folder, path = str(partition.get("root", normpath(root))), str(partition["path"])
    if folder != normpath(root):
        raise OffsetRefused(
            f"partition.root is {folder!r}, but the connector reads {normpath(root)}: an offset "
            "of another folder can only be removed"
        )
    parts = PurePosixPath(path).parts
    if "/".join(parts) != path or ".." in parts or not parts:
        raise OffsetRefused(f"partition.path is {path!r}: it must be a path relative to {folder}")
    if not matches_glob(path, glob):
        raise OffsetRefused(f"partition.path is {path!r}, which source.glob={glob} excludes")
    if root.is_dir() and stat_file(root, path) is None:
        raise OffsetRefused(f"partition.path is {path!r}: there is no such file in {folder}")


def seek(root: Path, glob: str, to: Seek, offsets: Offsets) -> Offsets:
    """Return the offsets to change so that files from modification time `to` on are read.

    EARLIEST means all files, LATEST only files that appear later. Raises `SourceAway`.
    """
    if to is SeekEnd.EARLIEST:
        own = (each for each, _ in offsets if each.get("root", normpath(root)) == normpath(root))
        return [PartitionOffset(each, None) for each in own]
    logged = {identity(partition): offset for partition, offset in offsets}
    return sorted(_changes(root, _there(root, glob), to, logged), key=lambda each: str(each[0]))


def lag_of(offsets: Offsets, latest: Offsets) -> Lag:
    """Return the files that are not read as they are now, and their bytes."""
    logged = {identity(partition): offset for partition, offset in offsets}
    unread = [each.offset for each in latest if logged.get(identity(each.partition)) != each.offset]
    return Lag(len(unread), sum(int(str(each["size"])) for each in unread if each))


def _changes(
    root: Path, files: Iterable[SourceFile], to: Seek, logged: Mapping[str, Document | None]
) -> Iterator[PartitionOffset]:
    """Yield the changed offsets of existing files."""
    until_ms = to.timestamp() * 1_000 if isinstance(to, datetime) else float("inf")
    for file in files:
        own, rootless = partition_of(root, file.path), {"path": file.path}
        if file.modified_ms >= until_ms:
            read = (each for each in (own, rootless) if identity(each) in logged)
            yield from (PartitionOffset(each, None) for each in read)
        elif logged.get(identity(own)) != offset_of(file):
            yield PartitionOffset(own, offset_of(file))


def _there(root: Path, glob: str) -> Sequence[SourceFile]:
    try:
        return list(walk(root, glob))
    except NotReady as missing:
        raise SourceAway(f"source.path: {missing}") from None


def bucket_of(path: str) -> int:
    """Return a file's bucket, the same on every machine and in every release."""
    return blake2b(path.encode(), digest_size=1).digest()[0]


def deal(paths: Iterable[str], tasks: int) -> Sequence[Share]:
    """Distribute all buckets over at most `BUCKETS` tasks, each with about as many files.

    It starts from a fixed distribution and moves as few buckets as possible until the loads differ
    by at most 5 %, if the buckets allow that: a few more files change little.
    """
    tasks = min(tasks, BUCKETS)
    files = Counter(map(bucket_of, paths))
    shares = [set(range(task, BUCKETS, tasks)) for task in range(tasks)]
    loads = [sum(files[bucket] for bucket in share) for share in shares]
    spread = max(1, int(_TOLERANCE * files.total() / tasks))
    while True:
        full = loads.index(max(loads))
        light = loads.index(min(loads))
        gap = loads[full] - loads[light]
        bucket = _best_move(files, shares[full], gap)
        if gap <= spread or bucket is None:
            return [frozenset(share) for share in shares]
        shares[full].remove(bucket)
        shares[light].add(bucket)
        loads[full] -= files[bucket]
        loads[light] += files[bucket]


def _best_move(files: Counter[int], share: set[int], gap: int) -> int | None:
    movable = [bucket for bucket in share if 0 < files[bucket] < gap]
    return min(movable, key=lambda each: (abs(gap - 2 * files[each]), each), default=None)


def spell(share: Share) -> str:
    """Return a share as text: `0-3,7`."""
    runs: list[list[int]] = []
    for bucket in sorted(share):
        if runs and runs[-1][-1] == bucket - 1:
            runs[-1][-1] = bucket
        else:
            runs.append([bucket, bucket])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def read_share(text: str) -> Share:
    """Parse a share; raises `ValueError`."""
    share: set[int] = set()
    for run in filter(None, text.split(",")):
        first, _, last = run.partition("-")
        share.update(range(int(first), int(last or first) + 1))
    if not share <= set(range(BUCKETS)):
        raise ValueError(f"no such bucket in {text!r}")
    return frozenset(share)
