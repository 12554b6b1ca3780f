"""Checks who may commit, fetch and delete a group's offsets, with the errors of a Kafka broker.

A member commits with its epoch, or in a classic group with its generation, so that commits of an
earlier owner of a partition are refused. An earlier epoch of the member is accepted for partitions
that it has had since then (KIP-1251): its consumer may not know the new epoch yet, and some clients
count a refused commit as failed. Other clients may commit only while the group has no members. This
is how tools reset offsets, and how consumers commit that assign partitions to themselves.
"""

from collections.abc import Collection, Mapping
from typing import Final

from ....events.group import Group
from ....events.log.space import DiskSpace
from ....events.model import GroupType, Resource
from ....events.records import Topic
from ...classic.coordinator import ClassicCoordinator
from ...classic.embedded import CONSUMER, topics_of_consumers
from ...group.members.commit import OffsetLedger
from ...messages.errors import Error
from ...messages.offsets import (
    NO_EPOCH,
    EndTransaction,
    OffsetCall,
    OffsetCommit,
    OffsetDelete,
    OffsetFetch,
    OffsetReply,
)
from ...timing import Now
from .calls import (
    commit_offsets,
    delete_offsets,
    end_transaction,
    fetch_offsets,
    refuse_call,
)

MOST_OFFSETS: Final = 100_000
"""The maximum number of partitions in a call."""

UNKNOWN_TO_PRODUCERS: Final = frozenset({Error.STALE_MEMBER_EPOCH, Error.GROUP_ID_NOT_FOUND})
"""The errors for which producers are told ILLEGAL_GENERATION."""

Refusal = tuple[Error, str]


class OffsetHandler:
    """Handles the offset calls of one group."""

    def __init__(self, group: Group, classic: ClassicCoordinator, ledger: OffsetLedger) -> None:
        self._group, self._classic, self._ledger = group, classic, ledger

    def answer(
        self, call: OffsetCall, topics: Mapping[str, Topic] | None, space: DiskSpace, now: Now
    ) -> OffsetReply:
        """Execute or refuse a call; `topics` are those of the cluster, None: unknown."""
        if refused := self._refuse(call, space, now):
            return refuse_call(call, *refused, topics)
        if isinstance(call, OffsetFetch):
            return fetch_offsets(self._ledger, call, topics)
        if isinstance(call, EndTransaction):
            return end_transaction(self._ledger, call, topics)
        if isinstance(call, OffsetDelete):
            return delete_offsets(self._ledger, call, self._topics_in_use(), topics)
        return commit_offsets(self._ledger, call, topics, now.wall_ms)

    def _refuse(self, call: OffsetCall, space: DiskSpace, now: Now) -> Refusal | None:
        if call.group_id != self._group.group_id:
            return Error.NOT_COORDINATOR, "the group is not served here"
        if _size_of(call) > MOST_OFFSETS:
            return Error.INVALID_REQUEST, f"more than {MOST_OFFSETS} partitions are named"
        if isinstance(call, OffsetFetch):
            error = self._refuse_fetch(call)
        elif space.is_low:
            return Error.COORDINATOR_NOT_AVAILABLE, space.refusal()
        elif isinstance(call, EndTransaction):
            error = None  # its members, if there are any, have committed these offsets already
        elif isinstance(call, OffsetDelete):
            error = self._refuse_delete()
        elif call.transaction is not None:
            error = self._refuse_transaction(call, now)
        else:
            error = self._refuse_commit(call, now)
        return None if error is None else (error, "")

    def _refuse_fetch(self, call: OffsetFetch) -> Error | None:
        has_member = call.member_id is not None or call.epoch > NO_EPOCH
        if has_member and self._group.type is GroupType.CONSUMER:
            return self._refuse_member(call.member_id or "", call.epoch)
        return None

    def _topics_in_use(self) -> Collection[str]:
        """Return the topics to which members of either protocol subscribe."""
        group = self._group
        return topics_of_consumers(self._classic.members()) | group.subscribers.keys()

    def _refuse_delete(self) -> Error | None:
        """Refuse to delete offsets while the group has members that subscribe to unknown topics."""
        classic = self._classic
        if not classic.is_empty and classic.protocol_type != CONSUMER:
            return Error.NON_EMPTY_GROUP
        is_known = self._group.exists or self._ledger.has_consumer_offsets()
        return None if is_known else Error.GROUP_ID_NOT_FOUND

    def _refuse_commit(self, call: OffsetCommit, now: Now) -> Error | None:
        group = self._group
        if group.members:
            member = group.members.get(call.member_id)
            if member and member.metadata.classic is None and not call.knows_epochs:
                return Error.UNSUPPORTED_VERSION
            error = self._refuse_member(call.member_id, call.epoch)
            is_owner = error is Error.STALE_MEMBER_EPOCH and self._had_and_has_all(call)
            return None if is_owner else error
        if not self._classic.is_empty:
            return self._classic.renew_session(
                call.member_id, call.instance_id, call.epoch, now.steady_ms
            )
        if call.epoch <= NO_EPOCH:
            return None
        if group.exists or self._ledger.has_consumer_offsets():
            return Error.UNKNOWN_MEMBER_ID
        return Error.GROUP_ID_NOT_FOUND if call.knows_epochs else Error.ILLEGAL_GENERATION

    def _refuse_transaction(self, call: OffsetCommit, now: Now) -> Error | None:
        """Refuse to commit in a transaction; a producer that names no member is not checked.

        Older producers name none. In a round a member may still commit what it has read, and no
        version of the call has member epochs.
        """
        if call.epoch <= NO_EPOCH and not call.member_id and call.instance_id is None:
            return None
        error = self._refuse_commit(call, now)
        if error is Error.REBALANCE_IN_PROGRESS:
            return None
        return Error.ILLEGAL_GENERATION if error in UNKNOWN_TO_PRODUCERS else error

    def _refuse_member(self, member_id: str, epoch: int) -> Error | None:
        member = self._group.members.get(member_id)
        if member is None:
            return Error.UNKNOWN_MEMBER_ID
        is_classic = member.metadata.classic is not None
        stale = Error.ILLEGAL_GENERATION if is_classic else Error.STALE_MEMBER_EPOCH
        return None if member.current.member_epoch == epoch else stale

    def _had_and_has_all(self, call: OffsetCommit) -> bool:
        """Return whether a member has had all these partitions since the epoch in its commit."""
        current = self._group.members[call.member_id].current
        granted = {**current.pending, **current.assigned}
        committed = (Resource(each.topic, each.partition) for each in call.offsets)
        is_past = call.epoch < current.member_epoch
        return is_past and all(
            granted.get(each, call.epoch + 1) <= call.epoch for each in committed
        )


def _size_of(call: OffsetCall) -> int:
    if isinstance(call, EndTransaction):
        return 0
    if isinstance(call, OffsetCommit):
        return len(call.offsets)
    return sum(map(len, (call.partitions or {}).values()))
