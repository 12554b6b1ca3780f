"""How what a target moved changed hands: asked for, given up, granted, running again.

A handover is followed in the control log from its target on. Downtime is defined here, once, for
`explain`, `plan` and the demo: the time during which nobody ran a resource that changed hands. It
begins when the previous owner stopped, and ends when the new owner is up, which is its first batch
or, where no batch is known, its word that it runs.

The previous owner itself says when it stopped, or the group does, which saw its process end. Of one
that fell silent it is known when it was last heard of, and when the group gave it up: it stopped
between the two, and the downtime has bounds only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ...events.model import BATCHES_RUN, Resource, Resources, RunState, Why
from ...events.records import CurrentAssignment, GroupMetadata, TargetAssignment, TaskStatus
from .diff import Owner, TargetChange
from .reasons import DELETED, NEW, RETURN, Reason


@dataclass(frozen=True, slots=True)
class Handover:
    """One resource that a target moved; times are wall clock in milliseconds, None if unknown.

    `previous_owner` is None where nobody had it, `new_owner` where nobody gets it. Between workers
    that both live it is asked for, stopped, revoked (acknowledged), granted, running. Clocks that
    differ between workers make no time less than none.
    """

    resource: Resource
    reason: Reason
    previous_owner: Owner | None = None
    new_owner: Owner | None = None
    asked_ms: int | None = None
    """When the group first told the previous owner to give it up."""
    stopped_ms: int | None = None
    """When the previous owner stopped."""
    gone_ms: int | None = None
    """When the previous owner lost its seat, if that was before another was granted it."""
    silent_ms: int | None = None
    """When the previous owner was last heard of, if it lost its seat because it fell silent."""
    revoked_ms: int | None = None
    """When the previous owner acknowledged that it has it no more, or lost its seat with it."""
    granted_ms: int | None = None
    """When the new owner was first granted it."""
    running_ms: int | None = None
    """When the new owner first said that it runs."""
    first_batch_ms: int | None = None
    """When the new owner's first batch began."""
    superseded_by: int | None = None
    """The assignment epoch that gave it to somebody else before it ran."""
    grant_epoch: int | None = None
    """The member epoch at which the new owner was granted it, by which its words are known."""
    freed_by: int | None = field(default=None, compare=False)
    """The group epoch at which its owner lost its seat, if the target before did not place it.

    For how long nobody ran the resource is told with that epoch, and with no other.
    """

    @property
    def is_live(self) -> bool:
        """Whether its previous owner was present, and was asked for it until it gave it up."""
        return self.asked_ms is not None and self.gone_ms is None

    @property
    def is_left_out(self) -> bool:
        """Whether its owner is gone and nobody could take it then: its next worker counts."""
        return self.new_owner is None and self.gone_ms is not None and self.reason != DELETED

    @property
    def up_ms(self) -> int | None:
        """When it ran again: its first batch, or else the status that it runs."""
        return self.running_ms if self.first_batch_ms is None else self.first_batch_ms

    @property
    def downtime_ms(self) -> int | None:
        """From the stop to running again, None if either is not known."""
        return between(self.stopped_ms, self.up_ms)

    @property
    def downtime_at_least_ms(self) -> int | None:
        """From when the group gave the owner up, or it acknowledged; where the stop is unknown."""
        if self.stopped_ms is not None:
            return None
        since_ms = self.revoked_ms if self.gone_ms is None else self.gone_ms
        return between(since_ms, self.up_ms)

    @property
    def downtime_at_most_ms(self) -> int | None:
        """From the last word of a previous owner that fell silent; where the stop is unknown."""
        return None if self.stopped_ms is not None else between(self.silent_ms, self.up_ms)

    def taken_up(self, status: TaskStatus) -> "Handover":
        """Return the handover after a word of the new owner."""
        if status.state is not RunState.RUNNING or self.first_batch_ms is not None:
            return self
        running_ms = status.time_ms if self.running_ms is None else self.running_ms
        first_batch_ms = status.time_ms if status.reason == BATCHES_RUN else None
        return replace(self, running_ms=running_ms, first_batch_ms=first_batch_ms)


