"""Staged files: written aside, and put in place by renames once their batch counts.

Staging lies in the sink's own root, so that a rename is all it takes: no reader ever sees part
of a file. Names are a function of the commit id and the part's number, so that anybody can
publish, again, or after somebody who died half-way, or at the same moment as another.

What is durable when: staged files and their folders are fsynced before the commit, since the
commit makes them real; the folders that took them in are fsynced before anybody says that the
batch is published, since after that nobody looks at its staging again.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote

from ...events.model import CommitId, Manifest, Resource, Token
from .spi import SinkBroken

STAGING = "_fairlead/staging"
_PART = re.compile(r"part-(?P<number>\d+)-[0-9a-f-]{36}(?P<rest>.*)", re.DOTALL)
_TOKEN = re.compile(r"(\d+)-(\d+)")
_LONGEST_NAME = 100


def batch_folder(commit_id: CommitId) -> str:
    """Return where a batch is staged, relative to the sink's root."""
    return f"{_task_folder(_resource(commit_id))}/{commit_id.token}/{commit_id.batch}"


def data_files(folder: Path) -> Iterator[Path]:
    """Yield the data files that Spark left in a folder, relative to it, in order."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each != "_temporary")
        inside = Path(here).relative_to(folder)
        yield from (inside / name for name in sorted(names) if _PART.fullmatch(name))


def make_durable(root: Path, folder: Path) -> None:
    """Flush a staged batch, and every folder between it and the root, to the disk."""
    for here, _, names in os.walk(folder):
        for name in names:
            if _PART.fullmatch(name):
                _sync(Path(here, name))
        _sync(Path(here))
    for above in folder.parents:
        _sync(above)
        if above == root:
            return


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they survive a crash of the machine."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


def publish(manifest: Manifest, commit_id: CommitId) -> None:
    """Put a committed batch in place, durably; idempotent, and safe beside other publishers.

    Raises `SinkBroken` if a file of another content has the name of one of the batch's, or if
    there is no such root any more: what lies in it may come back with it.
    """
    if not manifest.files:
        return
    root = Path(manifest.root)
    if not root.is_dir():
        raise SinkBroken(
            f"{root} is gone, and rows that count with it: bring it back as it was, "
            "or make it anew if they are not wanted"
        )
    staged = root / manifest.staging
    while files := list(data_files(staged)):
        touched: set[Path] = set()
        for file in files:
            home = root / file.parent
            make_folder(home)
            _move(staged / file, home / final_name(commit_id, file.name))
            touched.add(home)
        for home in touched:
            _sync(home)
    _remove_emptied(staged, root)


def final_name(commit_id: CommitId, part: str) -> str:
    """Return the name that a staged part gets: who wrote it, under which token, in which batch.

    It begins with `part-`, since readers overlook names that begin with a dot or an underscore,
    as a connector's may.
    """
    match = _PART.fullmatch(part)
    if not match:
        raise ValueError(f"not a part that Spark wrote: {part}")
    who = _escaped(_resource(commit_id))
    batch = f"{commit_id.token}-{commit_id.batch:06d}"
    return f"part-{who}-{batch}-{match['number']}{match['rest']}"


def discard(root: Path, commit_id: CommitId) -> None:
    """Remove what was staged for a batch that will not count."""
    folder = root / batch_folder(commit_id)
    shutil.rmtree(folder, ignore_errors=True)
    _remove_empty_parents(folder, root)


def sweep(root: Path, resource: Resource, token: Token) -> None:
    """Remove what a task staged under this token and all older ones.

    Only between two batches, by the task's present owner, or when nobody will own it under
    these tokens any more; and after whatever was committed is published.
    """
    folder = root / _task_folder(resource)
    with suppress(FileNotFoundError):
        for entry in list(folder.iterdir()):
            match = _TOKEN.fullmatch(entry.name)
            if match and Token(int(match[1]), int(match[2])) <= token:
                shutil.rmtree(entry, ignore_errors=True)
                _remove_empty_parents(entry, root)


def _resource(commit_id: CommitId) -> Resource:
    return Resource(commit_id.connector, commit_id.task)


def _task_folder(resource: Resource) -> str:
    return f"{STAGING}/{_escaped(resource)}"


def _escaped(resource: Resource) -> str:
    """Return a name for a resource that is fit for a folder, and that no other one has."""
    name = quote(resource.connector, safe=" ()+,;=@")
    if len(name) > _LONGEST_NAME:
        digest = blake2b(resource.connector.encode(), digest_size=8).hexdigest()
        name = f"{name[:_LONGEST_NAME]}~{digest}"
    return f"{name}-{resource.task}"


def _move(staged: Path, final: Path) -> None:
    # In this order: a file that was moved by another publisher is no longer staged.
    if final.exists() and staged.exists():
        raise SinkBroken(
            f"{final} is there already, and is not what {staged} is: "
            "both are kept; move one of them out of the sink's folder"
        )
    with suppress(FileNotFoundError):  # another publisher was faster
        staged.rename(final)


def _remove_emptied(staged: Path, root: Path) -> None:
    """Remove a batch's staging but not a data file in it, whatever happens beside us."""
    for here, _, names in os.walk(staged, topdown=False):
        with suppress(OSError):
            for name in names:
                if not _PART.fullmatch(name):
                    Path(here, name).unlink()
            Path(here).rmdir()
    _remove_empty_parents(staged, root)


def _remove_empty_parents(folder: Path, root: Path) -> None:
    """Remove the token's and the task's folder, if this was the last batch in them."""
    with suppress(OSError):
        for above in folder.parents:
            if above.parent == root / STAGING.partition("/")[0] or above == root:
                return
            above.rmdir()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
