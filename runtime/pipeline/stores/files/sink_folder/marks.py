"""Ownership marks of a sink folder: small JSON files under `<root>/_fairlead` (DATA_PLANE §7).

`owner.json` names the cluster. `marks/<connector>--1.json` has the connector's claim, whose writer
id its task configs have as well. `marks/<connector>-<task>#<token>.json` names the process that
wrote last under that fencing token, and the last published commit. Each token has its own file, so
that a zombie cannot overwrite the mark of its successor; the newest token is valid, and its owner
removes the others. A mark ahead of the log, or with a token of another log, shows that the data
folder was copied or restored from a backup.

A mark is written only after the state that it describes is durable.
"""

import errno
import json
import os
import platform
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Self, cast

from ......events.commits import CommitId
from ......events.log.files import sync_path
from ......events.log.process import ProcessId, is_alive, process_of
from ......events.model import Resource, Token
from ....spi.errors import SinkBroken
from ...marks import PublishedBatch
from ...staging import escape_name
from .. import keys
from .staging import replace_durably, write_beside

OWNER: Final = "_fairlead/owner.json"
MARKS: Final = "_fairlead/marks"
_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What file systems without hard links answer."""


@dataclass(frozen=True, slots=True)
class SinkClaim:
    """The right of a connector's tasks to write to a sink; a new claim revokes earlier ones."""

    writer: str
    """A random id."""
    folder: int
    """The inode of the root when it was claimed; under a missing mount there is another inode."""

    is_adopted: bool = False
    """Whether a user adopted the sink in its state by `sink.adopt`."""

    def __str__(self) -> str:
        """Return the text for task configs."""
        return f"{self.writer}:{self.folder}{':adopted' if self.is_adopted else ''}"

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Parse the text of `str`; None if it is not a claim."""
        writer, _, rest = text.partition(":")
        folder, _, word = rest.partition(":")
        return cls(writer, int(folder), word == "adopted") if folder.isdecimal() else None


@dataclass(frozen=True, slots=True)
class TaskMark:
    """The last writer of a task, and its last published commit."""

    claim: str
    """The writer id of the claim under which it was written."""
    token: Token
    process: str
    """The name of the process that wrote it; see `this_process`."""
    log: str
    """The place of the log that gave the token; see `TaskOwnership.log`."""

    published: PublishedBatch | None = None
    """The last published batch; None: none yet."""

    def is_of(self, token: Token) -> bool:
        """Return whether this process wrote the mark under this token."""
        return (self.token, self.process) == (token, this_process())

    def after(self, commit_id: CommitId) -> "TaskMark":
        """Return the mark after the publication of a commit."""
        done = PublishedBatch.of(commit_id)
        return replace(self, published=max(self.published or done, done))


@cache
def this_process() -> str:
    """Return a unique name of this process; a token belongs to one process."""
    return _spell_process(process_of(os.getpid()))


def runs_here(process: str) -> bool:
    """Return whether a process, named by `this_process`, runs on this machine."""
    pid, _, rest = process.partition(" ")
    named = ProcessId(int(pid) if pid.isdecimal() else 0, rest.rpartition(" ")[2])
    return _spell_process(named) == process and is_alive(named)


def _spell_process(process: ProcessId) -> str:
    return f"{process.pid} on {platform.node()} since {process.started}"


def is_intruder(mark: TaskMark, token: Token) -> bool:
    """Return whether another process wrote a mark under this token, or a newer one."""
    return mark.token > token or (mark.token == token and not mark.is_of(token))


def read_owner(root: Path) -> str | None:
    """Return the cluster that owns the sink; None: there is no owner."""
    fields = _read(root / OWNER)
    return None if fields is None else str(fields.get("cluster"))


def write_owner(root: Path, cluster: str, *, replaces: bool) -> None:
    """Write the owner; unless `replaces`, an existing owner stays."""
    write = replace_durably if replaces else _write_once
    write(root / OWNER, {"cluster": cluster})


def read_claim(root: Path, connector: str) -> tuple[str, str] | None:
    """Return the cluster and the writer id of a connector's claim; None: there is none."""
    fields = _read(_path(root, Resource(connector)))
    return None if fields is None else (str(fields.get("cluster")), str(fields.get("writer")))


