"""Every state in which a power cut may leave a folder: what is done is recorded, and replayed.

What was written to a file is on the disk for sure once the file was fsynced, and a name once its
folder was. Nothing else is: after each step there are four states, with all or none of the names,
and with all or none of the bytes, that no fsync has made sure of. A file whose name is there and
whose bytes are not is empty. A rename is one step, as on all file systems with a journal: of a file
that was moved to another folder, the disk never has both names, and never none.
"""

import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from itertools import product
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

T = TypeVar("T")

STEPS = ("mkdir", "rename", "replace", "link", "unlink", "rmdir", "truncate", "pwrite")
"""What changes a folder, beside writing to a file, which is seen at the next step."""

Names = dict[int, dict[str, int]]
"""The inodes in each folder, by its own inode and by their names."""
Tree = tuple[tuple[str, int, bytes | None], ...]
"""Paths with their modes and bytes, None for a folder; a folder comes before what is in it."""


class PowerCuts(Generic[T]):
    """Records what is done within a `with`, and what was promised to others meanwhile."""

    def __init__(self, root: Path, promise: T, flushed: Collection[str] = ()) -> None:
        """Take a folder that exists, and names of files that are flushed behind Python's back."""
        self._root = root
        self._flushed = flushed
        self._promise = promise
        self._disk: tuple[Names, dict[int, bytes]] = ({}, {})
        self._kept: dict[int, int] = {}
        """Descriptors by inode, so that the number is not given to another file."""
        self._flushing: set[int] = set()
        self._states: dict[tuple[Tree, int], T] = {}
        self._promises = 0

    def __enter__(self) -> "PowerCuts[T]":
        names, contents = self._look()
        self._disk = ({each: dict(names[each]) for each in names}, dict(contents))
        self._patch = pytest.MonkeyPatch()
        for name in STEPS:
            self._patch.setattr(os, name, self._recorded(getattr(os, name)))
        self._fsync = os.fsync
        self._patch.setattr(os, "fsync", self._synced)
        self._note()
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()
        for each in self._kept.values():
            os.close(each)

    def promise(self, promise: T) -> None:
        """Note what holds from now on, whatever happens."""
        self._promise = promise
        self._promises += 1
        self._note()

    def replayed(self) -> Iterator[T]:
        """Put the folder into each state, one after the other, and yield what was promised then."""
        for (tree, _), promise in self._states.items():
            shutil.rmtree(self._root)
            self._root.mkdir()
            for path, mode, content in tree:
                place = self._root / path
                if content is None:
                    place.mkdir()
                else:
                    place.write_bytes(content)
                place.chmod(mode)
            yield promise

    def _recorded(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **named: Any) -> Any:
            done = real(*args, **named)
            self._note()
            return done

        return step

    def _synced(self, descriptor: int) -> None:
        self._fsync(descriptor)
        inode = os.fstat(descriptor).st_ino
        names, contents = self._look()
        if inode in names:
            self._sync_names(inode, names)
        if inode in contents:
            self._disk[1][inode] = contents[inode]
        self._note()

    def _sync_names(self, folder: int, names: Names) -> None:
        """Note that the names in a folder are on the disk, and so is the other end of a rename."""
        disk = self._disk[0]
        before, now = disk.get(folder, {}), names[folder]
        come, gone = {*now.values()} - {*before.values()}, {*before.values()} - {*now.values()}
        disk[folder] = dict(now)
        for other in names.keys() - {folder}:
            known = disk.setdefault(other, {})
            left = {name for name, each in known.items() if each in come}
            moved = {name: each for name, each in names[other].items() if each in gone}
            disk[other] = {name: known[name] for name in known.keys() - left} | moved

    def _look(self) -> tuple[Names, dict[int, bytes]]:
        """Return the names and bytes as a process sees them; keeps all inodes."""
        names: Names = {}
        contents: dict[int, bytes] = {}
        self._walk(self._root, names, contents)
        return names, contents

    def _walk(self, folder: Path, names: Names, contents: dict[int, bytes]) -> None:
        here = names[self._keep(folder)] = {}
        for each in sorted(folder.iterdir()):
            kind = each.lstat().st_mode
            if stat.S_ISDIR(kind):
                self._walk(each, names, contents)
                here[each.name] = each.stat().st_ino
            elif stat.S_ISREG(kind):
                here[each.name] = self._keep(each)
                contents[here[each.name]] = each.read_bytes()

    def _keep(self, path: Path) -> int:
        inode = path.stat().st_ino
        if inode not in self._kept:
            self._kept[inode] = os.open(path, os.O_RDONLY)
        if path.name in self._flushed:
            self._flushing.add(inode)
        return inode

    def _note(self) -> None:
        """Note the states that the disk may have now."""
        names, contents = self._look()
        on_disk, bytes_on_disk = self._disk
        for each in self._flushing & contents.keys():
            bytes_on_disk[each] = contents[each]
        both = (on_disk, names), (bytes_on_disk, {**bytes_on_disk, **contents})
        for some, others in product(*both):
            tree = tuple(self._tree(self._keep(self._root), "", some, others))
            self._states.setdefault((tree, self._promises), self._promise)

    def _tree(
        self, folder: int, path: str, names: Names, contents: dict[int, bytes]
    ) -> Iterator[tuple[str, int, bytes | None]]:
        for name, inode in sorted(names.get(folder, {}).items()):
            mode = os.fstat(self._kept[inode]).st_mode
            if stat.S_ISDIR(mode):
                yield f"{path}{name}", stat.S_IMODE(mode), None
                yield from self._tree(inode, f"{path}{name}/", names, contents)
            else:
                yield f"{path}{name}", stat.S_IMODE(mode), contents.get(inode, b"")
