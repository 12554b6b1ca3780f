"""Follows everything that changes hands, from target to target, in one pass through the log.

Facts of a previous owner may lie before the target that moves its resource. So the fold keeps for
every resource when each worker last stopped it, and how the member that had it lost its seat. With
the target a handover begins, and is followed until it is at its end, and beyond: a worker's word
may come late.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ...events.model import Resource, RunState
from ...events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
    TaskStatus,
    Tombstone,
)
from .diff import Owner, Owners, TargetChange, owner_of
from .handovers import FollowedHandover, Handover, OwnerEnd, handovers_of

FOLLOWED_MAX: Final = 4
"""How many handovers of a resource on_record of its statuses, the latest ones."""
LATEST_MAX: Final = 10_000
"""How many of a group's handovers are kept, the latest ones, whatever became of them."""


@dataclass(slots=True)
class _Loss:
    """How the last owner of a resource lost its seat; see `Handover`."""

    member_id: str
    worker: str
    gone_ms: int
    stopped_ms: int | None = None
    silent_ms: int | None = None
    freed_by: int | None = None


class Handovers:
    """A fold of the whole log; the reader that owns `owners` moves them from target to target."""

    def __init__(self, owners: Owners, urls: Mapping[str, str]) -> None:
        """`urls` are those of the members, by member id."""
        self._owners = owners
        self._urls = urls
        self.latest: deque[FollowedHandover] = deque(maxlen=LATEST_MAX)
        """Those that began last, in order."""
        self._steps: dict[str, CurrentAssignment] = {}
        """The last step of each member, by member id."""
        self._stops: dict[tuple[Resource, str], int] = {}
        """When a worker said that it stopped a resource, if that was its last word of it."""
        self._losses: dict[Resource, _Loss] = {}
        """Of the resources whose last owner is gone."""
        self._lost: list[Resource] = []
        """Those that lost their owner by the records since the last epoch."""
        self._departed: list[FollowedHandover] = []
        """Those whose previous owners lost their seats by the records since the last epoch."""
        self._open: list[FollowedHandover] = []
        """Those that were not at their end when the last target came, and all since."""
        self._by_previous: defaultdict[str, list[FollowedHandover]] = defaultdict(list)
        """The handovers that are followed, by the previous owner's member id."""
        self._by_new: defaultdict[str, list[FollowedHandover]] = defaultdict(list)
        """The handovers that are followed, by the new owner's member id."""
        self._deleted: defaultdict[Resource, list[FollowedHandover]] = defaultdict(list)
        """Those of deleted resources for which nobody was asked yet."""
        self._heard: defaultdict[Resource, list[FollowedHandover]] = defaultdict(list)
        """Those that on_record of a resource's statuses, the latest last."""

    def apply(self, record: Record, now_ms: int) -> None:
        """Apply the next record of the log but for statuses and targets, which have their own."""
        if isinstance(record, CurrentAssignment):
            self._apply_step(record, now_ms)
        elif isinstance(record, MemberMetadata):
            self._apply_metadata(record, now_ms)
        elif isinstance(record, Tombstone) and record.kind is MemberMetadata:
            self._depart(str(record.key[0]), now_ms)
        elif isinstance(record, GroupMetadata):
            self._end(record, now_ms)

    def apply_status(self, status: TaskStatus) -> None:
        """Apply the next status of the log."""
        for each in self._heard.get(status.resource, ()):
            each.apply_status(status)
        if status.state is RunState.UNASSIGNED:
            self._stops[status.resource, status.worker] = status.time_ms
        else:
            self._stops.pop((status.resource, status.worker), None)

    def apply_target(
        self, target: TargetAssignment, change: TargetChange | None, *, are_partitions: bool = False
    ) -> tuple[FollowedHandover, ...]:
        """Follow the moves of a target; None: its changes are unknown.

        Resources of consumers are partitions, of which nobody says that they run. Returns the
        handovers that begin. `forget` comes after it, once the owners have moved.
        """
        for each in self._open:
            each.apply_target(target)
        # The last one counts: a target may still move what was deleted since it was computed.
        handovers = {each.resource: each for each in handovers_of(change)} if change else {}
        epoch = target.assignment_epoch
        begun = tuple(
            self._begin(each, epoch, is_partition=are_partitions) for each in handovers.values()
        )
        self.latest.extend(begun)
        still = [*self._open, *begun]
        self._open = [each for each in still if each.is_awaited or each.is_pending]
        self._by_previous.clear()
        self._by_new.clear()
        self._deleted.clear()
        for each in self._open:
            self._by_previous[each.previous_id].append(each)
            self._by_new[each.new_id].append(each)
            if each.needs_previous_owner:
                self._deleted[each.handover.resource].append(each)
        return begun

    def forget(self, target: TargetAssignment) -> None:
        """Drop the recorded loss of every resource that a target has assigned again."""
        for resource, loss in list(self._losses.items()):
            if self._owners.has_place(resource) or resource not in self._owners.last:
                del self._losses[resource]
            elif resource not in target.unplaceable:
                loss.freed_by = None
            elif loss.freed_by is None:
                loss.freed_by = target.assignment_epoch

    def _begin(self, each: Handover, epoch: int, *, is_partition: bool) -> FollowedHandover:
        previous_owner, loss = each.previous_owner, self._losses.get(each.resource)
        if (
            previous_owner is not None
            and loss is not None
            and loss.member_id == previous_owner.member_id
        ):
            each = replace(
                each,
                stopped_ms=loss.stopped_ms,
                gone_ms=loss.gone_ms,
                silent_ms=loss.silent_ms,
                freed_by=loss.freed_by,
            )
        stopped_ms = (
            self._stops.get((each.resource, previous_owner.worker)) if previous_owner else None
        )
        if stopped_ms is not None:
            each = replace(each, stopped_ms=stopped_ms)
        followed = FollowedHandover.of(each, epoch, is_partition=is_partition)
        heard = self._heard[each.resource]
        heard.append(followed)
        del heard[:-FOLLOWED_MAX]
        return followed

    def _apply_step(self, step: CurrentAssignment, now_ms: int) -> None:
        member_id = step.member_id
        before = self._steps.get(member_id)
        self._steps[member_id] = step
        worker = self._urls.get(member_id, member_id)
        for resource in step.assigned.keys() - _held_resources(before):
            self._stops.pop((resource, worker), None)
        for resource in self._deleted.keys() & step.pending.keys():
            for each in self._deleted.pop(resource):
                each.ask_previous_owner(Owner(worker, member_id))
                self._by_previous[member_id].append(each)
        for each in self._by_previous.get(member_id, ()):
            each.apply_step_of_previous(step, before, now_ms)
        for each in self._by_new.get(member_id, ()):
            each.apply_step_of_new(step, now_ms)

    def _apply_metadata(self, record: MemberMetadata, now_ms: int) -> None:
        """Keep the seat of a returned member: it did not lose it."""
        member_id, came_back = record.member_id, record.succession
        if came_back is None:
            return
        for each in self._by_previous.pop(came_back.target_id, ()):
            each.keep_previous_owner(now_ms)
            each.previous_id = member_id
            self._by_previous[member_id].append(each)
        for each in self._by_new.pop(came_back.target_id, ()):
            each.new_id = member_id
            self._by_new[member_id].append(each)

    def _depart(self, member_id: str, now_ms: int) -> None:
        step = self._steps.pop(member_id, None)
        for resource in self._owners.of(member_id):
            loss = self._losses.get(resource)
            if loss is None or loss.member_id != member_id:
                worker = owner_of(self._owners.last[resource]).worker
                self._losses[resource] = _Loss(member_id, worker, now_ms)
                self._lost.append(resource)
        for each in self._by_previous.get(member_id, ()):
            each.end_previous_owner(step, now_ms)
            self._departed.append(each)

    def _end(self, bump: GroupMetadata, now_ms: int) -> None:
        """End the seats of the members that an epoch removed."""
        end, worker = OwnerEnd.of(bump), bump.cause.subject
        for resource in self._lost:
            loss = self._losses.get(resource)
            if loss is None:
                continue
            is_its = loss.worker == worker and loss.gone_ms == now_ms
            if is_its and (resource, loss.worker) not in self._stops:
                loss.stopped_ms, loss.silent_ms = end
            loss.freed_by = bump.group_epoch
        for each in self._departed if any(end) else ():
            each.apply_end(worker, end, now_ms)
        self._lost.clear()
        self._departed.clear()


def _held_resources(step: CurrentAssignment | None) -> set[Resource]:
    """Return the resources that a member holds after a step."""
    return step.assigned.keys() | step.pending.keys() if step is not None else set()
