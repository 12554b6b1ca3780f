"""Publication of a committed batch: moves each staged file of its manifest to its final path.

It is idempotent: a batch may be published again, after a crash of another publisher, or by two
publishers at once. Before the first move, each file must be either staged or published, with the
size in the manifest. The target folders are fsynced before the batch counts as published, since
after that its staging is not read again (DATA_PLANE §5).
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ......events.commits import CommitId, Manifest, Part
from ......events.log.files import sync_path
from ......events.model import Resource, Token
from ....batches.naming import describe_batch, describe_parts
from ....spi.errors import SinkBroken
from ...marks import PublishedBatch, is_ahead
from ...staging import escape_name, make_folder
from .staging import (
    STAGING,
    batch_prefix,
    data_files,
    final_path,
    remove_emptied,
)

RowsOf = Callable[[Path], int]
"""Reads the number of rows of a file; -1: unknown."""


class PartsMissing(SinkBroken):
    """Files of a committed batch are neither staged nor published."""


def unknown_row_count(file: Path) -> int:
    """Return -1: the format's files do not have their number of rows."""
    del file
    return -1


def parts_of(
    root: Path, manifest: Manifest, commit_id: CommitId, rows_of: RowsOf
) -> tuple[Part, ...]:
    """Return the staged files of a batch, with their final paths."""
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
    root: Path, manifest: Manifest, commit_id: CommitId, rows_of: RowsOf = unknown_row_count
) -> None:
    """Publish a committed batch, durably; `root` is the current path of the manifest's root.

    Raises `PartsMissing` if a file is missing, `SinkBroken` if a file differs from the manifest or
    another file has its path; nothing was moved then.
    """
    _publish(root, manifest, commit_id, rows_of, gives_up=False)


def publish_rest(
    root: Path, manifest: Manifest, commit_id: CommitId, rows_of: RowsOf = unknown_row_count
) -> None:
    """Publish the files of a batch that still exist, after a user has adopted the sink."""
    _publish(root, manifest, commit_id, rows_of, gives_up=True)


def _publish(
    root: Path, manifest: Manifest, commit_id: CommitId, rows_of: RowsOf, *, gives_up: bool
) -> None:
    if not manifest.files:
        return
    staged = root / manifest.staging
    files = {
        str(final_path(commit_id, file, manifest.claim)): staged / file
        for file in data_files(staged)
    }
    batch = _Publication(root, manifest, commit_id, rows_of)
    parts = manifest.parts or batch.find_parts(files, gives_up=gives_up)
    if not gives_up:
        batch.refuse_missing([each for each in parts if each.path not in files])
    present = [each for each in parts if each.path in files]
    for part in present:
        batch.check_staged(part, files[part.path])
    for part in present:
        batch.move(part, files[part.path])
    for home in filter(Path.is_dir, {(root / each.path).parent for each in parts}):
        sync_path(home)
    remove_emptied(staged, root)


def written_since(
    root: Path, task: Resource, last: CommitId | None, rows_of: RowsOf = unknown_row_count
) -> str:
    """Return how many files, and rows, of batches after a commit are published, for messages."""
    begin = re.escape(f"part-{escape_name(task)}-")
    shape = re.compile(rf"{begin}(?P<epoch>\d+)-(?P<generation>\d+)-(?P<batch>\d+)-", re.DOTALL)
    files, rows = 0, 0
    for here, folders, names in os.walk(root):
        folders[:] = [each for each in folders if each != STAGING.partition("/")[0]]
        for name in names:
            found = shape.match(name)
            if found is None:
                continue
            token = Token(int(found["epoch"]), int(found["generation"]))
            if is_ahead(PublishedBatch(token, int(found["batch"])), last):
                files += 1
                rows = -1 if rows < 0 else _and_rows(rows, Path(here, name), rows_of)
    return f"{files} files{f' with {rows} rows' if rows > 0 else ''}"


