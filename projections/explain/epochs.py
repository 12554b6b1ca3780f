"""One group epoch: what raised it, what became of it, and where the time went.

It is told of every epoch that the control log still has, also where no cluster runs. Times are wall
clock, in milliseconds.

The phases of a rebalance follow each other, each up to the last resource that it concerns: detect
(what happened until the epoch rose), compute (until the target), revoke (until the last one
acknowledged), release (until the last one was granted), start (until the last one ran).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, NamedTuple

from ...events.group import epoch_warning
from ...events.model import GroupType, Why
from ...events.records import GroupMetadata
from .absences import Absence
from .causes.clients import KafkaClient
from .causes.detection import Detection
from .causes.owners import OwnerTerm
from .diff import TargetChange
from .handovers import FollowedHandover, Handover, between

_NOTHING_MOVED: Final = "nothing moved"


class Attempt(NamedTuple):
    """A computation that failed: for which epoch, when, and why."""

    assignment_epoch: int
    time_ms: int
    error: str


class GenerationReport(NamedTuple):
    """A generation of classic members: their protocol, their leader, and when it assigned."""

    protocol_type: str
    protocol: str | None
    leader: str
    """The member id of who assigns; empty where nobody is in it."""
    members: tuple[str, ...]
    """Their instance ids, or else their member ids."""
    assigned_ms: int | None = None
    """When its leader assigned; None: not yet."""
    leader_name: str = ""
    """By what people know who assigns, where that is not by the member id."""

    @property
    def summary(self) -> str:
        """It in a few words."""
        if not self.members:
            return "nobody is left"
        count = f"{len(self.members)} member{'s' if len(self.members) > 1 else ''}"
        leader = self.leader_name or self.leader
        return f"{count}, {self.protocol_type} {self.protocol}, led by {leader}"


@dataclass(frozen=True, slots=True)
class EpochReport:
    """One group epoch: its cause, and the target that answers it, if there is one."""

    bump: GroupMetadata
    """The record that raised the epoch."""
    attempts: tuple[Attempt, ...] = ()
    """The computations that failed before one succeeded, in order."""
    target_change: TargetChange | None = None
    """What the target changed that answered the epoch, and perhaps earlier ones with it.

    None as long as there is none, and where the group lost its last member before.
    """
    generation: GenerationReport | None = None
    """What the epoch is to classic members, to whom a leader assigns; None: it is no generation."""
    type: GroupType = GroupType.CONNECT
    """That of the group when it rose: resources are partitions of topics, but for CONNECT."""

    @property
    def group_epoch(self) -> int:
        """The epoch that this report is about."""
        return self.bump.group_epoch

    @property
    def took_ms(self) -> int | None:
        """The time from the cause to the target that answers it; 0 if clocks jumped back.

        Of a generation: from its record, when all had joined, until its leader had assigned.
        """
        if self.generation is not None:
            return between(self.bump.time_ms, self.generation.assigned_ms)
        change = self.target_change
        return between(self.bump.time_ms, change.time_ms if change else None)


class Phase(NamedTuple):
    """One phase; wall clock in milliseconds, None where the log does not (yet) have it."""

    name: str
    from_ms: int | None = None
    until_ms: int | None = None
    note: str = ""

    @property
    def took_ms(self) -> int | None:
        """Its duration; 0 if clocks jumped back."""
        return between(self.from_ms, self.until_ms)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One group epoch explained; a target's moves are part of each epoch that it answers."""

    report: EpochReport
    detection: Detection
    handovers: tuple[Handover, ...]
    changed: str = ""
    """What the change was that raised the epoch, where its cause does not say it already."""
    waits: tuple[Absence, ...] = ()
    """What was kept, while the change held, for members that were away."""
    clients: Mapping[str, KafkaClient] = field(
        default_factory=dict[str, KafkaClient], compare=False
    )
    """Kafka's clients that the group ever had, by member id."""
    put_together: Collection[str] = field(default=(), compare=False)
    """The connectors that raised it by one command, if they are several."""
    owners: tuple[OwnerTerm, ...] = ()
    """The nodes that took the group since the epoch before rose; no work moves by that."""

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Detect, compute, revoke, release and start, in this order; of a generation: assign.

        No log tells when a consumer begins to read: it is taken to start with what it is granted.
        """
        return phases_of(self.report, self.detection, self.handovers)

    @property
    def warning(self) -> str:
        """A warning for people if the epochs of the group run out; "" if not."""
        return epoch_warning(self.report.group_epoch)

    @property
    def total_ms(self) -> int | None:
        """From its cause until everything ran again and every member was there.

        Where it is not known when the cause came about, from the rise of the epoch.

        None as long as that has not come about, and where another target came first.
        """
        change = self.report.target_change
        if self.report.generation is not None:
            return self.report.took_ms
        if change is None or change.settled_ms is None:
            return None
        start = self.phases[-1]
        if start.until_ms is None and any(each.new_owner for each in self.handovers):
            return None
        end_ms = max(change.settled_ms, start.until_ms or 0)
        bump = self.report.bump
        return max(0, end_ms - (bump.since_ms or bump.time_ms))


@dataclass(slots=True)
class EpochReading:
    """One group epoch as far as the log was read; later records add to it."""

    report: EpochReport
    detection: Detection
    changed: str
    clients: Mapping[str, KafkaClient]
    """Kafka's clients that the group ever had, by member id."""
    handovers: Sequence[FollowedHandover] = ()
    """Of the target that answers it."""
    absences: Sequence[Absence] = ()
    """Under the target that answers it."""
    put_together: Collection[str] = ()
    """The connectors that raised it by one command, if they are several."""

    def explain(self) -> Explanation:
        """Return the explanation as far as it is known."""
        handovers = sorted((each.handover for each in self.handovers), key=attrgetter("resource"))
        told = self.changed, tuple(self.absences), self.clients, self.put_together
        return Explanation(self.report, self.detection, tuple(handovers), *told)


