"""What became of an epoch, in full; the list of all is `EpochList` of the projections as it is.

Times are wall clock, in milliseconds; None where the log does not tell, or not yet.
"""

from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import asdict

from ....events.model import Resources
from ....projections.explain.absences import Absence
from ....projections.explain.diff import Seat, TargetChange, Transfer
from ....projections.explain.epochs import EpochReport, Explanation, GenerationReport, Phase
from ....projections.explain.handovers import Handover


class SeatInfo(Struct, frozen=True):
    """A member, by its worker's URL (its member id where it has none) and its member id."""

    worker: str
    member_id: str


class FailedAttempt(Struct, frozen=True):
    """A computation that failed: for which epoch, when, and why."""

    assignment_epoch: int
    time_ms: int
    error: str


class KeptResources(Struct, frozen=True):
    """What a member keeps."""

    seat: SeatInfo | None
    resources: list[str]


class TransferInfo(Struct, frozen=True):
    """A resource that goes to a member; `from` is None if no member had it before."""

    id: str
    giver: SeatInfo | None = field(name="from")
    taker: SeatInfo | None = field(name="to")


class ParkedUntil(Struct, frozen=True):
    """A resource that waits for its lost worker."""

    id: str
    deadline_ms: int


class LeftOut(Struct, frozen=True):
    """A resource that no worker can take."""

    id: str
    reason: str


class Displaced(Struct, frozen=True):
    """A resource that ran, and that no worker can take any more."""

    id: str
    giver: SeatInfo | None = field(name="from")


class TargetChangeInfo(Struct, frozen=True):
    """What a target changes."""

    assignment_epoch: int
    time_ms: int
    settled_ms: int | None
    assignor: str
    computed_by: SeatInfo | None
    """None where the coordinator computed it."""
    kept: list[KeptResources]
    moved: list[TransferInfo]
    returned: list[TransferInfo]
    """Back to the worker that had them before."""
    placed: list[TransferInfo]
    """For the first time."""
    parked: list[ParkedUntil]
    unplaceable: list[LeftOut]
    displaced: list[Displaced]
    retired: list[str]
    """What had a place, and is not configured any more."""
    next_moves_at_ms: int | None


class PhaseInfo(Struct, frozen=True):
    """One phase of an epoch, from its cause until all that moved runs again."""

    phase: str
    from_ms: int | None
    until_ms: int | None
    took_ms: int | None
    note: str


class HandoverInfo(Struct, frozen=True, omit_defaults=True):
    """A resource that changed hands: why, between whom, and for how long no worker ran it."""

    id: str
    reason: str
    detail: str
    giver: SeatInfo | None = field(name="from")
    taker: SeatInfo | None = field(name="to")
    asked_ms: int | None
    stopped_ms: int | None
    gone_ms: int | None
    revoked_ms: int | None
    granted_ms: int | None
    running_ms: int | None
    first_batch_ms: int | None
    downtime_ms: int | None
    downtime_at_least_ms: int | None
    downtime_at_most_ms: int | None
    superseded_by: int | None
    """The later epoch that gave it to another worker before it ran."""
    freed_by: int | None = None
    """The other epoch that took it from its worker, and tells the downtime."""


class AbsenceInfo(Struct, frozen=True):
    """A member that was away, and what was kept for its return."""

    seat: SeatInfo
    resources: list[str]
    since_ms: int
    until_ms: int | None
    is_back: bool
    superseded_by: int | None


class EpochSummary(Struct, frozen=True, omit_defaults=True):
    """One epoch: its cause, and what the target changed that answers it."""

    group_epoch: int
    cause: str
    subject: str
    actor: str | None
    time_ms: int
    took_ms: int | None
    """From the cause to the target that answers it."""
    attempts: list[FailedAttempt]
    target_change: TargetChangeInfo | None


class GenerationInfo(Struct, frozen=True):
    """What an epoch is to classic members, whose leader assigns."""

    protocol_type: str
    protocol: str | None
    leader: str
    members: list[str]
    """Their instance ids, or else their member ids."""
    assigned_ms: int | None


