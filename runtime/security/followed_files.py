"""Files that say who may do what: no other user may change them, or read them if they are secret.

They have users, rules, keys and certificates. Each is opened at once whatever it is, and read again
when it has changed; what was read of it well stays in force until the next good version.
"""

import fcntl
import logging
import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Generic, TypeVar

LOGGER = logging.getLogger(__name__)
LONGEST: Final = 16 << 20
"""The largest file that is read, in bytes."""
ROOT: Final = 0
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_OPEN: Final = stat.S_IRWXG | stat.S_IRWXO
_OTHERS_OPEN_OF_ROOT: Final = stat.S_IWGRP | stat.S_IXGRP | stat.S_IRWXO
"""A secret of root may be readable by the group of the node, as Kubernetes and systemd have it."""

Content = TypeVar("Content")


class FileRefused(Exception):  # noqa: N818  # says what happened
    """A file cannot be used; the text names it, and says what to do."""


class FileMissing(FileRefused):
    """There is no such file."""


def read_owned(path: Path, *, is_secret: bool) -> bytes:
    """Return the content of a file that no other user may change, or read if it is secret.

    Who may is judged as PostgreSQL judges private keys. Raises `FileRefused`.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            content = file.read(LONGEST + 1) if stat.S_ISREG(status.st_mode) else b""
    except FileNotFoundError:
        raise FileMissing(f"{path} cannot be read: there is no such file") from None
    except OSError as error:
        raise FileRefused(f"{path} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode) or len(content) > LONGEST:
        raise FileRefused(f"{path} is no file of at most {LONGEST >> 20} MiB")
    _refuse_open_to_others(path, status, is_secret=is_secret)
    return content


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; a pipe without a writer would make it wait."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _refuse_open_to_others(path: Path, status: os.stat_result, *, is_secret: bool) -> None:
    mode = f"(mode {stat.S_IMODE(status.st_mode):03o})"
    if not is_secret:
        if status.st_mode & _OTHERS_WRITE:
            raise FileRefused(f"other users may change {path} {mode}: chmod go-w {path}")
        return
    if status.st_uid not in {ROOT, os.geteuid()}:
        raise FileRefused(
            f"{path} belongs to another user (uid {status.st_uid}): chown {os.geteuid()} {path}"
        )
    if status.st_mode & (_OTHERS_OPEN_OF_ROOT if status.st_uid == ROOT else _OTHERS_OPEN):
        raise FileRefused(f"other users may read or change {path} {mode}: chmod 600 {path}")


def parse_owned(
    path: Path,
    parse: Callable[[str], Content],
    *,
    is_secret: bool = False,
    missing: Content | None = None,
) -> Content:
    """Return what `parse` makes of such a file; it raises `ValueError`. Raises `FileRefused`.

    `missing` is for a file that is not there; None: it has to be.
    """
    try:
        return parse(read_owned(path, is_secret=is_secret).decode())
    except FileMissing:
        if missing is None:
            raise
        return missing
    except UnicodeDecodeError:
        raise FileRefused(f"{path} is not UTF-8") from None
    except ValueError as error:
        raise FileRefused(f"{path}: {error}") from None


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Lock a file that is replaced as a whole, by a file beside it, for the context.

    Raises `OSError`.
    """
    lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


class FollowedFiles(Generic[Content]):
    """The content of some files, as of the last time when they could be used."""

    def __init__(
        self,
        paths: Sequence[Path],
        read: Callable[[], Content],
        at_first: Content | None = None,
    ) -> None:
        """Read them; `read` raises `FileRefused`.

        `at_first` counts until they can be used; they are read when they are first needed. Without
        it they have to be usable now.
        """
        self._paths, self._read = paths, read
        self._versions: list[tuple[int, ...]] | None = None
        """The files as they were read last, well or not; None: never."""
        self._in_force = "it counts for nothing"
        """What the log says of files that cannot be used: what counts instead."""
        if at_first is None:
            self._versions = self._look()
            self._take_over()
        else:
            self.content = at_first

    def current(self) -> Content:
        """Return what counts now; another object only if the files have changed."""
        self.refresh()
        return self.content

    def refresh(self) -> bool:
        """Read the files again if they have changed; return whether there is new content.

        Files that cannot be used are logged once, and the previous content stays.
        """
        versions = self._look()
        if versions == self._versions:
            return False
        self._versions = versions
        try:
            self._take_over()
        except FileRefused as refused:
            LOGGER.warning("%s; %s until it changes again", refused, self._in_force)
            return False
        LOGGER.info("read again: %s", ", ".join(map(str, self._paths)))
        return True

    def _take_over(self) -> None:
        self.content = self._read()
        self._in_force = "what it said before stays in force"

    def _look(self) -> list[tuple[int, ...]]:
        return [_version_of(path) for path in self._paths]


def _version_of(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is written or replaced; nothing if it is not there."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode, status.st_ctime_ns
