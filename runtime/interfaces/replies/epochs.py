"""Replies that explain one epoch in full; the list of epochs is `EpochList` of the projections.

Times are wall clock, in milliseconds; None if the log does not have them, or not yet.
"""

from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import asdict

from ....events.model import Resources
from ....projections.explain.absences import Absence
from ....projections.explain.causes.clients import KafkaClient
from ....projections.explain.causes.owners import OwnerTerm
from ....projections.explain.diff import TargetChange, Transfer
from ....projections.explain.epochs import EpochReport, Explanation, GenerationReport, Phase
from .handovers import HandoverInfo, SeatInfo, clients_named, describe_handover, seat_info
from .words import CauseWord, GroupTypeWord


class FailedAttempt(Struct, frozen=True):
    """A failed computation of a target: its epoch, time and error."""

    assignment_epoch: int
    time_ms: int
    error: str


class KeptResources(Struct, frozen=True):
    """The resources that a member keeps."""

    seat: SeatInfo | None
    resources: list[str]


class TransferInfo(Struct, frozen=True):
    """A resource that is assigned to a member; `from` is None if it had no owner before."""

    id: str
    giver: SeatInfo | None = field(name="from")
    taker: SeatInfo | None = field(name="to")


class ParkedUntil(Struct, frozen=True):
    """A resource that waits for the return of its lost worker."""

    id: str
    deadline_ms: int


class LeftOut(Struct, frozen=True):
    """A resource that no worker can take."""

    id: str
    reason: str


class Displaced(Struct, frozen=True):
    """A resource that ran before, and that no worker can take any more."""

    id: str
    giver: SeatInfo | None = field(name="from")


class TargetChangeInfo(Struct, frozen=True):
    """The changes by a new target."""

    assignment_epoch: int
    time_ms: int
    settled_ms: int | None
    assignor: str
    computed_by: SeatInfo | None
    """None if the coordinator computed it."""
    kept: list[KeptResources]
    moved: list[TransferInfo]
    returned: list[TransferInfo]
    """Resources that go back to their former worker."""
    placed: list[TransferInfo]
    """Resources that are assigned for the first time."""
    parked: list[ParkedUntil]
    unplaceable: list[LeftOut]
    displaced: list[Displaced]
    retired: list[str]
    """Resources that are no longer configured."""
    next_moves_at_ms: int | None


class PhaseInfo(Struct, frozen=True):
    """One phase of an epoch, between its cause and the last moved resource running again."""

    phase: str
    from_ms: int | None
    until_ms: int | None
    took_ms: int | None
    note: str


class AbsenceInfo(Struct, frozen=True):
    """A member that was away, and the resources that waited for its return."""

    seat: SeatInfo
    resources: list[str]
    since_ms: int
    until_ms: int | None
    is_back: bool
    superseded_by: int | None


class EpochSummary(Struct, frozen=True, omit_defaults=True):
    """One epoch: its cause, and the changes by the target computed for it."""

    group_epoch: int
    cause: CauseWord
    subject: str
    actor: str | None
    time_ms: int
    took_ms: int | None
    """The time from the cause to the target."""
    attempts: list[FailedAttempt]
    target_change: TargetChangeInfo | None


class GenerationInfo(Struct, frozen=True):
    """A generation of classic members, whose leader assigns."""

    protocol_type: str
    protocol: str | None
    leader: str
    members: list[str]
    """Their instance ids, or their member ids if they are dynamic."""
    assigned_ms: int | None
    leader_name: str = ""
    """The leader's name for users, if it is not the member id."""


class EpochExplanation(EpochSummary, frozen=True, omit_defaults=True):
    """One epoch in full: its cause, its target, each phase, and each resource that moved."""

    changed: str
    total_ms: int | None
    """The time from the cause until all moved resources run again."""
    phases: list[PhaseInfo]
    handovers: list[HandoverInfo]
    waits: list[AbsenceInfo]
    warning: str = ""
    """Why this report may be inexact."""
    generation: GenerationInfo | None = None
    """Of a classic group; its target is the leader's assignment if that can be decoded."""
    type: GroupTypeWord = "connect"
    """The type of the group at that time; in other types the resources are topic partitions."""
    clients: dict[str, KafkaClient] = {}
    """The Kafka clients that occur here, by member id."""
    owners: list[OwnerTerm] = []
    """The nodes that took the group since the epoch before rose, where its log lies in a store."""


def describe_epoch(explanation: Explanation) -> EpochExplanation:
    """Return the explanation of an epoch as a reply."""
    summary = summarize_epoch(explanation.report)
    return EpochExplanation(
        **asdict(summary),
        changed=explanation.changed,
        total_ms=explanation.total_ms,
        phases=[_phase(each) for each in explanation.phases],
        handovers=[describe_handover(each, summary.group_epoch) for each in explanation.handovers],
        waits=[_absence(each) for each in explanation.waits],
        warning=explanation.warning,
        generation=_generation(explanation.report.generation),
        type=explanation.report.type.value,
        clients=clients_named(explanation.clients, _member_ids_in(explanation)),
        owners=[*explanation.owners],
    )


def _member_ids_in(explanation: Explanation) -> Iterator[str]:
    """Yield the member ids that occur in an explanation."""
    report, change = explanation.report, explanation.report.target_change
    yield report.bump.cause.subject
    yield from report.generation.members if report.generation else ()
    yield from (each.member_id for each in (change.kept if change else ()))
    if change and change.computed_by:
        yield change.computed_by.member_id
    for each in explanation.handovers:
        yield from (seat.member_id for seat in (each.previous_owner, each.new_owner) if seat)
    yield from (each.seat.member_id for each in explanation.waits)


def summarize_epoch(report: EpochReport) -> EpochSummary:
    """Return the report of an epoch as a reply."""
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


def _generation(report: GenerationReport | None) -> GenerationInfo | None:
    if report is None:
        return None
    spoken = report.protocol_type, report.protocol, report.leader
    return GenerationInfo(*spoken, list(report.members), report.assigned_ms, report.leader_name)


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
