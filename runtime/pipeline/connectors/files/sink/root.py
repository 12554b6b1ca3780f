"""The folder of a sink: how a connector comes to write to it, and what holds it open meanwhile.

The first start under a path makes the root and claims it: no other place makes one. After that the
claim is in the task configs, so in the log: a start that comes later, and finds no such root, waits
for it. The word `sink.adopt=true` takes a root as it is, whoever it belonged to and whatever has
become of it; it counts once, when it comes into the config, for task configs that have it are of a
connector that obeyed it.

Everything that is done goes through the descriptor of a folder whose marks were looked at: if
its mount goes away meanwhile, nothing is written beneath, and no missing folder is made anew,
neither by us nor by Spark, which makes whatever leads to the file that it writes.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from ....spi.config import ParsedConfig
from ....spi.context import Context
from ....spi.errors import BadInput, NotReady, RowsRefused, SinkAway, SinkBroken, SinkFull
from .. import keys
from . import marks
from .lost_texts import NULL_FOLDER
from .marks import SinkClaim
from .staging import make_folder

_WRITER_BYTES: Final = 4
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_AWAY: Final = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ESTALE,
        errno.EIO,
        errno.ENODEV,
        errno.ENXIO,
        errno.EROFS,
        errno.ENOTCONN,
        errno.EHOSTDOWN,
        errno.ETIMEDOUT,
    }
)
"""What a mount that went away, or lost its device, answers: it may come back by itself."""

_FULL_WORDS: Final = ("No space left on device", "Disk quota exceeded")
_LIKE_NULL: Final = f"""has the text {NULL_FOLDER}, and null beside it: both would be \
in one folder. Nothing of the batch was written: change the text by a transform"""
_NO_FOLDER: Final = "Mkdirs failed to create"
_LONGEST_NAME: Final = 255
"""Bytes that a name of a folder may have."""
_AWAY_WORDS: Final = ("Read-only file system", "Stale file handle", "Input/output error")


@dataclass(frozen=True, slots=True)
class SinkLocation:
    """Where a connector writes, and by what right; a claim of None is not looked at."""

    root: Path
    cluster: str
    connector: str
    claim: SinkClaim | None
    has_adopted: bool = False
    """Whether the config says `sink.adopt=true`, which counts once."""

    @property
    def adopting(self) -> str:
        """Say how the sink is adopted, as one would tell it to do so."""
        return (
            f"set {keys.SINK_ADOPT} to false and then to true again, since it counts once"
            if self.has_adopted
            else f"set {keys.SINK_ADOPT}=true"
        )


class FolderKeys(NamedTuple):
    """Which keys say where a folder is that is written to, and by what right."""

    path: str = keys.SINK_PATH
    claim: str = keys.TASK_CLAIM

    def place(self, context: Context, settings: ParsedConfig) -> SinkLocation:
        """Return where a task writes, as its config says it."""
        return SinkLocation(
            Path(settings.text(self.path)),
            context.cluster_id,
            context.resource.connector,
            SinkClaim.read(settings.text(self.claim)),
            settings.values.get(keys.SINK_ADOPT) is True,
        )

    def shared_task_config(self, context: Context, settings: ParsedConfig) -> Mapping[str, str]:
        """Return by what right tasks write; raises `NotReady`, and what `claim_sink` raises."""
        before = next(iter(context.split), None)
        name = context.resource.connector
        try:
            return {self.claim: str(claim_sink(settings, context.cluster_id, name, before, self))}
        except SinkAway as away:
            raise NotReady(str(away)) from None


def claim_sink(
    settings: ParsedConfig,
    cluster: str,
    connector: str,
    before: Mapping[str, str] | None,
    names: FolderKeys = FolderKeys(),  # noqa: B008  # an immutable value
) -> SinkClaim:
    """Return the claim that a connector's tasks write under, and make it if need be.

    `before` is a task config that is in force, if there is any. Raises `SinkAway` or
    `SinkBroken`, and has changed nothing then.
    """
    root, adopts = Path(settings.text(names.path)), settings.values.get(keys.SINK_ADOPT) is True
    is_known = before is not None and before.get(names.path) == str(root)
    had = SinkClaim.read(before.get(names.claim, "")) if before and is_known else None
    was_obeyed = had is not None and before is not None and _says_adopt(before)
    place = SinkLocation(root, cluster, connector, None, has_adopted=was_obeyed and adopts)
    if adopts and not was_obeyed:
        return _adopted(place)
    if had is not None:
        return had
    if is_known and not (root / "_fairlead").is_dir():
        raise SinkAway(
            f"{root}, which {connector} was started with before, is not there or has no "
            f"_fairlead: is it not mounted? If nothing was ever written to it, {place.adopting}"
        )
    return _claimed(place)


@dataclass(frozen=True, slots=True)
class OpenRoot:
    """A sink's root, open; `path` leads to it whatever happens to its name."""

    place: SinkLocation
    descriptor: int

    @property
    def path(self) -> Path:
        """A path by which this process and its children reach the folder itself."""
        return Path(f"/proc/{os.getpid()}/fd/{self.descriptor}")

    def still_is(self) -> bool:
        """Tell whether its name still leads here."""
        try:
            return os.path.samestat(self.place.root.stat(), os.fstat(self.descriptor))
        except OSError:
            return False


