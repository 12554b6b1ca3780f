"""The subscribed topics of a consumer group, and changes of the topics in the cluster.

They are the existing topics to which any member subscribes. A topic that is deleted, or not
subscribed to any more, is *released*: members revoke its partitions. Until then the group keeps its
id, since members name it by id. A topic that is deleted and created again has a new id: all
members revoke the partitions of the old one before any of the new one is assigned.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ...events.group import Group
from ...events.model import Resource, Why
from ...events.records import (
    ConsumerSubscription,
    MemberMetadata,
    Record,
    SubscribedTopics,
    Tombstone,
    Topic,
)
from ..group.state.soft_state import Decision, SoftState, accept, bump
from ..messages.consumers import TopicsSeen

NO_TOPICS: Mapping[str, Topic] = {}


def update_topics(group: Group, soft: SoftState, command: TopicsSeen, now_ms: int) -> Decision:
    """Record the topics of the cluster; the group epoch rises if the subscribed topics change."""
    soft = replace(soft, topics=command.topics)
    if group.topics is None or not group.members:
        return accept(group, soft, ())
    changed: list[ConsumerSubscription] = []
    for subscription in group.subscriptions.values():
        matched = command.matched.get(subscription.member_id, subscription.matched)
        if matched != subscription.matched:
            changed.append(replace(subscription, matched=matched))
    records: list[Record] = [*changed, *topic_records(group, soft, changed)]
    if not changed and not changes_topics(group, records):
        return accept(group, soft, records)
    subject = _name_changed(group, command)
    return accept(group, soft, [*records, bump(group, Why.TOPICS_CHANGED, subject, now_ms)])


def _name_changed(group: Group, command: TopicsSeen) -> str:
    """Describe the topics that have changed, or that a pattern newly matches."""
    had = _in_use(group.topics or NO_TOPICS)
    matched = {name for names in command.matched.values() for name in names}
    changed = {name for name, topic in had.items() if command.topics.get(name) != topic}
    changed |= matched - had.keys()
    changed |= {name for name in group.subscribers if name in command.topics and name not in had}
    first = min(changed, default="")
    return f"{first} and {len(changed) - 1} more" if len(changed) > 1 else first


def topic_records(
    group: Group, soft: SoftState, changed: Iterable[ConsumerSubscription], gone: Iterable[str] = ()
) -> Iterator[SubscribedTopics]:
    """Yield a record of the subscribed topics if they differ after these changes and removals."""
    gone = frozenset(gone)
    topics = _find_topics(group, soft, _count_subscribers(group, changed, gone), gone)
    if topics != group.topics:
        yield SubscribedTopics(topics)


def changes_topics(group: Group, records: Iterable[Record]) -> bool:
    """Return whether these records change the topics in use, or their numbers of partitions."""
    changes = (each.topics for each in records if isinstance(each, SubscribedTopics))
    return any(_in_use(topics) != _in_use(group.topics or NO_TOPICS) for topics in changes)


def _in_use(topics: Mapping[str, Topic]) -> Mapping[str, Topic]:
    return {name: topic for name, topic in topics.items() if not topic.is_released}


def has_returned_topic(group: Group) -> bool:
    """Return whether a topic was recreated, and no member holds partitions of the old one."""
    topics = group.topics or NO_TOPICS
    return any(
        name in group.subscribers and not _is_held(group, name, topics[name], ())
        for name in group.released_topics
    )


def _count_subscribers(
    group: Group, changed: Iterable[ConsumerSubscription], gone: Iterable[str]
) -> Mapping[str, int]:
    """Return the number of subscribers of each topic after these changes and removals."""
    counts = dict(group.subscribers)
    changes = [(each.member_id, each.topics) for each in changed]
    for member_id, topics in (*changes, *((each, frozenset[str]()) for each in gone)):
        before = group.subscriptions.get(member_id)
        for name in before.topics if before else ():
            counts[name] -= 1
        for name in topics:
            counts[name] = counts.get(name, 0) + 1
    return counts


def _find_topics(
    group: Group, soft: SoftState, subscribers: Mapping[str, int], gone: Iterable[str]
) -> Mapping[str, Topic]:
    had = group.topics or NO_TOPICS
    current = _in_use(had) if soft.topics is None else soft.topics
    topics: dict[str, Topic] = {}
    for name in sorted(name for name, count in subscribers.items() if count):
        topic, was = current.get(name), had.get(name)
        is_same = was is None or topic is None or was.topic_id == topic.topic_id
        if topic is not None and (is_same or not _is_held(group, name, was, gone)):
            topics[name] = replace(topic, is_released=False)
    for name, was in had.items():
        if name not in topics and _is_held(group, name, was, gone):
            topics[name] = replace(was, is_released=True)
    return topics


def _is_held(group: Group, name: str, topic: Topic | None, gone: Iterable[str]) -> bool:
    """Return whether a member that is not removed holds any partition of a topic."""
    held = (
        group.owner.get(Resource(name, each)) for each in range(topic.partitions if topic else 0)
    )
    return any(owner is not None and owner not in gone for owner in held)


def end_subscriptions(group: Group, decision: Decision) -> Decision:
    """Add tombstones of the subscriptions of the members that a decision removes."""
    tombstones = [each for each in decision.records if isinstance(each, Tombstone)]
    done = {each.key for each in tombstones if each.kind is ConsumerSubscription}
    removed = [each.key for each in tombstones if each.kind is MemberMetadata]
    gone = [str(key[0]) for key in removed if key not in done and key[0] in group.subscriptions]
    if not gone:
        return decision
    ended = (Tombstone(ConsumerSubscription, (each,)) for each in gone)
    topics = topic_records(group, decision.soft, (), gone)
    return replace(decision, records=(*ended, *topics, *decision.records))
