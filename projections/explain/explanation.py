"""Why an epoch came, what it led to, and where the time went.

A control log keeps its history for ever by default, so this works for epochs of long ago,
and where no cluster runs. How long ago it was makes no difference to what is told.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...events.epochs import epoch_warning
from ...events.model import Resource
from .absences import Absence
from .epochs import EpochReport
from .handovers import FollowedHandover, Handover
from .phases import Detection, Phase, phases_of


@dataclass(frozen=True, slots=True)
class Explanation:
    """One group epoch explained; what a target moved is told with each epoch that it answers."""

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


@dataclass(slots=True)
class EpochReading:
    """One group epoch as far as the log was read: records that follow go on adding to it."""

    report: EpochReport
    detection: Detection
    changed: str
    handovers: Sequence[FollowedHandover] = ()
    """Of the target that answers it."""
    absences: Sequence[Absence] = ()
    """Under the target that answers it."""

    def explain(self) -> Explanation:
        """Return what is known of the epoch by now."""
        handovers = sorted((each.handover for each in self.handovers), key=_by_resource)
        return Explanation(
            self.report, self.detection, tuple(handovers), self.changed, tuple(self.absences)
        )


def _by_resource(each: Handover) -> Resource:
    return each.resource
