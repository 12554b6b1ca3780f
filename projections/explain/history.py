"""The history of a group: a line for each epoch that its log still tells of."""

from collections import deque
from dataclasses import dataclass

from ...events.log.reader import LogReader
from .epochs import Chapter, Document
from .reader import story_of


@dataclass(frozen=True, slots=True)
class History:
    """The latest epochs of a group, the last one last, and how far back its log tells.

    Both bounds are None where the log tells of no epoch.
    """

    group_id: str
    first_epoch: int | None
    last_epoch: int | None
    is_trimmed: bool
    """Whether there was more before the first epoch, which is not in the log any more."""
    epochs: tuple[Document, ...]

    def to_json(self) -> Document:
        """Return the history in plain data."""
        return {
            "group_id": self.group_id,
            "first_epoch": self.first_epoch,
            "last_epoch": self.last_epoch,
            "is_trimmed": self.is_trimmed,
            "epochs": list(self.epochs),
        }


def history_of(log: LogReader, limit: int | None = None) -> History:
    """Return the last `limit` epochs of a log, None for all; raises `LogError`, `CodecError`."""
    lines = deque[Document](maxlen=limit)
    first = last = None
    for chapter in story_of(log):
        last = chapter.group_epoch
        first = last if first is None else first
        lines.append(line_of(chapter))
    return History(log.log_id, first, last, log.low() > 0, tuple(lines))


def line_of(chapter: Chapter) -> Document:
    """Return what one epoch led to, in short.

    What a target changed is counted at the last of the epochs that it answers; the counts of
    the others are None.
    """
    bump, answer = chapter.bump, chapter.answer
    told: Document = {
        "group_epoch": bump.group_epoch,
        "time_ms": bump.time_ms,
        "cause": bump.cause.why.value,
        "subject": bump.cause.subject,
        "actor": bump.actor,
        "assignment_epoch": answer.assignment_epoch if answer else None,
        "failed_attempts": len(chapter.attempts),
        "settled_after_ms": None,
    }
    if answer and answer.settled_ms is not None:
        told["settled_after_ms"] = max(0, answer.settled_ms - bump.time_ms)
    its_own = answer if answer and answer.assignment_epoch == bump.group_epoch else None
    return {
        **told,
        "moved": len(its_own.moved) if its_own else None,
        "returned": len(its_own.returned) if its_own else None,
        "placed": len(its_own.placed) if its_own else None,
        "kept": its_own.kept_count if its_own else None,
        "parked": len(its_own.parked) if its_own else None,
        "unplaceable": len(its_own.unplaceable) if its_own else None,
        "displaced": len(its_own.displaced) if its_own else None,
        "retired": len(its_own.retired) if its_own else None,
    }
