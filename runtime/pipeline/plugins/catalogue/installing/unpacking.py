"""Copies what makes a plugin into a new folder: a folder, a jar, a zip or a tar.gz.

An archive is not trusted, even if its checksum is right. It is told by its first bytes, not by its
name. Each entry must have a relative name that stays inside, and be a file, a folder, or a link to
a file of the same archive, of which a copy is made: the new folder holds no link. What an archive
says of its size is not believed either: bytes are counted as they are written. Files are readable
by their owner only.
"""

import gzip
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Final, cast

from .refusals import PluginRefused

MOST_BYTES: Final = 2 << 30
"""How many bytes one plugin may have, unpacked."""
MOST_ENTRIES: Final = 20_000
"""How many files and folders one plugin may have."""
MOST_LEVELS: Final = 16
"""How deep a file may lie in a plugin."""
_PIECE: Final = 1 << 20
_ZIP: Final = b"PK"
_GZIP: Final = b"\x1f\x8b"
_DAMAGED: Final = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    gzip.BadGzipFile,
    NotImplementedError,  # a compression that Python does not know
    RuntimeError,  # an encrypted zip
)


@dataclass(slots=True)
class PluginFolder:
    """A new folder that fills up to a maximum."""

    path: Path
    bytes_left: int = field(default_factory=lambda: MOST_BYTES)
    entries_left: int = field(default_factory=lambda: MOST_ENTRIES)

    def write(self, name: str, source: IO[bytes]) -> None:
        """Write a file below the folder; raises `PluginRefused`, `OSError`."""
        target = self.place(name)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            while piece := source.read(_PIECE):
                self.bytes_left -= len(piece)
                if self.bytes_left < 0:
                    raise PluginRefused(f"it unpacks to more than {MOST_BYTES >> 20} MiB")
                file.write(piece)

    def make(self, name: str) -> None:
        """Make a folder below the folder; raises `PluginRefused`, `OSError`."""
        self.place(name).mkdir(mode=0o700, parents=True, exist_ok=True)

    def copy(self, name: str, of: str) -> None:
        """Write a copy of one of the files; raises `PluginRefused`, `OSError`."""
        source = self.path / of
        if not source.is_file():
            raise PluginRefused(f"{name!r} is a link to {of!r}, which is no file of it")
        with source.open("rb") as opened:
            self.write(name, opened)

    def place(self, name: str) -> Path:
        """Return where a name lies below the folder, and count it; raises `PluginRefused`."""
        self.entries_left -= 1
        if self.entries_left < 0:
            raise PluginRefused(f"it has more than {MOST_ENTRIES:,} files and folders")
        return self.path / _check_name(name)


def _check_name(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    is_odd = not name.isprintable() or "\\" in name
    if is_odd or path.is_absolute() or ".." in path.parts or not path.parts:
        raise PluginRefused(f"{name!r} in it is no name of a file inside it")
    if len(path.parts) > MOST_LEVELS:
        raise PluginRefused(f"{name!r} in it lies deeper than {MOST_LEVELS} folders")
    return path


def unpack(source: IO[bytes], folder: PluginFolder) -> None:
    """Write what a zip or a tar.gz holds into a new folder.

    Raises `PluginRefused` without the name of the archive, `OSError`.
    """
    start = source.read(2)
    source.seek(0)
    with _refusing_damage():
        if start == _ZIP:
            _unpack_zip(source, folder)
        elif start == _GZIP:
            _unpack_tar(source, folder)
        else:
            raise PluginRefused("it is neither a zip nor a tar.gz")


@contextmanager
def _refusing_damage() -> Generator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise PluginRefused(f"it is damaged ({error}): fetch it again") from None
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise PluginRefused(f"it has a name twice: {Path(error.filename).name}") from None


def _unpack_zip(source: IO[bytes], folder: PluginFolder) -> None:
    with zipfile.ZipFile(source) as archive:
        for entry in archive.infolist():
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if entry.is_dir():
                _make_unless_top(folder, entry.filename)
            elif kind in {0, stat.S_IFREG}:  # 0: made where there are no modes
                with archive.open(entry) as opened:
                    folder.write(entry.filename, opened)
            else:
                raise PluginRefused(f"{entry.filename!r} in it is a link or a device")


def _unpack_tar(source: IO[bytes], folder: PluginFolder) -> None:
    links: list[tuple[str, str]] = []
    with (
        gzip.open(source) as unzipped,
        tarfile.open(fileobj=unzipped, mode="r|") as archive,  # it reads forwards only
    ):
        for entry in archive:
            if entry.isdir():
                _make_unless_top(folder, entry.name)
            elif entry.isreg():
                folder.write(entry.name, cast("IO[bytes]", archive.extractfile(entry)))
            elif entry.issym():
                links.append((entry.name, _target_of(entry)))
            elif entry.islnk():
                links.append((entry.name, entry.linkname))
            else:
                raise PluginRefused(f"{entry.name!r} in it is a device or a pipe")
    for name, target in links:  # a link may stand before its file
        folder.copy(name, str(_check_name(target)))


def _make_unless_top(folder: PluginFolder, name: str) -> None:
    if PurePosixPath(name).parts:  # not `./`
        folder.make(name)


def _target_of(entry: tarfile.TarInfo) -> str:
    """Return the name in the archive that a symbolic link leads to."""
    if entry.linkname.startswith("/"):
        return entry.linkname
    return os.path.normpath(PurePosixPath(entry.name).parent / entry.linkname)


def copy_folder(source: Path, folder: PluginFolder) -> None:
    """Copy the files of a folder into a new one; raises `PluginRefused`, `OSError`."""
    root = source.resolve()
    for place, folders, files in os.walk(root):
        for name in folders:
            if Path(place, name).is_symlink():
                raise PluginRefused(f"{Path(place, name)} is a link to a folder: replace it by it")
        for name in files:
            path = Path(place, name)
            if not path.resolve().is_relative_to(root):
                raise PluginRefused(f"{path} is a link that leads out of {source}: copy its file")
            if not path.is_file():
                raise PluginRefused(f"{path} is no plain file: remove it from there")
            with path.open("rb") as opened:
                folder.write(path.relative_to(root).as_posix(), opened)


def unwrap(folder: Path) -> None:
    """Move up what lies in a folder that is alone in `folder`, as most archives have one."""
    while (inside := [*folder.iterdir()]) and len(inside) == 1 and inside[0].is_dir():
        top = inside[0].rename(folder / ".unwrapped")
        for each in [*top.iterdir()]:
            shutil.move(each, folder / each.name)
        top.rmdir()