def phases_of(
    report: EpochReport, detection: Detection, handovers: Sequence[Handover]
) -> tuple[Phase, ...]:
    """Return the phases of an epoch in order; a generation has its own."""
    if report.generation is not None:
        return (_assign(report.bump, report.generation),)
    detect = _detect(report, detection)
    change = report.target_change
    if change is None:
        compute = Phase("compute", report.bump.time_ms, note="not answered")
        unanswered = (detect, compute, Phase("revoke"), Phase("release"))
        return unanswered if report.type is GroupType.CONSUMER else (*unanswered, Phase("start"))
    compute = Phase("compute", report.bump.time_ms, change.time_ms, _attempts(report))
    revoke = _revoke(change, handovers)
    taken = [each for each in handovers if each.new_owner is not None]
    release = _until_last(
        "release", revoke.until_ms or change.time_ms, taken, lambda each: each.granted_ms
    )
    if report.type is GroupType.CONSUMER:
        return (detect, compute, revoke, release)
    granted = [each for each in taken if each.granted_ms]
    start = _until_last("start", release.until_ms, granted or taken, _up)
    return (detect, compute, revoke, release, start)


def _assign(bump: GroupMetadata, generation: GenerationReport) -> Phase:
    """Return how long a leader took; when its round began is not in the log."""
    is_open = generation.members and generation.assigned_ms is None
    note = "its leader did not assign" if is_open else ""
    return Phase("assign", bump.time_ms, generation.assigned_ms, note)


def _up(each: Handover) -> int | None:
    return each.up_ms


def _detect(report: EpochReport, detection: Detection) -> Phase:
    bump, note = report.bump, ""
    if detection.was_away:
        note = "its place was kept for its return"
    elif bump.cause.why is Why.SESSION_EXPIRED and detection.since_ms is not None:
        note = "since the member was last heard of"
    elif bump.cause.why is Why.SESSION_EXPIRED:
        note = "when the member was last heard of is not in the log"
        if detection.last_word_ms is not None:
            age_ms = max(0, bump.time_ms - detection.last_word_ms)
            note += f"; its last record is {age_ms / 1000:.3f} s older"
    elif detection.since_ms is None:
        note = "not in the log"
    return Phase("detect", detection.since_ms, bump.time_ms, note)


def _attempts(report: EpochReport) -> str:
    count = len(report.attempts)
    return f"{count} failed attempt{'s' if count > 1 else ''} before" if count else ""


def _revoke(change: TargetChange, handovers: Sequence[Handover]) -> Phase:
    asked = [each for each in handovers if each.asked_ms or each.revoked_ms]
    if not asked:
        return Phase("revoke", note="nobody had to give up anything")
    phase = _until_last("revoke", change.time_ms, asked, lambda each: each.revoked_ms)
    last_ms = max((each.asked_ms for each in asked if each.asked_ms), default=None)
    if phase.note or last_ms is None:
        return phase
    waited_ms = max(0, last_ms - change.time_ms)
    return phase._replace(note=f"all were asked after {waited_ms / 1000:.3f} s")


def _until_last(
    name: str,
    from_ms: int | None,
    handovers: Sequence[Handover],
    moment: Callable[[Handover], int | None],
) -> Phase:
    """Return a phase that ends when the last of the handovers has come to a moment.

    One that another target took over is not waited for.
    """
    moments = [(each, moment(each)) for each in handovers]
    done = [at_ms for _, at_ms in moments if at_ms is not None]
    open_ones = [each for each, at_ms in moments if at_ms is None]
    if not handovers:
        return Phase(name, from_ms, note=_NOTHING_MOVED)
    if any(each.superseded_by is None for each in open_ones):
        return Phase(name, from_ms, note=f"{len(done)} of {len(handovers)} so far")
    superseded = f"{len(open_ones)} of {len(handovers)} superseded" if open_ones else ""
    return Phase(name, from_ms, max(done, default=None), superseded)
