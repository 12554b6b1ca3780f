"""For which held heartbeats records are news, and which members catch up later (PROTOCOL §3).

With each target every member takes a step, and most of these steps only bring the member to the new
epoch. To take them all at once costs a group of hundreds of members a storm of messages for each
target: members that have something to revoke or to start are not heard in it, and in the end
sessions expire. So there are two kinds of news:

* a member that has to revoke or gets anything, or has to compute, is answered at once
  (`find_affected`);
* a member that keeps what it has (`find_unmoved`) catches up in its turn: a few at the same time,
  the next one when one of these has sent its next heartbeat. So a group catches up as fast as it
  can, and no faster. While the next target is due the turns wait, unless so few members are left
  that all of them can be told at once: one step is enough for both targets.

No member waits longer than its heartbeat interval: it takes its step when its request is answered
by then, or when it sends another one.
"""

from collections.abc import Collection, Container, Iterable, Iterator
from typing import Final

from ...events.connectors import ConnectorConfig, TargetState, TaskConfigs
from ...events.group import Group
from ...events.model import NOTHING, MemberState, Resource
from ...events.records import CurrentAssignment, MemberMetadata, Record, TargetAssignment, Tombstone

AT_ONCE: Final = 12
"""How many members catch up at the same time."""
HELD_UP_MS: Final = 1_000
"""How long a member that sends no heartbeat delays the turn of the next one."""


def find_affected(group: Group, records: Iterable[Record]) -> Collection[str]:
    """Return the ids of members whose heartbeats would have another result now (PROTOCOL §3).

    `group` is the group before the records. A new target affects every member; a step or a removal
    affects the member itself, and the members to which the target gives what it releases. Which
    member has to compute is in the soft state.
    """
    found: set[str] = set()
    for record in records:
        match record:
            case TargetAssignment():
                return group.members.keys()
            case CurrentAssignment(member_id):
                found.add(member_id)
                kept = record.assigned.keys() | record.pending.keys()
                found.update(_find_waiting(group, member_id, kept))
            case Tombstone(kind, (str() as member_id,)) if kind is MemberMetadata:
                found.add(member_id)
                found.update(_find_waiting(group, member_id, frozenset()))
            case _:
                pass
    return found


def _find_waiting(group: Group, member_id: str, kept: Collection[object]) -> Iterable[str]:
    """Yield the members that wait for what this one releases."""
    member = group.members.get(member_id)
    if member is None:
        return
    for grants in (member.current.assigned, member.current.pending):
        for resource in grants:
            if resource not in kept and (owner := group.target_owner.get(resource)):
                yield owner


def find_reconfigured(group: Group, records: Iterable[Record]) -> Iterator[str]:
    """Yield the ids of members that hold anything of the connectors that these records change."""
    for record in records:
        if isinstance(record, ConnectorConfig | TaskConfigs | TargetState):
            name = record.connector
            tasks = (Resource(name, number) for number in group.task_numbers(name))
            for resource in (Resource(name), *tasks):
                if (owner := group.owner.get(resource)) is not None:
                    yield owner


def find_unmoved(group: Group, records: Iterable[Record]) -> Collection[str]:
    """Return the ids of members to which a new target gives exactly what they have.

    `group` is the group before the records. Without a new target there are none.
    """
    target = next((each for each in records if isinstance(each, TargetAssignment)), None)
    if target is None:
        return ()
    return {
        member_id
        for member_id, member in group.members.items()
        if member.current.state is MemberState.STABLE
        and frozenset(member.current.assigned) == target.members.get(member_id, NOTHING)
    }


class CatchUps:
    """The members that have to be told an epoch, and those told that sent no heartbeat since."""

    def __init__(self) -> None:
        self._waiting: dict[str, None] = {}
        """The member ids in the order of their turns."""
        self._told: dict[str, int] = {}
        """Until when each told member is waited for, by member id; steady clock, milliseconds."""

    def add(self, member_ids: Iterable[str]) -> None:
        """Have members catch up in their turn, if they do not wait for it already."""
        self._waiting.update(dict.fromkeys(sorted(member_ids)))

    def next_ms(self) -> int | None:
        """Return when the wait for a told member ends, steady clock."""
        return min(self._told.values(), default=None) if self._waiting else None

    def forget(self, member_id: str) -> None:
        """Forget a member that sent a heartbeat: it has taken its step."""
        self._waiting.pop(member_id, None)
        self._told.pop(member_id, None)

    def turns(self, held: Container[str], now_ms: int, *, is_overtaken: bool) -> Iterator[str]:
        """Yield the members whose turn it is; those without a held request need none.

        `is_overtaken` tells whether another target is due already.
        """
        for member_id in [each for each, until_ms in self._told.items() if now_ms >= until_ms]:
            del self._told[member_id]
        if is_overtaken and len(self._waiting) > AT_ONCE:
            return
        while self._waiting and len(self._told) < AT_ONCE:
            member_id = next(iter(self._waiting))
            del self._waiting[member_id]
            if member_id in held:
                self._told[member_id] = now_ms + HELD_UP_MS
                yield member_id
