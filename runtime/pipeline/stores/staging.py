"""The layout of staged batches in a folder, which all sinks that stage in files have in common.

A batch of a task is staged at `<task>/<token>/<batch>`: so all that older tokens have left is found
by its name alone, by any process.
"""

import re
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ....events.commits import CommitId
from ....events.log.files import make_directory
from ....events.model import Resource, Token

_TOKEN: Final = re.compile(r"(\d+)-(\d+)")
_LONGEST_NAME: Final = 100
"""The most characters of a connector's name in the name of a file."""


def task_of(commit_id: CommitId) -> Resource:
    """Return the task that made a commit."""
    return Resource(commit_id.connector, commit_id.task)


def batch_path(commit_id: CommitId) -> str:
    """Return where a batch is staged, relative to the folder of all tasks."""
    return f"{escape_name(task_of(commit_id))}/{commit_id.token}/{commit_id.batch}"


def folders_up_to(folder: Path, token: Token) -> Sequence[Path]:
    """Return the folders of this token and older ones in a task's folder."""
    try:
        named = [(_TOKEN.fullmatch(each.name), each) for each in folder.iterdir()]
    except FileNotFoundError:
        return ()
    return [each for match, each in named if match and Token(*map(int, match.groups())) <= token]


def make_folder(folder: Path) -> None:
    """Create a folder and those above it, durably, for all users that its mask lets in."""
    make_directory(folder, 0o777)


def escape_name(resource: Resource) -> str:
    """Return a unique file name for a resource."""
    name = quote(resource.connector, safe=" ()+,;=@")
    if len(name) > _LONGEST_NAME:
        digest = blake2b(resource.connector.encode(), digest_size=8).hexdigest()
        name = f"{name[:_LONGEST_NAME]}~{digest}"
    return f"{name}-{resource.task}"
