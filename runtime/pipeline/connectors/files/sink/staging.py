"""Staged files: written aside, where no reader looks, until their batch counts.

Staging lies in the sink's own root, so that a rename publishes: no reader ever sees part of a
file. Final names are a function of the commit id, the claim and the part's number, so that
anybody can publish, again, or after somebody who died half-way, or beside another.

Staged files and their folders are fsynced before the commit, since the commit makes them real
(DATA_PLANE §4).
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from urllib.parse import quote

from ......events.commits import CommitId
from ......events.model import Resource, Token

STAGING = "_fairlead/staging"
_OF_SPARK = "_temporary/0/_temporary"
"""Where the committer of Hadoop has the folders of tasks, below that of their job."""
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
                sync(Path(here, name))
        sync(Path(here))
    for above in folder.parents:
        sync(above)
        if above == root:
            return


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they survive a crash of the machine."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync(folder.parent)


def make_batch_folder(folder: Path) -> None:
    """Make the folder of a batch anew, with those in it that the jobs of this machine work in.

    Spark would have a process of its own change the mode of each, which takes longer than to write
    what a small batch holds.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / _OF_SPARK).mkdir(parents=True)


def make_empty_folder(folder: Path) -> None:
    """Make the folder of a batch anew, for a file that this process writes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def batch_prefix(commit_id: CommitId) -> str:
    """Return what the final names of a batch's files begin with, and no other's.

    It begins with `part-`, since readers overlook names that begin with a dot or an underscore,
    as a connector's may.
    """
    return f"part-{escaped(_resource(commit_id))}-{commit_id.token}-{commit_id.batch:06d}-"


def final_name(commit_id: CommitId, part: str, claim: str = "") -> str:
    """Return the name that a staged part gets: who wrote it, in which batch, by what claim.

    Two logs that once were one may come to the same commit id, but not to the same claim.
    """
    match = _PART.fullmatch(part)
    if not match:
        raise ValueError(f"not a part that Spark wrote: {part}")
    by = f"{claim}-" if claim else ""
    return f"{batch_prefix(commit_id)}{by}{match['number']}{match['rest']}"


def final_path(commit_id: CommitId, part: Path, claim: str = "") -> Path:
    """Return where a staged part belongs; both are relative, to the staging and to the root."""
    return part.with_name(final_name(commit_id, part.name, claim))


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
    for folder in folders_up_to(root / _task_folder(resource), token):
        shutil.rmtree(folder, ignore_errors=True)
        _remove_empty_parents(folder, root)


def folders_up_to(folder: Path, token: Token) -> Sequence[Path]:
    """Return what lies in a task's folder for this token and for older ones."""
    try:
        found = [(_TOKEN.fullmatch(each.name), each) for each in folder.iterdir()]
    except FileNotFoundError:
        return ()
    return [each for match, each in found if match and Token(*map(int, match.groups())) <= token]


def _resource(commit_id: CommitId) -> Resource:
    return Resource(commit_id.connector, commit_id.task)


def _task_folder(resource: Resource) -> str:
    return f"{STAGING}/{escaped(resource)}"


def escaped(resource: Resource) -> str:
    """Return a file name for a resource that no other one has."""
    name = quote(resource.connector, safe=" ()+,;=@")
    if len(name) > _LONGEST_NAME:
        digest = blake2b(resource.connector.encode(), digest_size=8).hexdigest()
        name = f"{name[:_LONGEST_NAME]}~{digest}"
    return f"{name}-{resource.task}"


def remove_emptied(staged: Path, root: Path) -> None:
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


def sync(path: Path) -> None:
    """Flush a file or a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        os.close(descriptor)


def replace_durably(path: Path, fields: Mapping[str, object]) -> None:
    """Write a small file in JSON in place of what is there, so that it survives a crash."""
    prepared(path, fields).replace(path)
    sync(path.parent)


def prepared(path: Path, fields: Mapping[str, object]) -> Path:
    """Write a small file in JSON beside its path, durably, and return where it is."""
    make_folder(path.parent)
    made = path.with_name(f".{path.name}.{token_hex(4)}.new")
    made.write_text(json.dumps(fields))
    sync(made)
    return made
