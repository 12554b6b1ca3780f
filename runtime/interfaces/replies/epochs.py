"""What became of an epoch, in full; the list of all is `EpochList` of the projections as it is.

Times are wall clock, in milliseconds; None where the log does not tell, or not yet.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import asdict

from ....events.model import Resources
from ....projections.explain.absences import Absence
from ....projections.explain.causes.clients import KafkaClient
from ....projections.explain.diff import TargetChange, Transfer
from ....projections.explain.epochs import EpochReport, Explanation, GenerationReport, Phase
from .handovers import HandoverInfo, SeatInfo, describe_handover, seat_info


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
    leader_name: str = ""
    """By what people know its leader, where that is not by the member id."""


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
    """Of a classic group: what its leader assigned, where that can be read, is its target."""
    type: str = "connect"
    """That of the group at that time; resources of the others are partitions of topics."""
    clients: dict[str, KafkaClient] = {}
    """Those of Kafka's clients that are named here, by member id."""


def describe_epoch(told: Explanation) -> EpochExplanation:
    """Return an explanation as it is answered."""
    summary = summarize_epoch(told.report)
    return EpochExplanation(
        **asdict(summary),
        changed=told.changed,
        total_ms=told.total_ms,
        phases=[_phase(each) for each in told.phases],
        handovers=[describe_handover(each, summary.group_epoch) for each in told.handovers],
        waits=[_absence(each) for each in told.waits],
        warning=told.warning,
        generation=_generation(told.report.generation),
        type=told.report.type.value,
        clients=clients_named(told.clients, _named(told)),
    )


def clients_named(known: Mapping[str, KafkaClient], names: Iterable[str]) -> dict[str, KafkaClient]:
    """Return the clients among those that are named by member id; a subject may name more."""
    named = {each.partition(" and ")[0] for each in names}
    return {each: known[each] for each in sorted(named) if each in known}


def _named(told: Explanation) -> Iterator[str]:
    """Yield the member ids that an explanation names."""
    report, change = told.report, told.report.target_change
    yield report.bump.cause.subject
    yield from report.generation.members if report.generation else ()
    yield from (each.member_id for each in (change.kept if change else ()))
    if change and change.computed_by:
        yield change.computed_by.member_id
    for each in told.handovers:
        yield from (seat.member_id for seat in (each.giver, each.taker) if seat)
    yield from (each.seat.member_id for each in told.waits)


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
        seat_info(change.computed_by),
        [KeptResources(seat_info(each), _ids(change.kept[each])) for each in sorted(change.kept)],
        _transfers(change.moved),
        _transfers(change.returned),
        _transfers(change.placed),
        [ParkedUntil(str(each), due) for each, due in sorted(change.parked.items())],
        [LeftOut(str(each), reason) for each, reason in sorted(change.unplaceable.items())],
        [
            Displaced(str(each), seat_info(giver))
            for each, giver in sorted(change.displaced.items())
        ],
        _ids(change.retired),
        change.next_moves_at_ms,
    )


def _generation(told: GenerationReport | None) -> GenerationInfo | None:
    if told is None:
        return None
    spoken = told.protocol_type, told.protocol, told.leader
    return GenerationInfo(*spoken, list(told.members), told.assigned_ms, told.leader_name)


def _transfers(transfers: Iterable[Transfer]) -> list[TransferInfo]:
    return [
        TransferInfo(str(each), seat_info(giver), seat_info(to)) for each, giver, to in transfers
    ]


def _phase(each: Phase) -> PhaseInfo:
    return PhaseInfo(each.name, each.from_ms, each.until_ms, each.took_ms, each.note)


def _absence(each: Absence) -> AbsenceInfo:
    return AbsenceInfo(
        SeatInfo(*each.seat),
        _ids(each.resources),
        each.since_ms,
        each.until_ms,
        each.is_back,
        each.superseded_by,
    )


def _ids(resources: Resources) -> list[str]:
    return [str(each) for each in sorted(resources)]
