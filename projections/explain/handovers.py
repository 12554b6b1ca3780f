"""How what a target moved changed hands: asked for, given up, granted, running again.

Followed in the control log from the target on. When the giver stopped is its own word, or
that of who saw its process end. Of one that fell silent it is known when it was last heard of,
and when the group gave it up: it stopped between the two.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ...events.log.frame import Entry
from ...events.model import Resource, Resources, RunState, Why
from ...events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
    TaskStatus,
    Tombstone,
)
from ..documents import Document
from ..moves import Outage, between
from .diff import Seat, TargetChange
from .reasons import DELETED, NEW, RETURN, Reason


@dataclass(frozen=True, slots=True)
class Handover(Outage):
    """One resource that a target moved; times are wall clock in milliseconds, None if unknown.

    `giver` is None where nobody had it, `taker` where nobody gets it. Between workers that
    both live it is asked for, stopped, revoked (acknowledged), granted, running.
    """

    resource: Resource
    reason: Reason
    giver: Seat | None = None
    taker: Seat | None = None
    asked_ms: int | None = None
    gone_ms: int | None = None
    """When the giver lost its seat, if it did before the resource was granted anew."""
    silent_ms: int | None = None
    """When the giver was last heard of, if it lost its seat because it fell silent."""
    revoked_ms: int | None = None
    granted_ms: int | None = None
    superseded_by: int | None = None
    """The assignment epoch that gave it to somebody else before it ran."""
    grant_epoch: int | None = None
    freed_by: int | None = field(default=None, compare=False)
    """The epoch that took the resource from its giver, if the target before did not place it.

    By it the giver lost its seat. For how long nobody ran the resource is that epoch's to tell,
    and no other's.
    """

    @property
    def is_left_out(self) -> bool:
        """Whether its giver is gone and nobody could take it then: who runs it next counts."""
        return self.taker is None and self.gone_ms is not None and self.reason != DELETED

    @property
    def downtime_at_least_ms(self) -> int | None:
        """From when the group gave the giver up, or it acknowledged; where the stop is unknown."""
        if self.stopped_ms is not None:
            return None
        since_ms = self.revoked_ms if self.gone_ms is None else self.gone_ms
        return between(since_ms, self.up_ms)

    @property
    def downtime_at_most_ms(self) -> int | None:
        """From the last word of a giver that fell silent; where the stop is unknown."""
        return None if self.stopped_ms is not None else between(self.silent_ms, self.up_ms)

    def to_json(self, group_epoch: int | None = None) -> Document:
        """Return the handover in plain data, as one of the epochs that it answers tells it.

        An epoch that did not free the resource does not tell for how long nobody ran it.
        """
        is_told = group_epoch is None or self.freed_by in {None, group_epoch}
        return {
            "id": str(self.resource),
            "reason": self.reason.kind.value,
            "detail": self.reason.detail,
            "from": dict(self.giver._asdict()) if self.giver else None,
            "to": dict(self.taker._asdict()) if self.taker else None,
            "asked_ms": self.asked_ms,
            "stopped_ms": self.stopped_ms,
            "gone_ms": self.gone_ms,
            "revoked_ms": self.revoked_ms,
            "granted_ms": self.granted_ms,
            "running_ms": self.running_ms,
            "first_batch_ms": self.first_batch_ms,
            "downtime_ms": self.downtime_ms if is_told else None,
            "downtime_at_least_ms": self.downtime_at_least_ms if is_told else None,
            "downtime_at_most_ms": self.downtime_at_most_ms if is_told else None,
            "superseded_by": self.superseded_by,
            **({} if is_told else {"freed_by": self.freed_by}),
        }


class Handovers:
    """A fold of the whole log that follows what one target moved."""

    def __init__(self, change: TargetChange) -> None:
        self._change = change
        self._is_aimed = False
        self._found = {each.resource: each for each in _begun(change)}
        self._given: defaultdict[str, set[Resource]] = defaultdict(set)
        self._taken: defaultdict[str, set[Resource]] = defaultdict(set)
        for each in self._found.values():
            if each.giver is not None:
                self._given[each.giver.member_id].add(each.resource)
            if each.taker is not None:
                self._taken[each.taker.member_id].add(each.resource)
        self._over: set[Resource] = set()
        """What a later target gave anew to who had it: how it leaves then is another story."""
        self._urls: dict[str, str] = {}
        self._names: dict[str, str] = {}
        """The member ids by which the change knows those who came back to their seats since."""
        self._steps: dict[str, CurrentAssignment] = {}
        self._departing: set[Resource] = set()
        """What members had whose seats have ended by the records since the last epoch."""

    @property
    def found(self) -> tuple[Handover, ...]:
        """What is known so far, ordered by resource."""
        return tuple(self._found[each] for each in sorted(self._found))

    def fold(self, record: Record, entry: Entry) -> None:
        """Take the next record of the log."""
        now_ms = entry.timestamp_ms
        if isinstance(record, TaskStatus):
            self._hear(record)
        elif isinstance(record, CurrentAssignment):
            self._step(record, now_ms)
        elif isinstance(record, MemberMetadata):
            self._sit(record, now_ms)
        elif isinstance(record, Tombstone) and record.kind is MemberMetadata:
            self._depart(str(record.key[0]), now_ms)
        elif isinstance(record, GroupMetadata):
            self._learn_end(record, now_ms)
            self._learn_who_freed(record)
        elif isinstance(record, TargetAssignment) and not record.error:
            self._aim(record)

    def _aim(self, record: TargetAssignment) -> None:
        if not self._is_aimed:
            self._is_aimed = record.assignment_epoch == self._change.assignment_epoch
            if not self._is_aimed:
                self._begin_anew(record)
            return
        shares = {self._name_of(each): share for each, share in record.members.items()}
        for resource, each in self._found.items():
            if _is_given_anew(each, shares):
                self._over.add(resource)
            if each.taker is None or each.up_ms is not None or each.superseded_by is not None:
                continue
            if resource not in shares.get(each.taker.member_id, ()):
                self._found[resource] = replace(each, superseded_by=record.assignment_epoch)

    def _sit(self, record: MemberMetadata, now_ms: int) -> None:
        """Learn who sits where; who comes back to a seat in this moment did not lose it."""
        member_id, came_back = record.member_id, record.succession
        self._urls[member_id] = record.url or member_id
        if came_back is None or came_back.assignment_epoch < self._change.assignment_epoch:
            return
        name = self._names[member_id] = self._name_of(came_back.target_id)
        for resource in self._given[name]:
            if self._found[resource].gone_ms == now_ms:
                self._found[resource] = replace(
                    self._found[resource], gone_ms=None, silent_ms=None, freed_by=None
                )

    def _name_of(self, member_id: str) -> str:
        return self._names.get(member_id, member_id)

    def _hear(self, status: TaskStatus) -> None:
        each = self._found.get(status.resource)
        if each is None or each.superseded_by is not None:
            return
        grant_epoch = status.token.grant_epoch
        if each.taker and each.taker.worker == status.worker and grant_epoch == each.grant_epoch:
            self._found[status.resource] = each.taken_up(status)
        elif (
            each.giver
            and each.giver.worker == status.worker
            and grant_epoch < self._change.assignment_epoch
        ):
            self._found[status.resource] = _heard_of_giver(each, status)
        elif each.is_left_out and self._is_aimed and grant_epoch > self._change.assignment_epoch:
            self._found[status.resource] = each.taken_up(status)

    def _step(self, step: CurrentAssignment, now_ms: int) -> None:
        before = self._steps.get(step.member_id)
        self._steps[step.member_id] = step
        name = self._name_of(step.member_id)
        if not self._is_aimed:
            self._start_anew(step.assigned.keys() & self._given[name], before)
            return
        self._ask_for_deleted(step)
        for resource in self._given[name]:
            each = self._found[resource]
            if not self._is_awaited(each):
                continue
            if resource in step.pending:
                self._found[resource] = replace(each, asked_ms=each.asked_ms or now_ms)
            elif resource not in step.assigned and _holds(before, resource):
                self._revoke(resource, now_ms)
        for resource in self._taken[name] & step.assigned.keys():
            each = self._found[resource]
            if each.up_ms is None and each.superseded_by is None:
                granted_ms = now_ms if each.granted_ms is None else each.granted_ms
                grant_epoch = step.assigned[resource]
                self._found[resource] = replace(
                    each, granted_ms=granted_ms, grant_epoch=grant_epoch
                )

    def _begin_anew(self, record: TargetAssignment) -> None:
        """Forget how a giver lost its seat before an earlier target gave it the same again.

        What such a target left without a place is told with the epoch that it answers.
        """
        for resource, each in self._found.items():
            if each.giver and resource in record.members.get(each.giver.member_id, ()):
                self._found[resource] = replace(each, gone_ms=None, silent_ms=None, freed_by=None)
            elif resource not in record.unplaceable:
                self._found[resource] = replace(each, freed_by=None)
            elif each.gone_ms is not None and each.freed_by is None:
                self._found[resource] = replace(each, freed_by=record.assignment_epoch)

    def _start_anew(self, granted: Iterable[Resource], before: CurrentAssignment | None) -> None:
        """Forget when a giver stopped what it is granted again before the target."""
        for resource in granted:
            if not _holds(before, resource):
                self._found[resource] = replace(self._found[resource], stopped_ms=None)

    def _ask_for_deleted(self, step: CurrentAssignment) -> None:
        """Learn who had what is deleted: whoever is asked for it."""
        for resource in self._change.retired & step.pending.keys():
            if self._found[resource].giver is None and resource not in self._over:
                giver = Seat(self._urls.get(step.member_id, step.member_id), step.member_id)
                self._found[resource] = replace(self._found[resource], giver=giver)
                self._given[self._name_of(step.member_id)].add(resource)

    def _depart(self, member_id: str, now_ms: int) -> None:
        step = self._steps.pop(member_id, None)
        for resource in self._given[self._name_of(member_id)]:
            each = self._found[resource]
            if not self._is_awaited(each):
                continue
            if each.gone_ms is None:  # if it joined anew, without this, that is another seat
                self._found[resource] = replace(each, gone_ms=now_ms)
                self._departing.add(resource)
            if self._is_aimed and _holds(step, resource):
                self._revoke(resource, now_ms)

    def _learn_end(self, bump: GroupMetadata, now_ms: int) -> None:
        """Learn since when a giver runs nothing, or is silent, that lost its seat with this."""
        if not bump.since_ms:
            return
        for resource, each in self._found.items():
            is_its = each.giver is not None and each.giver.worker == bump.cause.subject
            if not is_its or each.gone_ms != now_ms or each.stopped_ms is not None:
                continue
            if bump.cause.why in (Why.PROCESS_ENDED, Why.MEMBER_REMOVED):
                self._found[resource] = replace(each, stopped_ms=bump.since_ms)
            elif bump.cause.why is Why.SESSION_EXPIRED:
                self._found[resource] = replace(each, silent_ms=bump.since_ms)

    def _learn_who_freed(self, bump: GroupMetadata) -> None:
        """Learn which epoch's giver lost its seat, of those that this target answers."""
        for resource in self._departing if not self._is_aimed else ():
            self._found[resource] = replace(self._found[resource], freed_by=bump.group_epoch)
        self._departing.clear()

    def _is_awaited(self, each: Handover) -> bool:
        """Tell whether the giver still has to give it up because of this target."""
        is_given_up = each.revoked_ms is not None or each.granted_ms is not None
        return not is_given_up and each.resource not in self._over

    def _revoke(self, resource: Resource, now_ms: int) -> None:
        self._found[resource] = replace(self._found[resource], revoked_ms=now_ms)


