"""The root folder of a sink: claiming it, and access through an open descriptor.

The first start of a connector with a path creates the root and claims it; nothing else creates it.
After that the claim is in the task configs, and so in the log: a later start that does not find the
root waits for it. `sink.adopt=true` claims a root in any state and of any owner. It takes effect
once: task configs that have it show that it was obeyed.

All access goes through the descriptor of a folder whose marks were checked. If its mount goes away,
nothing is written to the folder under the mount point, and Spark, which creates missing parent
folders, cannot create it again.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from ....spi.config import ParsedConfig
from ....spi.context import Context
from ....spi.errors import NotReady, SinkAway, SinkBroken, SinkFull
from ...staging import make_folder
from ...topics import depends_on_topic
from .. import keys
from . import marks
from .marks import SinkClaim

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
"""Errors of an unmounted folder or a lost device, which may come back."""


def root_of(path: str) -> Path:
    """Return the folder with `_fairlead`: what lies above a part of a path that names a topic."""
    parts = PurePath(path).parts
    return Path(*takewhile(lambda each: not depends_on_topic(each), parts))


@dataclass(frozen=True, slots=True)
class SinkLocation:
    """A connector's sink folder with its claim; a claim of None is not checked."""

    root: Path
    cluster: str
    connector: str
    claim: SinkClaim | None
    has_adopted: bool = False
    """Whether `sink.adopt=true` in the config has already taken effect."""

    @property
    def adopt_remedy(self) -> str:
        """Return the instruction for users to adopt the sink."""
        return (
            f"set {keys.SINK_ADOPT} to false and then to true again, since it takes effect once"
            if self.has_adopted
            else f"set {keys.SINK_ADOPT}=true"
        )


class FolderKeys(NamedTuple):
    """The keys of the path of a folder and of the claim on it."""

    path: str = keys.SINK_PATH
    claim: str = keys.TASK_CLAIM

    def place(self, context: Context, settings: ParsedConfig) -> SinkLocation:
        """Return a task's sink folder and claim, from its config."""
        return SinkLocation(
            root_of(settings.text(self.path)),
            context.cluster_id,
            context.resource.connector,
            SinkClaim.read(settings.text(self.claim)),
            settings.values.get(keys.SINK_ADOPT) is True,
        )

    def shared_task_config(self, context: Context, settings: ParsedConfig) -> Mapping[str, str]:
        """Claim the folder; return its key; raises `NotReady`, or as `claim_sink` does."""
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
    """Return the claim of a connector's tasks; make the folder and a claim if there is none.

    `before` is a task config in force, if there is one. Raises `SinkAway` or `SinkBroken`, and has
    changed nothing then.
    """
    root, adopts = root_of(settings.text(names.path)), settings.values.get(keys.SINK_ADOPT) is True
    is_known = before is not None and root_of(before.get(names.path, "")) == root
    had = SinkClaim.read(before.get(names.claim, "")) if before and is_known else None
    was_obeyed = had is not None and before is not None and _says_adopt(before)
    place = SinkLocation(root, cluster, connector, None, has_adopted=was_obeyed and adopts)
    if adopts and not was_obeyed:
        return _adopted(place)
    if had is not None:
        return had
    if is_known and not (root / "_fairlead").is_dir():
        raise SinkAway(
            f"{root}, which {connector} has used before, does not exist or has no _fairlead: is "
            f"it not mounted? If nothing was ever written to it, {place.adopt_remedy}"
        )
    return _claimed(place)


@dataclass(frozen=True, slots=True)
class OpenRoot:
    """The open root of a sink."""

    place: SinkLocation
    descriptor: int
    path: Path
    """The root's path through the descriptor, for this process and its children."""

    def is_current(self) -> bool:
        """Return whether the root's name still leads to this folder."""
        try:
            return os.path.samestat(self.place.root.stat(), os.fstat(self.descriptor))
        except OSError:
            return False


