"""Why an epoch came, what it led to, and where the time went: from the control log alone.

A control log keeps its history for ever by default, so this works for epochs of long ago,
and where no cluster runs. How long ago it was makes no difference to what is told.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ..events.codec import decode
from ..events.log.frame import Entry
from ..events.log.reader import LogReader
from .changed import Changed
from .chapters import Chapter, Document
from .detection import Detecting, Detection
from .handovers import Handover, Handovers
from .phases import Phase, phases_of
from .story import story_of, written


class NotToldError(LookupError):
    """An epoch that the log does not tell of; the text says of which ones it does."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One group epoch explained; an answer's handovers are told with each epoch it answers."""

    chapter: Chapter
    detection: Detection
    handovers: tuple[Handover, ...]
    changed: str = ""
    """What the change was that raised the epoch, where its cause does not say it already."""

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Detect, compute, revoke, release and start, in this order."""
        return phases_of(self.chapter, self.detection, self.handovers)

    @property
    def total_ms(self) -> int | None:
        """From the rise of the epoch until everything ran again and every member was there.

        None as long as that has not come about, and where another target came first.
        """
        answer = self.chapter.answer
        if answer is None or answer.settled_ms is None:
            return None
        start = self.phases[-1]
        if start.until_ms is None and any(each.taker for each in self.handovers):
            return None
        end_ms = max(answer.settled_ms, start.until_ms or 0)
        return max(0, end_ms - self.chapter.bump.time_ms)

    def to_json(self) -> Document:
        """Return the explanation in plain data: the chapter's, and what is told beyond it."""
        return {
            **self.chapter.to_json(),
            "changed": self.changed,
            "total_ms": self.total_ms,
            "phases": [each.to_json() for each in self.phases],
            "handovers": [each.to_json() for each in self.handovers],
        }


def explain(log: LogReader, group_epoch: int | None = None) -> Explanation:
    """Explain a group epoch, by default the latest one.

    Raises `NotToldError` where the log tells nothing of it, `LogError`, `CodecError`.
    """
    return explanation_of(_find(log, group_epoch), written(log))


def explanation_of(chapter: Chapter, entries: Iterable[Entry]) -> Explanation:
    """Explain a chapter by all entries of the log that it was read from; raises `CodecError`."""
    detecting, changed = Detecting(chapter.bump), Changed(chapter.bump)
    handovers = Handovers(chapter.answer) if chapter.answer else None
    for entry in entries:
        record = decode(entry)
        if record is not None:
            detecting.fold(record, entry)
            changed.fold(record)
            if handovers is not None:
                handovers.fold(record, entry)
    moved = handovers.found if handovers else ()
    return Explanation(chapter, detecting.found, moved, changed.found)


def _find(log: LogReader, group_epoch: int | None) -> Chapter:
    first = last = None
    for chapter in story_of(log):
        if chapter.group_epoch == group_epoch:
            return chapter
        first, last = first or chapter, chapter
    if last is None or first is None:
        raise NotToldError(f"the log of group {log.log_id} tells of no epoch{_why_not(log)}")
    if group_epoch is None:
        return last
    raise NotToldError(
        f"there is no epoch {group_epoch} in the log of group {log.log_id}: it tells of the"
        f" epochs {first.group_epoch} to {last.group_epoch}{_why_not(log)}"
    )


def _why_not(log: LogReader) -> str:
    return "; what was before is trimmed from it" if log.low() else ""