def between(start_ms: int | None, end_ms: int | None) -> int | None:
    """Return the time between two moments, None if either is not known."""
    return None if start_ms is None or end_ms is None else max(0, end_ms - start_ms)


def handovers_of(change: TargetChange) -> Iterator[Handover]:
    """Yield the moves of a target as new handovers."""
    for each in change.moved:
        yield Handover(
            each.resource, change.reasons[each.resource], each.previous_owner, each.new_owner
        )
    for each in change.returned:
        yield Handover(each.resource, RETURN, each.previous_owner, each.new_owner)
    for each in change.placed:
        yield Handover(each.resource, NEW, None, each.new_owner)
    for resource, previous_owner in change.displaced.items():
        yield Handover(resource, change.reasons[resource], previous_owner)
    for resource in change.retired:
        yield Handover(resource, DELETED)


class OwnerEnd(NamedTuple):
    """The end of an owner's seat, with its epoch: when its member stopped, or fell silent."""

    stopped_ms: int | None = None
    silent_ms: int | None = None

    @classmethod
    def of(cls, bump: GroupMetadata) -> "OwnerEnd":
        """Return the end of a seat by an epoch's cause; its times may be unknown."""
        if bump.cause.why in (Why.PROCESS_ENDED, Why.MEMBER_REMOVED):
            return cls(stopped_ms=bump.since_ms or None)
        is_silent = bump.cause.why is Why.SESSION_EXPIRED
        return cls(silent_ms=bump.since_ms or None) if is_silent else cls()


