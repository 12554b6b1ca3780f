"""Reads a folder of connector files, as `apply -R` does, and notices when it has changed.

A folder may be a mounted ConfigMap, whose files are links that are swapped together, or a checkout.
Names that begin with a dot are passed over, at every depth. A file that is being written is not
read: a folder counts once two looks in a row have found it the same. Only changed files are read
again.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ...cli.output.printing import Failed
from ...cli.requests.files import read_connectors
from ...replies.folder import FileError

SUFFIXES: Final = frozenset({".json", ".yaml", ".yml", ".properties"})
FILES_MAX: Final = 10_000
BYTES_MAX: Final = 4 << 20
"""The largest file that is read."""

Config = Mapping[str, str]


class FileState(NamedTuple):
    """The marks of a file: one differs once it is changed, replaced, or linked elsewhere."""

    mtime_ns: int
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class FolderContent:
    """The connectors in a folder, and what could not be read of it."""

    files: int = 0
    configs: Mapping[str, Config] = field(default_factory=dict[str, Config])
    """The configs of connectors that one file has, and no other."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """The file of each connector, relative to the folder."""
    errors: tuple[FileError, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether what it does not have is gone for sure: it has files, and all were read."""
        return bool(self.configs) and not self.errors


class FolderMissing(Exception):  # noqa: N818  # says what happened
    """The folder is not there, or cannot be listed."""


class ConnectorFiles:
    """The files of one folder, as they were at the last look."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._states: dict[str, FileState] | None = None
        """The files at the last look; None: there was none, or the folder was missing."""
        self._read: dict[str, tuple[FileState, list[tuple[str, Config]] | str]] = {}
        """What each file held when it was read last, or why it could not be."""
        self._content = FolderContent()
        self._is_read = False
        """Whether the content is that of these files."""

    def look(self) -> FolderContent | None:
        """Return the content; None if the folder is just being changed.

        The same object as the last time if nothing has changed. Raises `FolderMissing`.
        """
        try:
            states = dict(self._list())
        except OSError as error:
            self._states, self._is_read = None, False
            raise FolderMissing(f"{self.folder}: {error.strerror or error}") from None
        if states != self._states:
            self._states, self._is_read = states, False
            return None
        if not self._is_read:
            self._content, self._is_read = self._read_all(states), True
        return self._content

    def _list(self) -> Iterator[tuple[str, FileState]]:
        """Yield the files by their path in the folder; raises `OSError`."""
        count = 0
        for base, folders, names in os.walk(self.folder, onerror=_raise):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            for name in sorted(names):
                path = Path(base, name)
                if name.startswith(".") or path.suffix not in SUFFIXES:
                    continue
                count += 1
                if count > FILES_MAX:
                    raise OSError(f"it has more than {FILES_MAX} files of connectors")
                yield str(path.relative_to(self.folder)), _state_of(path)

    def _read_all(self, states: Mapping[str, FileState]) -> FolderContent:
        self._read = {
            name: kept
            if (kept := self._read.get(name)) and kept[0] == state
            else (state, self._read_file(name, state))
            for name, state in states.items()
        }
        errors = [
            FileError(name, "", held)
            for name, (_, held) in self._read.items()
            if isinstance(held, str)
        ]
        configs: dict[str, Config] = {}
        origins: dict[str, list[str]] = {}
        for name, (_, held) in self._read.items():
            for connector, config in held if not isinstance(held, str) else ():
                configs[connector] = config
                origins.setdefault(connector, []).append(name)
        for connector, files in origins.items():
            if len(files) > 1:
                del configs[connector]
                told = f"{' and '.join(sorted(set(files)))} give connector {connector}"
                which = f"{told} {len(files)} times: it stays as it is; keep one of them"
                errors.append(FileError(files[0], connector, which))
        single = {name: files[0] for name, files in origins.items() if name in configs}
        return FolderContent(len(states), configs, single, tuple(errors))

    def _read_file(self, name: str, state: FileState) -> list[tuple[str, Config]] | str:
        """Return the connectors in a file, or what is wrong with it."""
        if state.size > BYTES_MAX:
            return f"{name} has {state.size} bytes, {BYTES_MAX} at most are read"
        try:
            return [*read_connectors(self.folder / name)]
        except Failed as error:
            return str(error)


def _raise(error: OSError) -> None:
    raise error


def _state_of(path: Path) -> FileState:
    """Return the state of a file; one that is just gone, or links to nothing, has none."""
    try:
        found = path.stat()
    except OSError:
        return FileState(0, 0, 0)
    return FileState(found.st_mtime_ns, found.st_size, found.st_ino)