@contextmanager
def open_root(place: SinkLocation) -> Generator[OpenRoot]:
    """Open a root and check its marks; raises `SinkAway` or `SinkBroken`.

    `OSError`s within the context are translated to these, too.
    """
    with translate_errors(place.root):
        descriptor = os.open(place.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    root = OpenRoot(place, descriptor, Path(f"/proc/{os.getpid()}/fd/{descriptor}"))
    try:
        with translate_errors(place.root, str(root.path)):
            _check(root)
            yield root
    finally:
        os.close(descriptor)


@contextmanager
def translate_errors(root: Path, alias: str = "") -> Generator[None]:
    """Raise `OSError`s as `SinkAway` or `SinkBroken`, with the root's name instead of `alias`.

    A `SinkBroken` that names the alias gets the root's name, too.
    """
    try:
        yield
    except ConnectionError:
        raise  # of the JVM, not of the folder
    except SinkBroken as broken:
        if not alias or alias not in str(broken):
            raise
        raise SinkBroken(str(broken).replace(alias, str(root))) from None
    except OSError as error:
        raise _sink_error(error, root, alias) from error


def _claimed(place: SinkLocation) -> SinkClaim:
    with _made(place.root) as folder:
        marks.write_owner(place.root, place.cluster, replaces=False)
        owner = marks.read_owner(place.root)
        if owner != place.cluster:
            raise foreign_sink_error(place, str(owner))
        before = marks.read_claim(place.root, place.connector)
        is_foreign = before is not None and before[0] != place.cluster
        writer = secrets.token_hex(_WRITER_BYTES)
        if before is None or is_foreign:
            where = (place.root, place.connector, place.cluster)
            marks.write_claim(*where, writer, replaces=is_foreign)
        _, writer = marks.read_claim(place.root, place.connector) or ("", writer)
        return SinkClaim(writer, folder)


def _adopted(place: SinkLocation) -> SinkClaim:
    with _made(place.root) as folder:
        marks.write_owner(place.root, place.cluster, replaces=True)
        writer = secrets.token_hex(_WRITER_BYTES)
        marks.write_claim(place.root, place.connector, place.cluster, writer, replaces=True)
        return SinkClaim(writer, folder, is_adopted=True)


@contextmanager
def _made(root: Path) -> Generator[int]:
    """Create a root if it does not exist, and yield its inode."""
    with translate_errors(root):
        make_folder(root)
        yield root.stat().st_ino


def _says_adopt(config: Mapping[str, str]) -> bool:
    return config.get(keys.SINK_ADOPT, "").strip().lower() == "true"


def _check(root: OpenRoot) -> None:
    """Raise unless the marks in a root are those of the connector's claim."""
    place = root.place
    if place.claim is None:
        return
    owner = marks.read_owner(root.path)
    claimed = marks.read_claim(root.path, place.connector)
    if owner is None or claimed is None:
        raise _unmarked(root, place.claim)
    if owner != place.cluster:
        raise foreign_sink_error(place, owner)
    if claimed != (place.cluster, place.claim.writer):
        raise SinkBroken(
            f"{place.root} was adopted for {place.connector} from another log. This log has "
            "written and removed nothing since. Use the other log, or, to continue with this one, "
            f"{place.adopt_remedy}"
        )


def foreign_sink_error(place: SinkLocation, owner: str) -> SinkBroken:
    """Return the error for a sink of another cluster."""
    return SinkBroken(
        f"{place.root} belongs to another cluster: {marks.OWNER} names {owner}, and this one is "
        f"{place.cluster}. Nothing was written or removed. Choose another sink.path, or, if the "
        f"other cluster no longer writes there, {place.adopt_remedy}"
    )


def _unmarked(root: OpenRoot, claim: SinkClaim) -> SinkAway | SinkBroken:
    """Return the error for a root without marks; the inode tells whether a mount is missing."""
    place = root.place
    if os.fstat(root.descriptor).st_ino == claim.folder:
        return SinkBroken(
            f"{place.root} has lost {marks.OWNER} or {marks.MARKS}, which it had when "
            f"{place.connector} began to write there. Nothing more is written. Restore _fairlead, "
            f"or, to accept the folder without it, {place.adopt_remedy}"
        )
    return SinkAway(
        f"{place.root} is not the folder that {place.connector} wrote to, since it has no "
        f"{marks.OWNER}: is it not mounted? The task continues when it is mounted; to use the "
        f"present folder, {place.adopt_remedy}"
    )


def _sink_error(error: OSError, root: Path, alias: str) -> SinkAway | SinkBroken:
    where = str(error.filename or root)
    where = str(root) + where[len(alias) :] if alias and where.startswith(alias) else where
    if error.errno in _FULL:
        return sink_full(root)
    if error.errno == errno.ENOENT and where == str(root):
        return SinkAway(
            f"{root} is gone: it existed before, so it is not created again; the task continues "
            f"when it is back, or mounted again, or with {keys.SINK_ADOPT}=true"
        )
    text = f"{where}: {(error.strerror or str(error)).lower()}"
    return SinkAway(text) if error.errno in _AWAY else SinkBroken(text)


def sink_full(root: Path) -> SinkFull:
    """Return the error for a full disk of a sink, with its room."""
    try:
        usage = shutil.disk_usage(root)
        room = f" ({usage.free >> 20} of {usage.total >> 20} MiB are free now)"
    except OSError:
        room = ""
    return SinkFull(
        f"no space left on the disk of {root}{room}; the task retries the batch until there is"
    )
