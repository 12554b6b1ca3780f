"""What it was that changed, where an epoch's cause names only whose: a tag, a weight, a split.

A change is written in front of the rise of the epoch that it calls for; what was before it
stands further up in the log. Values of configs are told of placement alone: others may be
secrets.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from ...events.entries.codec import key_of
from ...events.keys import Key
from ...events.model import Resource, Scope, Why
from ...events.placement.abilities import Abilities, abilities, said_for
from ...events.placement.config import KEYS
from ...events.placement.orders import last_part
from ...events.records import (
    ConnectorConfig,
    GroupMetadata,
    MemberMetadata,
    Operator,
    Record,
    TaskConfigs,
    Tombstone,
)

_TOLD_BY: Final[Mapping[Why, tuple[type, ...]]] = {
    Why.MEMBER_JOINED: (MemberMetadata,),
    Why.METADATA_CHANGED: (MemberMetadata,),
    Why.ASSIGNORS_CHANGED: (MemberMetadata,),
    Why.PLACEMENT_CHANGED: (Operator, ConnectorConfig),
    Why.TASKS_CHANGED: (TaskConfigs,),
}
"""In which records the change is that a cause stands for."""


class Changed:
    """A fold of the log up to the record that raised an epoch."""

    def __init__(self, bump: GroupMetadata) -> None:
        self._bump = bump
        self._is_over = False
        self._told_by = _TOLD_BY.get(bump.cause.why, ())
        self._facts: dict[tuple[type, Key], Record] = {}
        self._last: tuple[Record | None, Record | None] = (None, None)

    def fold(self, record: Record) -> None:
        """Take the next record of the log."""
        if self._is_over or not self._told_by:
            return
        if isinstance(record, GroupMetadata):
            self._is_over = record.group_epoch >= self._bump.group_epoch
            return
        kind = record.kind if isinstance(record, Tombstone) else type(record)
        if kind not in self._told_by:
            return
        fact = kind, key_of(record)
        before = self._facts.pop(fact, None)
        if not isinstance(record, Tombstone):
            self._facts[fact] = record
        self._last = before, self._facts.get(fact)

    @property
    def found(self) -> str:
        """What changed, from what to what; empty where the log does not tell."""
        before, after = self._last
        cause = self._bump.cause
        if cause.subject not in (_subject(before), _subject(after)):
            return ""
        if cause.why is Why.MEMBER_JOINED:
            before = None  # what it said in an earlier life does not count
        return ", ".join(_changes(before, after))


def _subject(record: Record | None) -> str | None:
    """Return how a cause names what a record is about."""
    match record:
        case MemberMetadata():
            return record.url or record.member_id
        case Operator(scope=Scope.RESOURCE):
            return str(Resource(record.name, record.task))
        case ConnectorConfig() | TaskConfigs():
            return record.connector
        case _:
            return None


def _changes(before: Record | None, after: Record | None) -> Iterator[str]:
    match before, after:
        case None, MemberMetadata():
            if _able(after).capacity == 0:
                yield "it takes no work yet"
        case MemberMetadata(), MemberMetadata():
            yield from _of_member(before, after)
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


def _of_member(before: MemberMetadata, after: MemberMetadata) -> Iterator[str]:
    was, able = _able(before), _able(after)
    if was.capacity == 0 < able.capacity:
        yield f"it takes work now, with capacity {able.capacity}"
    elif able.capacity == 0 < was.capacity:
        yield "it takes no work any more"
    else:
        yield from _change("capacity", str(was.capacity), str(able.capacity))
    yield from _change("tags", _listed(sorted(was.tags)), _listed(sorted(able.tags)))
    yield from _change("zone", before.rack, after.rack)
    known, knows = (_listed(each.name for each in one.assignors) for one in (before, after))
    yield from _change("assignors", known, knows)
    yield from _change("the group's assignor", before.server_assignor, after.server_assignor)


def _of_order(before: Operator | None, after: Operator | None) -> Iterator[str]:
    weighed, weighs = (str(each.weight) if each else "1" for each in (before, after))
    yield from _change("weight", weighed, weighs)
    had, has = (_listed(map(last_part, each.pins)) if each else "" for each in (before, after))
    yield from _change("workers", had, has, nothing="any")


def _able(member: MemberMetadata) -> Abilities:
    return abilities(said_for("", member.assignors).metadata)


def _change(
    what: str, before: str | None, after: str | None, nothing: str = "none"
) -> Iterator[str]:
    if (before or "") != (after or ""):
        yield f"{what} {before or nothing} > {after or nothing}"


def _listed(names: Iterable[str]) -> str:
    return " ".join(names)
