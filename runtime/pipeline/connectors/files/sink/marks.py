"""Whose a sink is: small files under `<root>/_fairlead`, and what may follow from them.

`owner.json` names the cluster. `marks/<connector>--1.json` holds the connector's claim: who may
write for it, known to its tasks from their configs. `marks/<connector>-<task>#<token>.json` says
which process wrote last under that token, and the last commit that was published. Each token has a
file of its own, so that a former owner that wakes up in the middle of its work writes over nothing;
the newest counts, and removes the others. A log that knows less than the sink was published from is
an older one, and a token that did not come from this log is another's: a copied data folder, or a
restored backup.

All of them are written after what they tell of is durable, so they are never ahead of it
(DATA_PLANE §7).
"""

import json
import os
import platform
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Self, cast

from ......events.commits import CommitId
from ......events.log.process import ProcessId, is_alive, process_of
from ......events.model import Resource, Token
from ....spi.errors import SinkBroken
from ...marks import PublishedBatch
from .. import keys
from .staging import escaped, prepared, replace_durably, sync

OWNER: Final = "_fairlead/owner.json"
MARKS: Final = "_fairlead/marks"


@dataclass(frozen=True, slots=True)
class SinkClaim:
    """The right of a connector's tasks to write to a sink; a new one ends all earlier ones."""

    writer: str
    folder: int
    """The inode of the root when it was claimed, which tells it from what lies under a mount."""

    is_adopted: bool = False
    """Whether somebody said that the sink is to be taken as it is."""

    def __str__(self) -> str:
        """Return the form that a task config holds."""
        return f"{self.writer}:{self.folder}{':adopted' if self.is_adopted else ''}"

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return what `str` spelled; None if there is none, or it is nothing of the kind."""
        writer, _, rest = text.partition(":")
        folder, _, word = rest.partition(":")
        return cls(writer, int(folder), word == "adopted") if folder.isdecimal() else None


@dataclass(frozen=True, slots=True)
class TaskMark:
    """Who wrote last for a task, and what was published last."""

    claim: str
    token: Token
    process: str
    log: str
    """The place of the log that the token is from, which tells it from its copies."""

    published: PublishedBatch | None = None

    def is_of(self, token: Token) -> bool:
        """Tell whether this process wrote it, under this token."""
        return (self.token, self.process) == (token, this_process())

    def after(self, commit_id: CommitId) -> "TaskMark":
        """Return the mark once a commit is published as well."""
        done = PublishedBatch.of(commit_id)
        return replace(self, published=max(self.published or done, done))


@cache
def this_process() -> str:
    """Return what no other process is known by: a token is of one process alone."""
    return _spell_process(process_of(os.getpid()))


def runs_here(process: str) -> bool:
    """Tell whether a process runs on this machine, as `this_process` names it."""
    pid, _, rest = process.partition(" ")
    named = ProcessId(int(pid) if pid.isdecimal() else 0, rest.rpartition(" ")[2])
    return _spell_process(named) == process and is_alive(named)


def _spell_process(process: ProcessId) -> str:
    return f"{process.pid} on {platform.node()} since {process.started}"


def intruder(mark: TaskMark, token: Token) -> bool:
    """Tell whether a mark was written under a token that is not of the same log, or is newer."""
    return mark.token > token or (mark.token == token and not mark.is_of(token))


def is_behind(mark: TaskMark, published: PublishedBatch) -> bool:
    """Tell whether a sink has lost what was published to it; a new mark knows of nothing yet."""
    return mark.published is not None and mark.published < published


def read_owner(root: Path) -> str | None:
    """Return the cluster whose sink it is, None if nothing says so."""
    fields = _read(root / OWNER)
    return None if fields is None else str(fields.get("cluster"))


def write_owner(root: Path, cluster: str, *, anew: bool) -> None:
    """Say whose sink it is; unless `anew`, whoever was first stays."""
    write = _write if anew else _write_once
    write(root / OWNER, {"cluster": cluster})


def read_claim(root: Path, connector: str) -> tuple[str, str] | None:
    """Return the cluster and the writer of a connector's claim, None if there is none."""
    fields = _read(_path(root, Resource(connector)))
    return None if fields is None else (str(fields.get("cluster")), str(fields.get("writer")))


def write_claim(root: Path, connector: str, cluster: str, writer: str, *, anew: bool) -> None:
    """Make a claim the one that counts; unless `anew`, the first one stays."""
    write = _write if anew else _write_once
    write(_path(root, Resource(connector)), {"cluster": cluster, "writer": writer})


def read_mark(root: Path, task: Resource, claim: str = "") -> TaskMark | None:
    """Return a task's newest mark, of this claim if there is one, None if there is none at all."""
    found = [mark for path in _marks_of(root, task) if (mark := _mark_in(path))]
    own = [each for each in found if each.claim == claim] or found
    if not own:
        return None
    newest = max(own, key=lambda each: each.token)
    published = [each.published for each in own if each.published and each.claim == newest.claim]
    return replace(newest, published=max(published, default=None))


def write_mark(root: Path, task: Resource, mark: TaskMark) -> None:
    """Write a task's mark, durably: an older one would say that the sink has lost batches."""
    published = (*mark.published[0], mark.published[1]) if mark.published else None
    whose = {"claim": mark.claim, "token": mark.token, "process": mark.process, "log": mark.log}
    _write(_path_of(root, task, mark.token), {**whose, "published": published})


def remove_older_marks(root: Path, task: Resource, token: Token) -> None:
    """Remove what others than the owner of a token have left, once its own mark is there."""
    for path in _marks_of(root, task):
        if path != _path_of(root, task, token):
            path.unlink(missing_ok=True)


def _mark_in(path: Path) -> TaskMark | None:
    fields = _read(path)
    if fields is None:  # its successor has just removed it
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
    """Return the files of a task's marks; older releases had one for all tokens."""
    name = escaped(task)
    with suppress(FileNotFoundError):
        return [
            each
            for each in (root / MARKS).iterdir()
            if each.name == f"{name}.json"
            or (each.name.startswith(f"{name}#") and each.name.endswith(".json"))
        ]
    return []


def _path_of(root: Path, task: Resource, token: Token) -> Path:
    epoch, generation = token
    return root / MARKS / f"{escaped(task)}#{epoch}-{generation}.json"


def _path(root: Path, resource: Resource) -> Path:
    return root / MARKS / f"{escaped(resource)}.json"


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
        f"{path} is not readable as what fairlead writes there: nothing was changed; bring it "
        f"back as it was, or remove it and set {keys.SINK_ADOPT}=true"
    )


def _write(path: Path, fields: dict[str, object]) -> None:
    replace_durably(path, fields)


def _write_once(path: Path, fields: dict[str, object]) -> None:
    made = prepared(path, fields)
    with suppress(FileExistsError):
        os.link(made, path)
        sync(path.parent)
    made.unlink()
