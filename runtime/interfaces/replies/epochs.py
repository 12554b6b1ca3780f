"""What became of a group's epochs: the list of them, and one in full.

Times are wall clock, in milliseconds; None where the log does not tell, or not yet.
"""

from msgspec import Struct, field


class SeatInfo(Struct, frozen=True):
    """A member, by its worker's URL (its member id where it has none) and its member id."""

    worker: str
    member_id: str


class EpochLine(Struct, frozen=True):
    """One epoch in short; the counts are told at the last of the epochs that a target answers."""

    group_epoch: int
    time_ms: int
    cause: str
    subject: str
    actor: str | None
    assignment_epoch: int | None
    """The target that answered it."""
    failed_attempts: int
    settled_after_ms: int | None
    moved: int | None
    returned: int | None
    placed: int | None
    kept: int | None
    parked: int | None
    unplaceable: int | None
    displaced: int | None
    retired: int | None


class EpochList(Struct, frozen=True):
    """The last epochs of a group, and how far back its log tells."""

    group_id: str
    first_epoch: int | None
    last_epoch: int | None
    is_trimmed: bool
    """Whether there were epochs before the first one."""
    epochs: list[EpochLine]


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


class EpochExplanation(Struct, frozen=True, omit_defaults=True):
    """One epoch in full: its cause, its target, each phase, and each resource that moved."""

    group_epoch: int
    cause: str
    subject: str
    actor: str | None
    time_ms: int
    took_ms: int | None
    """From the cause to the target that answers it."""
    attempts: list[FailedAttempt]
    target_change: TargetChangeInfo | None
    changed: str
    total_ms: int | None
    """From the cause until all that moved runs again."""
    phases: list[PhaseInfo]
    handovers: list[HandoverInfo]
    waits: list[AbsenceInfo]
    warning: str = ""
    """What keeps this from being told exactly."""
