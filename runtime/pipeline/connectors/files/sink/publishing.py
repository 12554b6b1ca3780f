"""A committed batch is published when every file that its manifest names is in place.

Staged files are moved, and files that are in place already are checked: a batch may be published
again, after a publisher that died half-way, or beside another one. Before anything is moved, each
file must be where one of these would have it, with the bytes that it had when the batch counted.
The folders that took files in are fsynced before anybody says that the batch is published, since
after that nobody looks at its staging again (DATA_PLANE §5).
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ......events.commits import CommitId, Manifest, Part
from ....spi.errors import SinkBroken
from ...naming import describe_batch, describe_parts
from .staging import (
    STAGING,
    batch_prefix,
    data_files,
    final_path,
    make_folder,
    remove_emptied,
    sync,
)

RowsOf = Callable[[Path], int]
"""How many rows a file says it holds; -1 if it does not say."""


class PartsMissing(SinkBroken):
    """Files of a batch that counts are nowhere."""


def say_nothing_of_rows(file: Path) -> int:
    """Stand for a format whose files do not tell how many rows they hold."""
    del file
    return -1


def parts_of(
    root: Path, manifest: Manifest, commit_id: CommitId, rows_of: RowsOf
) -> tuple[Part, ...]:
    """Return what is staged of a batch, by the paths that it will have."""
    staged = root / manifest.staging
    return tuple(
        Part(
            str(final_path(commit_id, file, manifest.claim)),
            (staged / file).stat().st_size,
            rows_of(staged / file),
        )
        for file in data_files(staged)
    )


def publish(
    root: Path, manifest: Manifest, commit_id: CommitId, rows_of: RowsOf = say_nothing_of_rows
) -> None:
    """Put a committed batch in place, durably, below a root as it is reached now.

    Raises `PartsMissing` if a file of it is nowhere, `SinkBroken` if one is not what it was, or
    if there is another in its place; then nothing was moved.
    """
    _publish(root, manifest, commit_id, rows_of, gives_up=False)


def publish_what_is_left(
    root: Path, manifest: Manifest, commit_id: CommitId, rows_of: RowsOf = say_nothing_of_rows
) -> None:
    """Put in place what there is of a batch, once somebody has given up the rest."""
    _publish(root, manifest, commit_id, rows_of, gives_up=True)


def _publish(
    root: Path, manifest: Manifest, commit_id: CommitId, rows_of: RowsOf, *, gives_up: bool
) -> None:
    if not manifest.files:
        return
    staged = root / manifest.staging
    found = {
        str(final_path(commit_id, file, manifest.claim)): staged / file
        for file in data_files(staged)
    }
    batch = _Publication(root, manifest, commit_id, rows_of)
    parts = manifest.parts or batch.unnamed(found, gives_up=gives_up)
    if not gives_up:
        batch.refuse_missing([each for each in parts if each.path not in found])
    present = [each for each in parts if each.path in found]
    for part in present:
        batch.check_staged(part, found[part.path])
    for part in present:
        batch.move(part, found[part.path])
    for home in filter(Path.is_dir, {(root / each.path).parent for each in parts}):
        sync(home)
    remove_emptied(staged, root)


class _Publication:
    """A batch that is being published, and how its files are told of."""

    def __init__(
        self, root: Path, manifest: Manifest, commit_id: CommitId, rows_of: RowsOf
    ) -> None:
        self._root = root
        self._manifest = manifest
        self._commit_id = commit_id
        self._rows_of = rows_of

    def refuse_missing(self, parts: Sequence[Part]) -> None:
        """Raise unless these files are in place, as they were staged."""
        missing = [each for each in parts if not self._is_in_place(each)]
        if missing:
            raise PartsMissing(
                f"{self._told}: {len(missing)} of its {self._manifest.files} files are neither "
                f"staged in {self._manifest.root}/{self._manifest.staging} nor in place: "
                f"{describe_parts(missing)}"
            )

    def check_staged(self, part: Part, staged: Path) -> None:
        """Raise if a staged file is not what it was, or another has its place."""
        home = self._root / part.path
        # In this order: a file that was moved by another publisher is no longer staged.
        if home.exists() and staged.exists():
            raise SinkBroken(
                f"{self._told}: {self._real(home)} is there already, and is not what "
                f"{self._real(staged)} is: both are kept; move the first one out of the folder"
            )
        with suppress(FileNotFoundError):
            size = staged.stat().st_size
            if size != part.bytes:
                raise SinkBroken(
                    f"{self._told}: {self._real(staged)} has {size} bytes, and had {part.bytes} "
                    "when it was written: bring it back as it was"
                )

    def move(self, part: Part, staged: Path) -> None:
        """Rename a staged file into place, unless another publisher was faster."""
        home = self._root / part.path
        make_folder(home.parent)
        try:
            staged.rename(home)
        except FileNotFoundError:
            self.refuse_missing([part])

    def unnamed(self, staged: dict[str, Path], *, gives_up: bool) -> Sequence[Part]:
        """Return the files of a batch that was committed before manifests named them."""
        prefix = batch_prefix(self._commit_id)
        sizes = {path: _size(file) for path, file in staged.items()}
        for path in _published(self._root, prefix):
            if sizes.get(str(path), -1) < 0:
                sizes[str(path)] = _size(self._root / path)
        parts = [Part(path, size) for path, size in sizes.items()]
        manifest, size = self._manifest, sum(each.bytes for each in parts)
        if not gives_up and (len(parts), size) != (manifest.files, manifest.bytes):
            raise PartsMissing(
                f"{self._told}: of its {manifest.files} files with {manifest.bytes} bytes there "
                f"are {len(parts)} with {size}, staged in "
                f"{manifest.root}/{manifest.staging} or in place as {prefix}*"
            )
        return parts

    def _is_in_place(self, part: Part) -> bool:
        home = self._root / part.path
        try:
            if home.stat().st_size != part.bytes:
                raise self._other(part)
        except (FileNotFoundError, NotADirectoryError):
            return False
        if part.rows >= 0:
            try:
                rows = self._rows_of(home)
            except (OSError, ValueError):
                raise self._other(part) from None
            if rows not in {part.rows, -1}:
                raise self._other(part)
        return True

    def _other(self, part: Part) -> SinkBroken:
        return SinkBroken(
            f"{self._told}: {self._manifest.root}/{part.path} is not the file that was written "
            f"for it ({part.bytes} bytes): move it out of the folder, and bring that one back"
        )

    @property
    def _told(self) -> str:
        return f"{describe_batch(self._commit_id, self._manifest)} counts but is not published"

    def _real(self, path: Path) -> str:
        return f"{self._manifest.root}/{path.relative_to(self._root)}"


def _size(file: Path) -> int:
    """Return a file's size, -1 if another publisher has just moved it."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return -1


def _published(root: Path, prefix: str) -> Iterator[Path]:
    """Yield the files in place whose names begin so, relative to the root."""
    # Not by rglob: it fails when another publisher removes a folder of the staging meanwhile.
    for here, folders, names in os.walk(root):
        inside = Path(here).relative_to(root)
        folders[:] = [each for each in folders if inside / each != Path(STAGING)]
        yield from (inside / name for name in names if name.startswith(prefix))