def write_claim(root: Path, connector: str, cluster: str, writer: str, *, replaces: bool) -> None:
    """Write a claim; unless `replaces`, an existing claim stays."""
    write = replace_durably if replaces else _write_once
    write(_path(root, Resource(connector)), {"cluster": cluster, "writer": writer})


def read_mark(root: Path, task: Resource, claim: str = "") -> TaskMark | None:
    """Return a task's newest mark, of this claim if possible; None: there is none at all."""
    found = [mark for path in _marks_of(root, task) if (mark := _mark_in(path))]
    own = [each for each in found if each.claim == claim] or found
    if not own:
        return None
    newest = max(own, key=lambda each: each.token)
    published = [each.published for each in own if each.published and each.claim == newest.claim]
    return replace(newest, published=max(published, default=None))


def write_mark(root: Path, task: Resource, mark: TaskMark) -> None:
    """Write a task's mark, durably: a stale mark would look as if the sink had lost batches."""
    published = (*mark.published[0], mark.published[1]) if mark.published else None
    whose = {"claim": mark.claim, "token": mark.token, "process": mark.process, "log": mark.log}
    replace_durably(_path_of(root, task, mark.token), {**whose, "published": published})


def remove_older_marks(root: Path, task: Resource, token: Token) -> None:
    """Remove the marks of other tokens, after this token's mark was written."""
    for path in _marks_of(root, task):
        if path != _path_of(root, task, token):
            path.unlink(missing_ok=True)


def _mark_in(path: Path) -> TaskMark | None:
    fields = _read(path)
    if fields is None:  # a successor has just removed it
        return None
    try:
        epoch, generation, batch = fields["published"] or (0, 0, -1)
        last = PublishedBatch(Token(epoch, generation), batch)
        token = Token(*fields["token"])
        claim, process, log = fields["claim"], fields["process"], fields.get("log", "")
        return TaskMark(str(claim), token, str(process), str(log), last if batch >= 0 else None)
    except (KeyError, TypeError, ValueError):
        raise _unreadable(path) from None


def _marks_of(root: Path, task: Resource) -> list[Path]:
    """Return the files of a task's marks; older releases had one file for all tokens.

    Such a file of task 1 of `a-` and the claim of `a` have the same name.
    """
    name = escape_name(task)
    with suppress(FileNotFoundError):
        return [
            each
            for each in (root / MARKS).iterdir()
            if (each.name == f"{name}.json" and not _is_claim(each))
            or (each.name.startswith(f"{name}#") and each.name.endswith(".json"))
        ]
    return []


def _is_claim(path: Path) -> bool:
    return "writer" in (_read(path) or {})


def _path_of(root: Path, task: Resource, token: Token) -> Path:
    epoch, generation = token
    return root / MARKS / f"{escape_name(task)}#{epoch}-{generation}.json"


def _path(root: Path, resource: Resource) -> Path:
    return root / MARKS / f"{escape_name(resource)}.json"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        fields: object = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        raise _unreadable(path) from None
    if not isinstance(fields, dict):
        raise _unreadable(path)
    return cast("dict[str, Any]", fields)


def _unreadable(path: Path) -> SinkBroken:
    return SinkBroken(
        f"{path} is corrupt. Nothing was changed: restore it, or remove it and set "
        f"{keys.SINK_ADOPT}=true"
    )


def _write_once(path: Path, fields: dict[str, object]) -> None:
    temporary = write_beside(path, fields)
    try:
        with suppress(FileExistsError):
            _put(temporary, path)
            sync_path(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _put(temporary: Path, path: Path) -> None:
    """Write a whole file to a path without one; raises `FileExistsError`.

    Where a file has only one name (FAT, object stores), two processes at the same moment may both
    do it. The one whose file is replaced finds that out before its next batch.
    """
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():
            raise FileExistsError(path) from None
        temporary.rename(path)