def _and_rows(rows: int, file: Path, rows_of: RowsOf) -> int:
    """Return the sum of rows with those of a file; -1: unknown."""
    try:
        more = rows_of(file)
    except Exception:  # noqa: BLE001  # it is only counted for a message
        return -1
    return rows + more if more >= 0 else -1


class _Publication:
    """The publication of one batch."""

    def __init__(
        self, root: Path, manifest: Manifest, commit_id: CommitId, rows_of: RowsOf
    ) -> None:
        self._root = root
        self._manifest = manifest
        self._commit_id = commit_id
        self._rows_of = rows_of

    def refuse_missing(self, parts: Sequence[Part]) -> None:
        """Raise `PartsMissing` unless these files are published."""
        missing = [each for each in parts if not self._is_in_place(each)]
        if missing:
            raise PartsMissing(
                f"{self._told}: {len(missing)} of its {self._manifest.files} files are neither "
                f"staged in {self._manifest.root}/{self._manifest.staging} nor published: "
                f"{describe_parts(missing)}"
            )

    def check_staged(self, part: Part, staged: Path) -> None:
        """Raise `SinkBroken` if a staged file has changed, or another file has its final path."""
        home = self._root / part.path
        # In this order: a file that was moved by another publisher is no longer staged.
        if home.exists() and staged.exists():
            raise SinkBroken(
                f"{self._told}: {self._real(home)} exists already, and differs from "
                f"{self._real(staged)}: both are kept; move the first one out of the folder"
            )
        with suppress(FileNotFoundError):
            size = staged.stat().st_size
            if size != part.bytes:
                raise SinkBroken(
                    f"{self._told}: {self._real(staged)} has {size} bytes, and had {part.bytes} "
                    "when it was written: restore it"
                )

    def move(self, part: Part, staged: Path) -> None:
        """Rename a staged file to its final path, unless another publisher was faster."""
        home = self._root / part.path
        make_folder(home.parent)
        try:
            staged.rename(home)
        except FileNotFoundError:
            self.refuse_missing([part])

    def find_parts(self, staged: dict[str, Path], *, gives_up: bool) -> Sequence[Part]:
        """Return the files of a batch whose manifest, of an older release, does not name them."""
        prefix = batch_prefix(self._commit_id)
        sizes = {path: _size(file) for path, file in staged.items()}
        for path in _published(self._root, prefix):
            if sizes.get(str(path), -1) < 0:
                sizes[str(path)] = _size(self._root / path)
        parts = [Part(path, size) for path, size in sizes.items()]
        manifest, size = self._manifest, sum(each.bytes for each in parts)
        if not gives_up and (len(parts), size) != (manifest.files, manifest.bytes):
            raise PartsMissing(
                f"{self._told}: of its {manifest.files} files with {manifest.bytes} bytes only "
                f"{len(parts)} with {size} bytes exist, staged in "
                f"{manifest.root}/{manifest.staging} or published as {prefix}*"
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
            f"{self._told}: {self._manifest.root}/{part.path} is not the file of the batch "
            f"({part.bytes} bytes): move it out of the folder, and restore the right one"
        )

    @property
    def _told(self) -> str:
        return f"{describe_batch(self._commit_id, self._manifest)} is committed but not published"

    def _real(self, path: Path) -> str:
        return f"{self._manifest.root}/{path.relative_to(self._root)}"


def _size(file: Path) -> int:
    """Return a file's size, -1 if another publisher has just moved it."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return -1


def _published(root: Path, prefix: str) -> Iterator[Path]:
    """Yield the published files whose names begin with a prefix, relative to the root."""
    # Not by rglob: it fails when another publisher removes a folder of the staging meanwhile.
    for here, folders, names in os.walk(root):
        inside = Path(here).relative_to(root)
        folders[:] = [each for each in folders if inside / each != Path(STAGING)]
        yield from (inside / name for name in names if name.startswith(prefix))