def _begun(change: TargetChange) -> Iterator[Handover]:
    for each in change.moved:
        yield Handover(each.resource, change.reasons[each.resource], each.giver, each.taker)
    for each in change.returned:
        yield Handover(each.resource, RETURN, each.giver, each.taker)
    for each in change.placed:
        yield Handover(each.resource, NEW, None, each.taker)
    for resource, giver in change.displaced.items():
        yield Handover(resource, change.reasons[resource], giver)
    for resource in change.retired:
        yield Handover(resource, DELETED)


def _heard_of_giver(each: Handover, status: TaskStatus) -> Handover:
    """Return the handover with the giver's stop, whose word may come after the grant."""
    if status.state is RunState.UNASSIGNED:
        return replace(each, stopped_ms=status.time_ms)
    return each if each.granted_ms else replace(each, stopped_ms=None)


def _is_given_anew(each: Handover, shares: Mapping[str, Resources]) -> bool:
    """Tell whether a later target gives a resource to who had it, or one that ended to anybody."""
    if each.giver is not None:
        return each.resource in shares.get(each.giver.member_id, ())
    return each.taker is None and any(each.resource in share for share in shares.values())


def _holds(step: CurrentAssignment | None, resource: Resource) -> bool:
    return step is not None and (resource in step.assigned or resource in step.pending)