@dataclass(eq=False, slots=True)
class FollowedHandover:
    """A handover that is followed record by record until it is complete."""

    handover: Handover
    assignment_epoch: int
    """Of the target that moved the resource."""
    previous_id: str
    """The id that the previous owner has now: a static member comes back under another one."""
    new_id: str
    is_over: bool = False
    """Whether a later target gave it back: how it leaves then is another story."""
    is_partition: bool = False
    """Whether members never say that they run it: a consumer reads a partition while it has it."""

    @classmethod
    def of(
        cls, handover: Handover, assignment_epoch: int, *, is_partition: bool = False
    ) -> "FollowedHandover":
        """Return a handover to be followed from its target on."""
        previous_id, new_id = (
            each.member_id if each else "" for each in (handover.previous_owner, handover.new_owner)
        )
        return cls(handover, assignment_epoch, previous_id, new_id, is_partition=is_partition)

    @property
    def is_awaited(self) -> bool:
        """Whether the previous owner still has to give it up because of this target."""
        each = self.handover
        return each.revoked_ms is None and each.granted_ms is None and not self.is_over

    @property
    def is_pending(self) -> bool:
        """Whether the new owner still has to be granted it, or to run it."""
        each = self.handover
        return each.new_owner is not None and each.up_ms is None and each.superseded_by is None

    @property
    def needs_previous_owner(self) -> bool:
        """Whether the resource was deleted, and no member was asked for it yet."""
        return (
            self.handover.previous_owner is None
            and self.handover.new_owner is None
            and not self.is_over
        )

    def ask_previous_owner(self, previous_owner: Owner) -> None:
        """Set the member that is asked for a deleted resource."""
        self.handover = replace(self.handover, previous_owner=previous_owner)
        self.previous_id = previous_owner.member_id

    def apply_status(self, status: TaskStatus) -> None:
        """Apply a status of the resource."""
        each, grant_epoch = self.handover, status.token.grant_epoch
        if each.superseded_by is not None:
            return
        if (
            each.new_owner
            and each.new_owner.worker == status.worker
            and grant_epoch == each.grant_epoch
        ):
            self.handover = each.taken_up(status)
        elif (
            each.previous_owner
            and each.previous_owner.worker == status.worker
            and grant_epoch < self.assignment_epoch
        ):
            self._apply_status_of_previous(status)
        elif each.is_left_out and grant_epoch > self.assignment_epoch:
            self.handover = each.taken_up(status)

    def _apply_status_of_previous(self, status: TaskStatus) -> None:
        """Apply a status of the previous owner; that it stopped may come after the grant."""
        if status.state is RunState.UNASSIGNED:
            self.handover = replace(self.handover, stopped_ms=status.time_ms)
        elif not self.handover.granted_ms:
            self.handover = replace(self.handover, stopped_ms=None)

    def apply_step_of_previous(
        self, step: CurrentAssignment, before: CurrentAssignment | None, now_ms: int
    ) -> None:
        """Apply a step of the previous owner: it is asked for the resource, or gave it up."""
        resource = self.handover.resource
        if not self.is_awaited:
            return
        if resource in step.pending:
            self.handover = replace(self.handover, asked_ms=self.handover.asked_ms or now_ms)
        elif resource not in step.assigned and holds(before, resource):
            stopped_ms = now_ms if self.is_partition else self.handover.stopped_ms
            self.handover = replace(self.handover, revoked_ms=now_ms, stopped_ms=stopped_ms)

    def apply_step_of_new(self, step: CurrentAssignment, now_ms: int) -> None:
        """Apply a step of the new owner, which may grant it the resource."""
        each = self.handover
        if each.resource in step.assigned and self.is_pending:
            granted_ms = now_ms if each.granted_ms is None else each.granted_ms
            self.handover = replace(
                each, granted_ms=granted_ms, grant_epoch=step.assigned[each.resource]
            )
            if self.is_partition:
                self.handover = replace(self.handover, running_ms=granted_ms)

    def end_previous_owner(self, step: CurrentAssignment | None, now_ms: int) -> None:
        """End the previous owner's seat, with its last step."""
        if not self.is_awaited:
            return
        if self.handover.gone_ms is None:  # if it joined again meanwhile, that is another seat
            self.handover = replace(self.handover, gone_ms=now_ms)
        if holds(step, self.handover.resource):
            self.handover = replace(self.handover, revoked_ms=now_ms)

    def apply_end(self, worker: str, end: OwnerEnd, now_ms: int) -> None:
        """Record when the owner stopped or fell silent, if its seat has just ended."""
        each = self.handover
        is_its = each.previous_owner is not None and each.previous_owner.worker == worker
        if is_its and each.gone_ms == now_ms and each.stopped_ms is None:
            self.handover = replace(each, stopped_ms=end.stopped_ms, silent_ms=end.silent_ms)

    def keep_previous_owner(self, now_ms: int) -> None:
        """Treat the previous owner as present: it rejoined in the batch that removed it."""
        if self.handover.gone_ms == now_ms:
            self.handover = replace(self.handover, gone_ms=None, silent_ms=None, freed_by=None)

    def apply_target(self, target: TargetAssignment) -> None:
        """Apply a later target, which may assign the resource to another member."""
        each, shares = self.handover, target.members
        if _is_given_anew(each, self.previous_id, shares):
            self.is_over = True
        if self.is_pending and each.resource not in shares.get(self.new_id, ()):
            self.handover = replace(self.handover, superseded_by=target.assignment_epoch)


def holds(step: CurrentAssignment | None, resource: Resource) -> bool:
    """Return whether a member holds a resource after a step."""
    return step is not None and (resource in step.assigned or resource in step.pending)


def _is_given_anew(each: Handover, previous_id: str, shares: Mapping[str, Resources]) -> bool:
    """Return whether a target assigns a resource back, or a deleted one to any member."""
    if each.previous_owner is not None:
        return each.resource in shares.get(previous_id, ())
    return each.new_owner is None and any(each.resource in share for share in shares.values())
