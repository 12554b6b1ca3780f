"""Why an epoch came, what it led to, and where the time went: from the control log alone.

A control log keeps its history for ever by default, so this works for epochs of long ago,
and where no cluster runs. How long ago it was makes no difference to what is told.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...events.entries.codec import decode
from ...events.epochs import epoch_warning
from ...events.keys import pack_key
from ...events.log.frame import Entry
from ...events.log.reader import LogReader
from ...events.shards import Shards
from ..documents import Document
from .changed import Changed
from .epochs import EpochReport
from .handovers import Handover, Handovers
from .phases import Detecting, Detection, Phase, phases_of
from .reader import STATUS, story_of, written, written_since
from .waits import Absence, Absences


class NotToldError(LookupError):
    """An epoch that the log does not tell of; the text says of which ones it does."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One group epoch explained; an change's handovers are told with each epoch it answers."""

    report: EpochReport
    detection: Detection
    handovers: tuple[Handover, ...]
    changed: str = ""
    """What the change was that raised the epoch, where its cause does not say it already."""
    waits: tuple[Absence, ...] = ()
    """What was kept, while the change held, for members that were away."""

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Detect, compute, revoke, release and start, in this order."""
        return phases_of(self.report, self.detection, self.handovers)

    @property
    def warning(self) -> str:
        """What people should know of a group that has counted as far as this epoch, or nothing."""
        return epoch_warning(self.report.group_epoch)

    @property
    def total_ms(self) -> int | None:
        """From its cause until everything ran again and every member was there.

        Where it is not known when the cause came about, from the rise of the epoch.

        None as long as that has not come about, and where another target came first.
        """
        change = self.report.target_change
        if change is None or change.settled_ms is None:
            return None
        start = self.phases[-1]
        if start.until_ms is None and any(each.taker for each in self.handovers):
            return None
        end_ms = max(change.settled_ms, start.until_ms or 0)
        bump = self.report.bump
        return max(0, end_ms - (bump.since_ms or bump.time_ms))

    def to_json(self) -> Document:
        """Return the explanation in plain data: the report's, and what is told beyond it."""
        return {
            **self.report.to_json(),
            "changed": self.changed,
            "total_ms": self.total_ms,
            "phases": [each.to_json() for each in self.phases],
            "handovers": [each.to_json(self.report.group_epoch) for each in self.handovers],
            "waits": [each.to_json() for each in self.waits],
            **({"warning": self.warning} if self.warning else {}),
        }


class Explaining:
    """A fold of the whole log for one epoch, which goes on where it ended the last time.

    Of statuses, of which a log has many, it decodes those alone that it has to know.
    """

    def __init__(self, report: EpochReport) -> None:
        self._detecting, self._changed = Detecting(report.bump), Changed(report.bump)
        self._handovers = Handovers(report.target_change) if report.target_change else None
        self._waits = Absences(report.target_change) if report.target_change else None
        begun = self._handovers.found if self._handovers else ()
        self._subject = report.bump.cause.subject.encode()
        self._followed = {pack_key(tuple(each.resource)) for each in begun}
        self._is_of = _identity(report)
        self._shards = Shards()
        self._next = 0

    def is_of(self, report: EpochReport) -> bool:
        """Tell whether it is for this report, which may have been told further meanwhile."""
        return self._is_of == _identity(report)

    def catch_up(self, log: LogReader) -> None:
        """Fold what was written since the last look; raises `LogError`, `CodecError`."""
        for entry in written_since(log, self._next) if self._next else written(log):
            self.fold(entry)
            self._next = entry.offset + 1

    def fold(self, entry: Entry) -> None:
        """Take the next entry of the log; raises `CodecError`."""
        record = decode(entry) if self._has_to_know(entry) else None
        record = self._shards.take(record) if record is not None else None
        if record is not None:
            self._detecting.fold(record, entry)
            self._changed.fold(record)
            if self._handovers is not None and self._waits is not None:
                self._handovers.fold(record, entry)
                self._waits.fold(record, entry)

    def _has_to_know(self, entry: Entry) -> bool:
        """Tell whether an entry may matter: a status does by its resource, or by its worker."""
        if entry.type != STATUS or entry.key in self._followed:
            return True
        return self._detecting.listens and self._subject in (entry.value or b"")

    def explained(self, report: EpochReport) -> Explanation:
        """Return what is known of the report so far."""
        moved = self._handovers.found if self._handovers else ()
        waits = self._waits.found if self._waits else ()
        return Explanation(report, self._detecting.found, moved, self._changed.found, waits)


def _identity(report: EpochReport) -> tuple[int, int | None]:
    change = report.target_change
    return report.group_epoch, change.assignment_epoch if change else None


def explain(log: LogReader, group_epoch: int | None = None) -> Explanation:
    """Explain a group epoch, by default the latest one.

    Raises `NotToldError` where the log tells nothing of it, `LogError`, `CodecError`.
    """
    return explanation_of(find_chapter(log, group_epoch), written(log))


def explanation_of(report: EpochReport, entries: Iterable[Entry]) -> Explanation:
    """Explain a report by all entries of the log that it was read from; raises `CodecError`."""
    explaining = Explaining(report)
    for entry in entries:
        explaining.fold(entry)
    return explaining.explained(report)


def not_told(log: LogReader, group_epoch: int | None, told: Sequence[int]) -> NotToldError:
    """Return that an epoch is not among those that were told, of which first and last count."""
    why = "; what was before is trimmed from it" if log.low() else ""
    if not told:
        return NotToldError(f"the log of group {log.log_id} tells of no epoch{why}")
    return NotToldError(
        f"there is no epoch {group_epoch} in the log of group {log.log_id}: it tells of the"
        f" epochs {told[0]} to {told[-1]}{why}"
    )


def find_chapter(log: LogReader, group_epoch: int | None) -> EpochReport:
    """Read a log up to where an epoch is told, None for the latest; raises as `explain`."""
    told: list[int] = []
    last = None
    for last in story_of(log):
        if last.group_epoch == group_epoch:
            return last
        told.append(last.group_epoch)
    if last is None or group_epoch is not None:
        raise not_told(log, group_epoch, told)
    return last
