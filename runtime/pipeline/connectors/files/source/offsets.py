"""What was read of a folder, as offsets: one for each file, set by tasks or by people.

A partition is a folder and a path below it, so that another `source.path` means other files. Its
offset is the size and the time of change that the file had when it was read, or was to count as
read: a file with an offset is not read again, whatever it says.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from os.path import normpath
from pathlib import Path, PurePosixPath
from typing import Final, Self

from ......events.commits import Document, identity
from ....spi.config import ConfigInvalid, ParsedConfig
from ....spi.errors import NotReady, OffsetRefused, SourceAway
from ....spi.offsets import Offsets, PartitionOffset, Seek, SeekEnd, check_members
from .. import keys
from .listing import SourceFile, fits, look, walk
from .shares import EVERYTHING, Share, read_share

_PARTITION: Final = {"root": str, "path": str}
_ROOTLESS: Final = {"path": str}
"""The form of releases that did not write the folder down."""
_OFFSET: Final = {"size": int, "modified_ms": int}


@dataclass(frozen=True, slots=True)
class Folder:
    """Which files of which folder are one task's, and what was read of them.

    Releases before this one wrote offsets without their folder: `rootless` is the folder that
    these belong to, None if that is not known.
    """

    root: Path
    glob: str
    share: Share
    min_age_ms: int = 0
    rootless: Path | None = None

    @classmethod
    def of(cls, settings: ParsedConfig, config: Mapping[str, str]) -> Self:
        """Return what a task config says; raises `ConfigInvalid`."""
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

    def offset(self, offsets: Mapping[str, Document], found: SourceFile) -> Document | None:
        """Return a file's offset, if it was read.

        One without a folder counts for files of the folder that it was written for. If nobody
        knows which that was, it counts for a file of the very size and time that it tells.
        """
        offset = offsets.get(identity(partition_of(self.root, found.path)))
        if offset is not None:
            return offset
        rootless = offsets.get(identity({"path": found.path}))
        if self.rootless is None:
            return rootless if rootless and dict(rootless) == offset_of(found) else None
        return rootless if normpath(self.rootless) == normpath(self.root) else None


def partition_of(root: Path, path: str) -> Document:
    """Return the source partition that a file is; its folder is taken as it is written."""
    return {"root": normpath(root), "path": path}


def offset_of(found: SourceFile) -> dict[str, int]:
    """Return the offset of a file that was read as it was found."""
    return {"size": found.size, "modified_ms": found.modified_ms}


def check_offset(root: Path, glob: str, partition: Document, offset: Document | None) -> None:
    """Raise `OffsetRefused` for an offset that no file of the folder can have.

    To take away, an offset may be of any file, also of a folder that was read before.
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
            f"partition.root is {folder!r}, and the connector reads {normpath(root)}: an offset "
            "of another folder can only be taken away"
        )
    parts = PurePosixPath(path).parts
    if "/".join(parts) != path or ".." in parts or not parts:
        raise OffsetRefused(f"partition.path is {path!r}: give it as it is below {folder}")
    if not fits(path, glob):
        raise OffsetRefused(f"partition.path is {path!r}, which source.glob, {glob}, leaves out")
    if root.is_dir() and look(root, path) is None:
        raise OffsetRefused(f"partition.path is {path!r}: there is no such file in {folder}")


def seek(root: Path, glob: str, to: Seek, offsets: Offsets) -> Offsets:
    """Return the offsets that change for files to be read from a time of change on.

    At the earliest that is all files, at the latest none that are there now. Raises `SourceAway`.
    """
    if to is SeekEnd.EARLIEST:
        own = (each for each, _ in offsets if each.get("root", normpath(root)) == normpath(root))
        return [PartitionOffset(each, None) for each in own]
    known = {identity(partition): offset for partition, offset in offsets}
    return sorted(_changes(root, _there(root, glob), to, known), key=lambda each: str(each[0]))


def _changes(
    root: Path, files: Iterable[SourceFile], to: Seek, known: Mapping[str, Document | None]
) -> Iterator[PartitionOffset]:
    """Yield what changes of files that are there."""
    until_ms = to.timestamp() * 1_000 if isinstance(to, datetime) else float("inf")
    for found in files:
        own, rootless = partition_of(root, found.path), {"path": found.path}
        if found.modified_ms >= until_ms:
            read = (each for each in (own, rootless) if identity(each) in known)
            yield from (PartitionOffset(each, None) for each in read)
        elif known.get(identity(own)) != offset_of(found):
            yield PartitionOffset(own, offset_of(found))


def _there(root: Path, glob: str) -> Sequence[SourceFile]:
    try:
        return list(walk(root, glob))
    except NotReady as missing:
        raise SourceAway(f"source.path: {missing}") from None
    except OSError as error:
        raise SourceAway(f"{error.filename}: {error.strerror}") from None
