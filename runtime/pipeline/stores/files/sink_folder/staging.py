"""Staging folders and file names: files of a batch are staged until the batch is committed.

Staging lies in the sink's own root, so that a rename publishes a file atomically. Final names
depend only on the commit id, the claim and the part's number, so that any process can publish a
batch, repeat a publication, or complete one.

Staged files and their folders are fsynced before the commit (DATA_PLANE §4).
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from ......events.commits import CommitId
from ......events.log.files import sync_path
from ......events.model import Resource, Token
from ...staging import batch_path, escape_name, folders_up_to, make_folder, task_of

STAGING = "_fairlead/staging"
ATTEMPTS = "_temporary"
"""The folder within that of a batch where attempts of tasks write what may not count."""
_OF_SPARK = f"{ATTEMPTS}/0/_temporary"
"""Hadoop's committer has its task folders here, below the folder of the job."""
_PART = re.compile(r"part-(?P<number>\d+)-[0-9a-f-]{36}(?P<rest>.*)", re.DOTALL)


def batch_folder(commit_id: CommitId) -> str:
    """Return the staging folder of a batch, relative to the sink's root."""
    return f"{STAGING}/{batch_path(commit_id)}"


def data_files(folder: Path) -> Iterator[Path]:
    """Yield the data files in a folder, relative to it, in order."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each != ATTEMPTS)
        inside = Path(here).relative_to(folder)
        yield from (inside / name for name in sorted(names) if _PART.fullmatch(name))


def part_numbers(folder: Path) -> frozenset[int]:
    """Return the numbers of the parts that have files in a folder, which are not empty."""
    files = (each for each in data_files(folder) if (folder / each).stat().st_size)
    found = (_PART.fullmatch(each.name) for each in files)
    return frozenset(int(each["number"]) for each in found if each)


def make_durable(root: Path, folder: Path) -> None:
    """Fsync a staged batch, and every folder between it and the root."""
    for here, _, names in os.walk(folder):
        for name in names:
            if _PART.fullmatch(name):
                sync_path(Path(here, name))
        sync_path(Path(here))
    for above in folder.parents:
        sync_path(above)
        if above == root:
            return


def make_batch_folder(folder: Path) -> None:
    """Create an empty folder for a batch, with the working folders of Spark's committer.

    Spark would start a process to change the mode of each of them, which takes longer than writing
    a small batch.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / _OF_SPARK).mkdir(parents=True)


def make_empty_folder(folder: Path) -> None:
    """Create an empty folder for a batch that this process writes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def batch_prefix(commit_id: CommitId) -> str:
    """Return the beginning of the final names of a batch's files, unique to the batch.

    It begins with `part-`, since readers ignore names that begin with a dot or an underscore, as a
    connector's name may.
    """
    return f"part-{escape_name(task_of(commit_id))}-{commit_id.token}-{commit_id.batch:06d}-"


def final_name(commit_id: CommitId, part: str, claim: str = "") -> str:
    """Return the final name of a staged part: task, batch, claim and part number.

    A log and its copy may give the same commit id, but not the same claim.
    """
    match = _PART.fullmatch(part)
    if not match:
        raise ValueError(f"not a part file of Spark: {part}")
    by = f"{claim}-" if claim else ""
    return f"{batch_prefix(commit_id)}{by}{match['number']}{match['rest']}"


def final_path(commit_id: CommitId, part: Path, claim: str = "") -> Path:
    """Return the final path, relative to the root, of a path relative to the staging folder."""
    return part.with_name(final_name(commit_id, part.name, claim))


def discard(root: Path, commit_id: CommitId) -> None:
    """Remove the staged files of a batch that will not be committed."""
    folder = root / batch_folder(commit_id)
    shutil.rmtree(folder, ignore_errors=True)
    _remove_empty_parents(folder, root)


def sweep(root: Path, resource: Resource, token: Token) -> None:
    """Remove all that a task staged under this token and older ones.

    Call it only when all committed batches are published: between two batches of the task's owner,
    or when these tokens have no owner any more.
    """
    for folder in folders_up_to(root / STAGING / escape_name(resource), token):
        shutil.rmtree(folder, ignore_errors=True)
        _remove_empty_parents(folder, root)


def remove_emptied(staged: Path, root: Path) -> None:
    """Remove a batch's staging folder, but never a data file; safe with concurrent publishers."""
    for here, _, names in os.walk(staged, topdown=False):
        with suppress(OSError):
            for name in names:
                if not _PART.fullmatch(name):
                    Path(here, name).unlink()
            Path(here).rmdir()
    _remove_empty_parents(staged, root)


def _remove_empty_parents(folder: Path, root: Path) -> None:
    """Remove the token's and the task's folder if they are empty."""
    with suppress(OSError):
        for above in folder.parents:
            if above.parent == root / STAGING.partition("/")[0] or above == root:
                return
            above.rmdir()


def replace_durably(path: Path, fields: Mapping[str, object]) -> None:
    """Replace a JSON file atomically and durably."""
    write_beside(path, fields).replace(path)
    sync_path(path.parent)


def write_beside(path: Path, fields: Mapping[str, object]) -> Path:
    """Write a JSON file durably under a temporary name beside its path; return that path."""
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{token_hex(4)}.new")
    try:
        temporary.write_text(json.dumps(fields))
        sync_path(temporary)
    except OSError:  # on a full disk each attempt would leave one
        with suppress(OSError):
            temporary.unlink()
        raise
    return temporary
