"""Columns that folders name, `dt=2026-01-05/`, as Hive, Spark and the files sink write them."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from ...spi.errors import BadInput


class FolderColumn(NamedTuple):
    """One column of a folder's name."""

    name: str
    part: str
    """The folder's name; Spark takes the column's value from it."""


def folder_columns(path: str) -> tuple[FolderColumn, ...]:
    """Return the columns that the folders of a relative path name, the outermost first.

    Raises `BadInput` for a folder without a name or a value, and for a name that comes twice.
    """
    columns: dict[str, FolderColumn] = {}
    for part in path.split("/")[:-1]:
        name, mark, value = part.partition("=")
        if not mark:
            continue
        name = unquote(name)
        if not name or not value or name.lower() in columns:
            raise BadInput(
                f"the folder {part!r} names no column with a value, or one that a folder above it "
                "names: rename it, or move the file"
            )
        columns[name.lower()] = FolderColumn(name, part)
    return tuple(columns.values())


def folder_names(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the names of all columns that folders of relative paths name, each once."""
    folders = dict.fromkeys(path.rpartition("/")[0] for path in paths)
    names: dict[str, str] = {}
    for folder in folders:
        try:
            columns = folder_columns(folder + "/")
        except BadInput:
            continue  # reading the file reports it
        for each in columns:
            names.setdefault(each.name.lower(), each.name)
    return tuple(names.values())


def folders_of(file: Path, root: Path | None) -> tuple[FolderColumn, ...]:
    """Return the columns that the folders of a file name; raises `BadInput`."""
    if root is None:
        return ()
    try:
        return folder_columns(file.relative_to(root).as_posix())
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None
