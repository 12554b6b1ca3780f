"""The change behind a rise of the epoch: causes name only whose tag, weight or split it was.

A change is written before the rise of the epoch that it calls for; its earlier value stands further
back in the log. Of configs only the keys of placement are shown: other values may be secrets.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ....events.catalogue import key_of
from ....events.model import Cause, Key, Resource, RunState, Scope, Why
from ....events.placement import KEYS, Abilities, abilities, assignor_of, last_part, placement_in
from ....events.records import (
    ConnectorConfig,
    ConsumerSubscription,
    GroupMetadata,
    MemberMetadata,
    OffsetsAltered,
    Operator,
    Record,
    SubscribedTopics,
    TargetState,
    TaskConfigs,
    Tombstone,
)

_TOLD_BY: Final[Mapping[Why, tuple[type, ...]]] = {
    Why.MEMBER_JOINED: (MemberMetadata,),
    Why.METADATA_CHANGED: (MemberMetadata,),
    Why.ASSIGNORS_CHANGED: (MemberMetadata,),
    Why.SUBSCRIPTION_CHANGED: (ConsumerSubscription,),
    Why.TOPICS_CHANGED: (SubscribedTopics,),
    Why.PLACEMENT_CHANGED: (Operator, ConnectorConfig),
    Why.TASKS_CHANGED: (TaskConfigs,),
}
"""In which records the change is that a cause stands for."""

_OF_CONFIGS: Final = frozenset({Why.CONNECTOR_ADDED, Why.PLACEMENT_CHANGED})
"""The causes of an epoch that several connectors may raise together."""
NAMES_MAX: Final = 12
"""How many new connectors are named, and how many that are placed otherwise."""

_TELLING: Final = frozenset(kind for kinds in _TOLD_BY.values() for kind in kinds)


class _Change(NamedTuple):
    """The last change of one record class: its place in the order of changes, before and after."""

    number: int
    before: Record | None
    after: Record | None


class _Put(NamedTuple):
    """The config of a connector before and after it was put."""

    before: Record | None
    after: Record | None

    @property
    def is_new(self) -> bool:
        return self.before is None and self.after is not None

    @property
    def is_moved(self) -> bool:
        """Whether the connector is to be placed otherwise."""
        match self:
            case ConnectorConfig() as before, ConnectorConfig() as after:
                return placement_in(before.config) != placement_in(after.config)
            case _:
                return False


class EpochChanges:
    """A fold of the whole log that records the changes of each epoch."""

    def __init__(self) -> None:
        self._facts: dict[tuple[type, Key], Record] = {}
        """The record that holds now, by its kind and key."""
        self._last: dict[type, _Change] = {}
        """The last change of each kind."""
        self._altered: dict[str, OffsetsAltered] = {}
        """How people set offsets last, by connectors that were stopped before that."""
        self.put_together: frozenset[str] = frozenset()
        """The connectors that raised the epoch that was described last, if they are several."""
        self._put: dict[str, _Put] = {}
        """The connectors that are new, or are to be placed otherwise, the latest one last.

        Those of the next epoch come after the ones that raised none, as in a classic group.
        """

    def apply(self, record: Record) -> None:
        """Apply the next record of the log."""
        if isinstance(record, OffsetsAltered):
            self._altered[record.connector] = record
        elif isinstance(record, TargetState) and _begins_a_stop(record):
            self._altered.pop(record.connector, None)
        kind = record.kind if isinstance(record, Tombstone) else type(record)
        if kind not in _TELLING:
            return
        fact = kind, key_of(record)
        before = self._facts.pop(fact, None)
        after = None if isinstance(record, Tombstone) else record
        if after is not None:
            self._facts[fact] = after
        if kind is ConnectorConfig:
            self._note_config(str(fact[1][0]), before, after)
        number = 1 + max((each.number for each in self._last.values()), default=0)
        self._last[kind] = _Change(number, before, after)

    def _note_config(self, name: str, before: Record | None, after: Record | None) -> None:
        put = _Put(before, after)
        is_put = put.is_new or put.is_moved
        if is_put or after is None:
            self._put.pop(name, None)
        if is_put:
            self._put[name] = put

    def describe(self, bump: GroupMetadata) -> str:
        """Return the changes of an epoch, from old to new; empty if the log does not have them."""
        cause, put = bump.cause, _put_together(bump.cause, self._put)
        self._put, self.put_together = {}, frozenset(put)
        if put:
            return _told_configs(put)
        if cause.why is Why.CONNECTOR_RESUMED and cause.subject in self._altered:
            return _describe_offsets(self._altered.pop(cause.subject))
        kinds = _TOLD_BY.get(cause.why, ())
        changes = [self._last[kind] for kind in kinds if kind in self._last]
        if not changes:
            return ""
        _, before, after = max(changes, key=lambda each: each.number)
        if cause.why is Why.TOPICS_CHANGED:
            return _describe_topics(before, after, cause.subject)
        if cause.subject not in (_subject(before), _subject(after)):
            return ""
        if cause.why is Why.MEMBER_JOINED:
            before = None  # what it said in an earlier life does not count
        return ", ".join(_changes(before, after))


def _begins_a_stop(record: TargetState) -> bool:
    return record.state is RunState.STOPPED and not record.is_complete


def _put_together(cause: Cause, put: Mapping[str, _Put]) -> Mapping[str, _Put]:
    """Return which connectors raised the epoch together; none, unless they are several."""
    first, _, more = cause.subject.rpartition(" and ")
    if cause.why not in _OF_CONFIGS or not (more.endswith(" more") and more[:-5].isdecimal()):
        return {}
    count = int(more[:-5]) + 1
    names = [*put][-count:]
    is_known = len(names) == count and first in names
    return {name: put[name] for name in names} if is_known else {}


def _told_configs(put: Mapping[str, _Put]) -> str:
    """Return the connectors put at once: the new ones, and the new placement of others."""
    new = [name for name, each in put.items() if each.is_new]
    moved = [name for name, each in put.items() if not each.is_new]
    told = ["new " + " ".join([*new[:NAMES_MAX], *_count_others(new)])] if new else []
    told += (f"{name}: {', '.join(_changes(*put[name]))}" for name in moved[:NAMES_MAX])
    told += (f"{others} placed otherwise" for others in _count_others(moved))
    return "; ".join(told)


def _count_others(names: Sequence[str]) -> Sequence[str]:
    """Return how many names there are beyond those that are told, if there are any."""
    return [f"and {len(names) - NAMES_MAX} more"] if len(names) > NAMES_MAX else []


def _describe_offsets(record: OffsetsAltered) -> str:
    asked = f", asked by {record.actor}" if record.actor else ""
    return f"offsets of {record.partitions} partitions were {record.how} meanwhile{asked}"


def _subject(record: Record | None) -> str | None:
    """Return the subject of a record, as a cause names it."""
    match record:
        case MemberMetadata():
            return record.worker_url
        case Operator(scope=Scope.RESOURCE):
            return str(Resource(record.name, record.task))
        case ConnectorConfig() | TaskConfigs():
            return record.connector
        case ConsumerSubscription():
            return record.member_id
        case _:
            return None


def _describe_topics(before: Record | None, after: Record | None, subject: str) -> str:
    """Return the changed topics with their partition counts, if they are the subject."""
    had, has = (_partitions(each) for each in (before, after))
    changed = [name for name in sorted(had | has) if had.get(name) != has.get(name)]
    if subject.partition(" and ")[0] not in changed:
        return ""
    told = (_change(f"partitions of {each}", had.get(each), has.get(each)) for each in changed)
    return ", ".join(each for changes in told for each in changes)


def _partitions(record: Record | None) -> dict[str, str]:
    if not isinstance(record, SubscribedTopics):
        return {}
    topics = record.topics.items()
    return {name: str(each.partitions) for name, each in topics if not each.is_released}


def _changes(before: Record | None, after: Record | None) -> Iterator[str]:
    match before, after:
        case ((MemberMetadata() | None), MemberMetadata()):
            yield from _of_member(before, after)
        case ((ConsumerSubscription() | None), ConsumerSubscription()):
            yield from _of_subscription(before, after)
        case ((Operator() | None), (Operator() | None)):
            yield from _of_order(before, after)
        case ConnectorConfig(), ConnectorConfig():
            for key in sorted(KEYS):
                yield from _change(key, before.config.get(key), after.config.get(key))
        case ((TaskConfigs() | None), TaskConfigs()):
            count = len(before.tasks) if before else 0
            yield from _change("tasks", str(count), str(len(after.tasks)))
        case _:
            pass


def _of_member(before: MemberMetadata | None, after: MemberMetadata) -> Iterator[str]:
    if before is None:
        if _abilities_of(after).capacity == 0:
            yield "it takes no work yet"
        return
    was, able = _abilities_of(before), _abilities_of(after)
    if was.capacity == 0 < able.capacity:
        yield f"it takes work now, with capacity {able.capacity}"
    elif able.capacity == 0 < was.capacity:
        yield "it takes no work any more"
    else:
        yield from _change("capacity", str(was.capacity), str(able.capacity))
    yield from _change("tags", " ".join(sorted(was.tags)), " ".join(sorted(able.tags)))
    yield from _change("zone", before.rack, after.rack)
    known, knows = (" ".join(each.name for each in one.assignors) for one in (before, after))
    yield from _change("assignors", known, knows)
    yield from _change("the group's assignor", before.server_assignor, after.server_assignor)


def _of_subscription(
    before: ConsumerSubscription | None, after: ConsumerSubscription
) -> Iterator[str]:
    was, pattern = (" ".join(sorted(before.names)), before.pattern) if before else ("", "")
    yield from _change("topics", was, " ".join(after.names))
    yield from _change("pattern", pattern, after.pattern)


def _of_order(before: Operator | None, after: Operator | None) -> Iterator[str]:
    weighed, weighs = (str(each.weight) if each else "1" for each in (before, after))
    yield from _change("weight", weighed, weighs)
    had, has = (" ".join(map(last_part, each.pins)) if each else "" for each in (before, after))
    yield from _change("workers", had, has, nothing="any")


def _abilities_of(member: MemberMetadata) -> Abilities:
    return abilities(assignor_of("", member.assignors).metadata)


def _change(
    what: str, before: str | None, after: str | None, nothing: str = "none"
) -> Iterator[str]:
    if (before or "") != (after or ""):
        yield f"{what} {before or nothing} > {after or nothing}"
