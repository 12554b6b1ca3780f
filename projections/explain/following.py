"""Follows everything that changes hands, from target to target, in one pass through the log.

What is known of a giver before the target that moves its resource, the fold keeps for every
resource: when each worker last stopped it, and how the member that had it lost its seat. With
the target a handover begins, and is followed until it is at its end, and beyond: a worker's word
may come late.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ...events.connectors import TaskStatus
from ...events.model import Resource, RunState
from ...events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from .diff import Homes, Seat, TargetChange, seat_of
from .handovers import FollowedHandover, Handover, SeatEnd, handovers_of

FOLLOWED_MAX: Final = 4
"""How many handovers of a resource hear of its statuses, the latest ones."""
LATEST_MAX: Final = 10_000
"""How many of a group's handovers are kept, the latest ones, whatever became of them."""


@dataclass(slots=True)
class _Loss:
    """How the member that had a resource last lost its seat; see `Handover`."""

    member_id: str
    worker: str
    gone_ms: int
    stopped_ms: int | None = None
    silent_ms: int | None = None
    freed_by: int | None = None


class Handovers:
    """A fold of the whole log; the reader that owns `homes` moves them from target to target."""

    def __init__(self, homes: Homes, urls: Mapping[str, str]) -> None:
        """`urls` are those of the members, by member id."""
        self._homes = homes
        self._urls = urls
        self.latest: deque[FollowedHandover] = deque(maxlen=LATEST_MAX)
        """Those that began last, in order."""
        self._steps: dict[str, CurrentAssignment] = {}
        """The last step of each member, by member id."""
        self._stops: dict[tuple[Resource, str], int] = {}
        """When a worker said that it stopped a resource, if that was its last word of it."""
        self._losses: dict[Resource, _Loss] = {}
        """Of the resources whose last home is gone."""
        self._lost: list[Resource] = []
        """Those that lost their home by the records since the last epoch."""
        self._departed: list[FollowedHandover] = []
        """Those whose givers lost their seats by the records since the last epoch."""
        self._open: list[FollowedHandover] = []
        """Those that were not at their end when the last target came, and all since."""
        self._by_giver: defaultdict[str, list[FollowedHandover]] = defaultdict(list)
        self._by_taker: defaultdict[str, list[FollowedHandover]] = defaultdict(list)
        self._deleted: defaultdict[Resource, list[FollowedHandover]] = defaultdict(list)
        """Those of deleted resources for which nobody was asked yet."""
        self._heard: defaultdict[Resource, list[FollowedHandover]] = defaultdict(list)
        """Those that hear of a resource's statuses, the latest last."""

    def take(self, record: Record, now_ms: int) -> None:
        """Take the next record of the log but for statuses and targets, which have their own."""
        if isinstance(record, CurrentAssignment):
            self._take_step(record, now_ms)
        elif isinstance(record, MemberMetadata):
            self._take_metadata(record, now_ms)
        elif isinstance(record, Tombstone) and record.kind is MemberMetadata:
            self._depart(str(record.key[0]), now_ms)
        elif isinstance(record, GroupMetadata):
            self._end(record, now_ms)

    def take_status(self, status: TaskStatus) -> None:
        """Take the next status of the log."""
        for each in self._heard.get(status.resource, ()):
            each.take_status(status)
        if status.state is RunState.UNASSIGNED:
            self._stops[status.resource, status.worker] = status.time_ms
        else:
            self._stops.pop((status.resource, status.worker), None)

    def take_target(
        self, target: TargetAssignment, change: TargetChange | None, *, are_partitions: bool = False
    ) -> tuple[FollowedHandover, ...]:
        """Take a target, and begin to follow what it moves; None: what that is is not known.

        Resources of consumers are partitions, of which nobody says that they run. Returns the
        handovers that begin. `forget` comes after it, once the homes have moved.
        """
        for each in self._open:
            each.take_target(target)
        # The last one counts: a target may still move what was deleted since it was computed.
        handovers = {each.resource: each for each in handovers_of(change)} if change else {}
        epoch = target.assignment_epoch
        begun = tuple(
            self._begin(each, epoch, is_partition=are_partitions) for each in handovers.values()
        )
        self.latest.extend(begun)
        still = [*self._open, *begun]
        self._open = [each for each in still if each.is_awaited or each.is_pending]
        self._by_giver.clear()
        self._by_taker.clear()
        self._deleted.clear()
        for each in self._open:
            self._by_giver[each.giver_id].append(each)
            self._by_taker[each.taker_id].append(each)
            if each.needs_giver:
                self._deleted[each.handover.resource].append(each)
        return begun

    def forget(self, target: TargetAssignment) -> None:
        """Let go of how homes were lost that have been given to somebody by a target."""
        for resource, loss in list(self._losses.items()):
            if self._homes.has_place(resource) or resource not in self._homes.last:
                del self._losses[resource]
            elif resource not in target.unplaceable:
                loss.freed_by = None
            elif loss.freed_by is None:
                loss.freed_by = target.assignment_epoch

    def _begin(self, each: Handover, epoch: int, *, is_partition: bool) -> FollowedHandover:
        giver, loss = each.giver, self._losses.get(each.resource)
        if giver is not None and loss is not None and loss.member_id == giver.member_id:
            each = replace(
                each,
                stopped_ms=loss.stopped_ms,
                gone_ms=loss.gone_ms,
                silent_ms=loss.silent_ms,
                freed_by=loss.freed_by,
            )
        stopped_ms = self._stops.get((each.resource, giver.worker)) if giver else None
        if stopped_ms is not None:
            each = replace(each, stopped_ms=stopped_ms)
        followed = FollowedHandover.of(each, epoch, is_partition=is_partition)
        heard = self._heard[each.resource]
        heard.append(followed)
        del heard[:-FOLLOWED_MAX]
        return followed

    def _take_step(self, step: CurrentAssignment, now_ms: int) -> None:
        member_id = step.member_id
        before = self._steps.get(member_id)
        self._steps[member_id] = step
        worker = self._urls.get(member_id, member_id)
        for resource in step.assigned.keys() - _held_resources(before):
            self._stops.pop((resource, worker), None)
        for resource in self._deleted.keys() & step.pending.keys():
            for each in self._deleted.pop(resource):
                each.ask_giver(Seat(worker, member_id))
                self._by_giver[member_id].append(each)
        for each in self._by_giver.get(member_id, ()):
            each.take_givers_step(step, before, now_ms)
        for each in self._by_taker.get(member_id, ()):
            each.take_takers_step(step, now_ms)

    def _take_metadata(self, record: MemberMetadata, now_ms: int) -> None:
        """Take a seat's successor, if it is one: a member that comes back did not lose its seat."""
        member_id, came_back = record.member_id, record.succession
        if came_back is None:
            return
        for each in self._by_giver.pop(came_back.target_id, ()):
            each.keep_giver(now_ms)
            each.giver_id = member_id
            self._by_giver[member_id].append(each)
        for each in self._by_taker.pop(came_back.target_id, ()):
            each.taker_id = member_id
            self._by_taker[member_id].append(each)

    def _depart(self, member_id: str, now_ms: int) -> None:
        step = self._steps.pop(member_id, None)
        for resource in self._homes.of(member_id):
            loss = self._losses.get(resource)
            if loss is None or loss.member_id != member_id:
                worker = seat_of(self._homes.last[resource]).worker
                self._losses[resource] = _Loss(member_id, worker, now_ms)
                self._lost.append(resource)
        for each in self._by_giver.get(member_id, ()):
            each.lose_giver(step, now_ms)
            self._departed.append(each)

    def _end(self, bump: GroupMetadata, now_ms: int) -> None:
        """Learn what an epoch says of those that lost their seats with it."""
        end, worker = SeatEnd.of(bump), bump.cause.subject
        for resource in self._lost:
            loss = self._losses.get(resource)
            if loss is None:
                continue
            is_its = loss.worker == worker and loss.gone_ms == now_ms
            if is_its and (resource, loss.worker) not in self._stops:
                loss.stopped_ms, loss.silent_ms = end
            loss.freed_by = bump.group_epoch
        for each in self._departed if any(end) else ():
            each.take_end(worker, end, now_ms)
        self._lost.clear()
        self._departed.clear()


def _held_resources(step: CurrentAssignment | None) -> set[Resource]:
    """Return what a member holds after a step."""
    return step.assigned.keys() | step.pending.keys() if step is not None else set()
