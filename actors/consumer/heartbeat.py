"""Decides a ConsumerGroupHeartbeat: the subscription, then the steps of any member (PROTOCOL §3).

The group epoch rises as on a Kafka broker: when the possible assignments change, but not when a
member without a subscription joins. A new group has epoch 1, and its first subscription raises it
to 2.
"""

from collections.abc import Sequence
from dataclasses import replace

from ...events.group import Group, Member
from ...events.model import Cause, GroupType, Why
from ...events.records import ConsumerSubscription, GroupMetadata, Record, Tombstone
from ..group.members.admission import refuse, refuse_heartbeat, seat_of
from ..group.members.depart import leave
from ..group.members.heartbeat import MemberUpdate, apply_request, take_step
from ..group.state.soft_state import Decision, SoftState, bump
from ..messages.errors import Error
from ..messages.members import JOIN_EPOCH, Heartbeat
from .topics import changes_topics, has_returned_topic, topic_records


def heartbeat(group: Group, soft: SoftState, request: Heartbeat, now_ms: int) -> Decision:
    """Decide a consumer's heartbeat."""
    if group.type is GroupType.CLASSIC:
        if request.member_epoch != JOIN_EPOCH:
            message = f"Group {group.group_id} is not a consumer group: join it with epoch 0"
            return refuse_heartbeat(soft, request, Error.GROUP_ID_NOT_FOUND, message)
        # A target of before the classic generation is outdated, even if it was computed just now.
        soft = replace(soft, is_in_interval=False)
    seat = seat_of(group, request)
    if refused := refuse(group, soft, seat, request):
        return refuse_heartbeat(soft, request, *refused)
    if request.member_epoch < JOIN_EPOCH:
        return leave(group, soft, request, now_ms)
    member, records = apply_request(group, soft, seat, request)
    old = _subscription_of(group, seat, request)
    new = _merge(old, request)
    records += _subscribe(group, soft, old, new)
    why = _find_cause(group, seat, old, new)
    if why is None and changes_topics(group, records):
        why = Why.TOPICS_CHANGED
    if why is not None:
        records += _raise_epoch(group, why, new, now_ms)
    return take_step(group, soft, request, MemberUpdate(seat, member, records), now_ms)


def _subscription_of(group: Group, seat: Member | None, request: Heartbeat) -> ConsumerSubscription:
    """Return the current subscription of the seat, an empty one for a new member."""
    member_id = request.member_id if seat is None else seat.member_id
    return group.subscriptions.get(member_id) or ConsumerSubscription(member_id)


def _merge(old: ConsumerSubscription, request: Heartbeat) -> ConsumerSubscription:
    """Return the subscription after a request; the same object if nothing changes."""
    new, sent = replace(old, member_id=request.member_id), request.subscription
    if sent is not None and sent.names is not None:
        new = replace(new, names=tuple(sorted(set(sent.names))))
    if sent is not None and sent.pattern is not None:
        new = replace(new, pattern=sent.pattern, matched=sent.matched)
    return old if new == old else new


def _subscribe(
    group: Group, soft: SoftState, old: ConsumerSubscription, new: ConsumerSubscription
) -> Sequence[Record]:
    """Return the records of a new subscription, and of the subscribed topics if they change."""
    records: list[Record] = []
    gone = [old.member_id] if old.member_id != new.member_id else []
    if gone and old.member_id in group.subscriptions:
        records.append(Tombstone(ConsumerSubscription, (old.member_id,)))
    if new is not old:
        records.append(new)
    if records or group.topics is None or has_returned_topic(group):
        records += topic_records(group, soft, [new], gone)
    return records


def _find_cause(
    group: Group,
    seat: Member | None,
    old: ConsumerSubscription,
    new: ConsumerSubscription,
) -> Why | None:
    """Return the reason for which the request raises the group epoch, None if it does not."""
    if seat is None:
        affects_target = bool(new.names or new.pattern)
        # A group that was classic has no record of its epoch: it got a tombstone.
        is_first = group.bump is None or group.classic is not None
        return Why.MEMBER_JOINED if affects_target or is_first else None
    return Why.SUBSCRIPTION_CHANGED if new.topics != old.topics else None


def _raise_epoch(
    group: Group, why: Why, subscription: ConsumerSubscription, now_ms: int
) -> Sequence[GroupMetadata]:
    """Return the epoch bump; for a new group its first two epochs."""
    member_id = subscription.member_id
    first = bump(group, why, member_id, now_ms)
    if group.group_epoch or not subscription.topics:
        return [first]
    cause = Cause(Why.SUBSCRIPTION_CHANGED, member_id)
    return [first, GroupMetadata(first.group_epoch + 1, cause, now_ms)]