class EpochExplanation(EpochSummary, frozen=True, omit_defaults=True):
    """One epoch in full: its cause, its target, each phase, and each resource that moved."""

    changed: str
    total_ms: int | None
    """From the cause until all that moved runs again."""
    phases: list[PhaseInfo]
    handovers: list[HandoverInfo]
    waits: list[AbsenceInfo]
    warning: str = ""
    """What keeps this from being told exactly."""
    generation: GenerationInfo | None = None
    """Of a classic group; no target answers it then."""


def describe_epoch(told: Explanation) -> EpochExplanation:
    """Return an explanation as it is answered."""
    summary = summarize_epoch(told.report)
    return EpochExplanation(
        **asdict(summary),
        changed=told.changed,
        total_ms=told.total_ms,
        phases=[_phase(each) for each in told.phases],
        handovers=[_handover(each, summary.group_epoch) for each in told.handovers],
        waits=[_absence(each) for each in told.waits],
        warning=told.warning,
        generation=_generation(told.report.generation),
    )


def summarize_epoch(report: EpochReport) -> EpochSummary:
    """Return the report of an epoch as it is answered."""
    bump, change = report.bump, report.target_change
    return EpochSummary(
        bump.group_epoch,
        bump.cause.why.value,
        bump.cause.subject,
        bump.actor,
        bump.time_ms,
        report.took_ms,
        [FailedAttempt(*each) for each in report.attempts],
        None if change is None else _target_change(change),
    )


def _target_change(change: TargetChange) -> TargetChangeInfo:
    return TargetChangeInfo(
        change.assignment_epoch,
        change.time_ms,
        change.settled_ms,
        change.assignor,
        _seat(change.computed_by),
        [KeptResources(_seat(each), _ids(change.kept[each])) for each in sorted(change.kept)],
        _transfers(change.moved),
        _transfers(change.returned),
        _transfers(change.placed),
        [ParkedUntil(str(each), due) for each, due in sorted(change.parked.items())],
        [LeftOut(str(each), reason) for each, reason in sorted(change.unplaceable.items())],
        [Displaced(str(each), _seat(giver)) for each, giver in sorted(change.displaced.items())],
        _ids(change.retired),
        change.next_moves_at_ms,
    )


def _generation(told: GenerationReport | None) -> GenerationInfo | None:
    if told is None:
        return None
    protocol_type, protocol, leader, members, assigned_ms = told
    return GenerationInfo(protocol_type, protocol, leader, list(members), assigned_ms)


def _transfers(transfers: Iterable[Transfer]) -> list[TransferInfo]:
    return [TransferInfo(str(each), _seat(giver), _seat(to)) for each, giver, to in transfers]


def _phase(each: Phase) -> PhaseInfo:
    return PhaseInfo(each.name, each.from_ms, each.until_ms, each.took_ms, each.note)


def _handover(each: Handover, group_epoch: int) -> HandoverInfo:
    """Return a handover as one of the epochs that it answers tells it.

    An epoch that did not free the resource does not tell for how long nobody ran it.
    """
    is_told = each.freed_by in {None, group_epoch}
    return HandoverInfo(
        str(each.resource),
        each.reason.kind.value,
        each.reason.detail,
        _seat(each.giver),
        _seat(each.taker),
        each.asked_ms,
        each.stopped_ms,
        each.gone_ms,
        each.revoked_ms,
        each.granted_ms,
        each.running_ms,
        each.first_batch_ms,
        each.downtime_ms if is_told else None,
        each.downtime_at_least_ms if is_told else None,
        each.downtime_at_most_ms if is_told else None,
        each.superseded_by,
        None if is_told else each.freed_by,
    )


def _absence(each: Absence) -> AbsenceInfo:
    return AbsenceInfo(
        SeatInfo(*each.seat),
        _ids(each.resources),
        each.since_ms,
        each.until_ms,
        each.is_back,
        each.superseded_by,
    )


def _seat(seat: Seat | None) -> SeatInfo | None:
    return None if seat is None else SeatInfo(*seat)


def _ids(resources: Resources) -> list[str]:
    return [str(each) for each in sorted(resources)]