@contextmanager
def opened(place: SinkLocation) -> Generator[OpenRoot]:
    """Hold a root while something is done in it; raises `SinkAway` or `SinkBroken`.

    So does whatever goes wrong with its files meanwhile.
    """
    with translated(place.root):
        descriptor = os.open(place.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    root = OpenRoot(place, descriptor)
    try:
        with translated(place.root, str(root.path)):
            _check(root)
            yield root
    finally:
        os.close(descriptor)


@contextmanager
def translated(root: Path, alias: str = "") -> Generator[None]:
    """Tell errors of the file system by the root's own name, and by what can be done."""
    try:
        yield
    except ConnectionError:
        raise  # the JVM's, which is gone: it says nothing of the folder
    except OSError as error:
        raise _told(error, root, alias) from error


def told_by_spark(root: Path, text: str) -> SinkAway | BadInput | None:
    """Return what an error of a Spark job says about the sink's disk, None if nothing."""
    if NULL_FOLDER in text and "already exists" in text:
        return BadInput(f"a column of {keys.SINK_PARTITION_BY} {_LIKE_NULL}")
    names = text.split("/") if _NO_FOLDER in text else []
    if any(len(each.encode()) > _LONGEST_NAME or "\0" in each for each in names):
        why = "has a NUL, so it cannot" if "\0" in text else "is too long to"
        return RowsRefused(f"a value of `{keys.SINK_PARTITION_BY}` {why} name a folder")
    if any(each in text for each in _FULL_WORDS):
        return _full(root)
    found = next((each for each in _AWAY_WORDS if each in text), "")
    return SinkAway(f"{root}: {found.lower()}") if found else None


def _claimed(place: SinkLocation) -> SinkClaim:
    with _made(place.root) as folder:
        marks.write_owner(place.root, place.cluster, anew=False)
        owner = marks.read_owner(place.root)
        if owner != place.cluster:
            raise foreign(place, str(owner))
        before = marks.read_claim(place.root, place.connector)
        is_foreign = before is not None and before[0] != place.cluster
        writer = secrets.token_hex(_WRITER_BYTES)
        if before is None or is_foreign:
            where = (place.root, place.connector, place.cluster)
            marks.write_claim(*where, writer, anew=is_foreign)
        _, writer = marks.read_claim(place.root, place.connector) or ("", writer)
        return SinkClaim(writer, folder)


def _adopted(place: SinkLocation) -> SinkClaim:
    with _made(place.root) as folder:
        marks.write_owner(place.root, place.cluster, anew=True)
        writer = secrets.token_hex(_WRITER_BYTES)
        marks.write_claim(place.root, place.connector, place.cluster, writer, anew=True)
        return SinkClaim(writer, folder, is_adopted=True)


@contextmanager
def _made(root: Path) -> Generator[int]:
    """Make a root if there is none, and give its inode."""
    with translated(root):
        make_folder(root)
        yield root.stat().st_ino


def _says_adopt(config: Mapping[str, str]) -> bool:
    return config.get(keys.SINK_ADOPT, "").strip().lower() == "true"


def _check(root: OpenRoot) -> None:
    """Raise unless the marks in a root are those that its connector has left there."""
    place = root.place
    if place.claim is None:
        return
    owner = marks.read_owner(root.path)
    claimed = marks.read_claim(root.path, place.connector)
    if owner is None or claimed is None:
        raise _unmarked(root, place.claim)
    if owner != place.cluster:
        raise foreign(place, owner)
    if claimed != (place.cluster, place.claim.writer):
        raise SinkBroken(
            f"{place.root} was adopted for {place.connector} by another log than this one. "
            "Nothing was written or removed here since. Go on where it was adopted, or, to go on "
            f"here, {place.adopting}"
        )


def foreign(place: SinkLocation, owner: str) -> SinkBroken:
    """Return the refusal of a sink that another cluster writes to."""
    return SinkBroken(
        f"{place.root} belongs to another cluster: {marks.OWNER} names {owner}, and this one is "
        f"{place.cluster}. Nothing was written or removed. Choose another sink.path, or, once the "
        f"other cluster writes there no more, {place.adopting}"
    )


def _unmarked(root: OpenRoot, claim: SinkClaim) -> SinkAway | SinkBroken:
    """Tell a folder that lies under an absent mount from one whose marks were removed."""
    place = root.place
    if os.fstat(root.descriptor).st_ino == claim.folder:
        return SinkBroken(
            f"{place.root} has lost {marks.OWNER} or {marks.MARKS}, which it had when "
            f"{place.connector} began to write there. Nothing more is written. Bring _fairlead "
            f"back as it was, or, to take the folder as it is, {place.adopting}"
        )
    return SinkAway(
        f"{place.root} is not the folder that {place.connector} wrote to, since it has no "
        f"{marks.OWNER}: is it not mounted? It goes on once that is back; to go on with what is "
        f"there now, {place.adopting}"
    )


def _told(error: OSError, root: Path, alias: str) -> SinkAway | SinkBroken:
    where = str(error.filename or root)
    where = str(root) + where[len(alias) :] if alias and where.startswith(alias) else where
    if error.errno in _FULL:
        return _full(root)
    if error.errno == errno.ENOENT and where == str(root):
        return SinkAway(
            f"{root} is gone: it was there before, so it is not made anew; it goes on once it is "
            f"back, or mounted again, or with {keys.SINK_ADOPT}=true"
        )
    text = f"{where}: {(error.strerror or str(error)).lower()}"
    return SinkAway(text) if error.errno in _AWAY else SinkBroken(text)


def _full(root: Path) -> SinkFull:
    try:
        usage = shutil.disk_usage(root)
        room = f" ({usage.free >> 20} of {usage.total >> 20} MiB are free now)"
    except OSError:
        room = ""
    return SinkFull(
        f"no space left on the disk of {root}{room}; the batch is written again once there is"
    )
