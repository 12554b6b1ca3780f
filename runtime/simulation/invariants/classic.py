"""Invariants of classic members, and of a group that is converted (9 and 10).

Answers to workers are checked against earlier answers: one worker leads a generation, and no worker
takes an answer of an older one. Records are checked against earlier records: a conversion leaves
each member what it holds, under the same tokens.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ....actors.assignors.classic.protocol import VERSIONS
from ....actors.classic.bytes.connect import decode_assignment
from ....actors.messages.classic import (
    ClassicCall,
    JoinGroup,
    MemberReply,
    SyncGroup,
)
from ....actors.messages.errors import Error
from ....actors.worker.states import State
from ....events.group import Group
from ....events.model import ClassicMember, Grants, Resource, Resources, Why
from ....events.records import (
    ClassicGroup,
    CurrentAssignment,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from ...node.worker.core.contract import Effect, SendToGroup
from ..environment.clock import Violation


class MemberPosition(NamedTuple):
    """The position of a classic member in the protocol."""

    state: State
    generation: int


class RoundInvariants:
    """Checks the answers to classic workers, and their reactions."""

    def __init__(self) -> None:
        self._assigning: dict[int, str] = {}
        """Which worker has assigned a generation."""
        self._reached: dict[str, int] = {}
        """The last generation that each worker was in."""

    def check_call(self, worker: str, call: ClassicCall) -> None:
        """Check a call: one worker assigns a generation. Raises `Violation`."""
        if isinstance(call, SyncGroup) and call.assignments:
            leader = self._assigning.setdefault(call.generation, worker)
            if leader != worker:
                raise Violation(f"9: {leader} and {worker} assign generation {call.generation}")

    def check_reply(
        self,
        worker: str,
        call: ClassicCall,
        reply: MemberReply,
        before_after: tuple[MemberPosition, MemberPosition],
        effects: Sequence[Effect],
    ) -> None:
        """Check an answer by the worker's position before and after it, and by its effects.

        Raises `Violation`.
        """
        before, after = before_after
        if after.generation > 0:  # 0: there is no target yet
            if after.generation < self._reached.get(worker, 0):
                raise Violation(f"9: {worker} went back to generation {after.generation}")
            self._reached[worker] = after.generation
        is_old = isinstance(call, SyncGroup) and call.generation != before.generation
        if is_old and _is_taken(reply, before_after, effects):
            told = f"an assignment that is not of its generation {before.generation}"
            raise Violation(f"9: {worker} takes {told}")


def _is_taken(
    reply: MemberReply,
    before_after: tuple[MemberPosition, MemberPosition],
    effects: Sequence[Effect],
) -> bool:
    """Return whether a worker has accepted an assignment: it continues, or rejoins at once."""
    before, after = before_after
    joins = any(isinstance(e, SendToGroup) and isinstance(e.message, JoinGroup) for e in effects)
    is_told = reply.error is Error.NONE and before.state is State.JOINING
    return is_told and (after.state is not State.JOINING or joins)


class ConversionInvariants:
    """Checks every record of one group: a conversion keeps the members' resources."""

    def __init__(self) -> None:
        self.conversions = 0
        self._leaders: dict[int, str] = {}
        """Which seat leads a generation."""
        self._last: ClassicGroup | None = None
        """The generation of a classic group."""
        self._steps: dict[str, Grants] = {}
        """What each member of a connect group held by its last step."""
        self._shares: Mapping[str, Resources] = {}
        """What its target gave each."""
        self._begins: dict[str, Grants] = {}
        """With what each member of a converted group is to begin, until it does."""

    def see(self, record: Record, folded: Group) -> None:
        """Check a record, which the folded group has just applied; raises `Violation`."""
        match record:
            case ClassicGroup(cause=cause, members=members):
                if cause.why is Why.GROUP_DOWNGRADED and self._last is None and members:
                    self._see_downgrade(record)
                self._see_leader(record)
                self._last = record
            case Tombstone(kind) if kind is ClassicGroup and self._last is not None:
                self._begins = {each.member_id: _grants(each) for each in self._last.members}
                self.conversions += bool(self._begins)
                self._last = None
            case CurrentAssignment(member_id):
                self._see_step(member_id, record)
            case MemberMetadata() | TargetAssignment():
                self._shares = dict(folded.target_of)
            case _:
                pass

    def check(self, group: Group) -> None:
        """Check that no member is in both protocols; raises `Violation`."""
        if both := group.members.keys() & group.classic_members.keys():
            raise Violation(f"10: {sorted(both)} are in both protocols")
        if not group.translated <= group.members.keys():
            raise Violation(f"10: {sorted(group.translated)} are not all in the group")

    def _see_leader(self, record: ClassicGroup) -> None:
        """Check that all records of a generation name one leader."""
        seats = {each.member_id: each.instance_id or each.member_id for each in record.members}
        if not seats:
            return
        seat = seats[record.leader]
        leader = self._leaders.setdefault(record.generation, seat)
        if leader != seat:
            raise Violation(f"9: {leader} and {seat} lead generation {record.generation}")

    def _see_step(self, member_id: str, step: CurrentAssignment) -> None:
        self._steps[member_id] = held = _grants(step)
        begins = self._begins.pop(member_id, None)
        if begins is not None and begins != held:
            raise Violation(f"10: {member_id} had {begins}, and begins with {held}")

    def _see_downgrade(self, begun: ClassicGroup) -> None:
        """Check that members keep their resources, and are sent their target."""
        self.conversions += 1
        version = VERSIONS[begun.protocol or ""]
        every: list[Resource] = []
        for each in begun.members:
            held, assigned = _grants(each), decode_assignment(each.assignment, version).assigned
            if held != self._steps.get(each.member_id, {}):
                was = self._steps.get(each.member_id)
                raise Violation(f"10: {each.member_id} had {was}, and begins with {held}")
            share = self._shares.get(each.member_id, frozenset(assigned))
            if share != frozenset(assigned):
                told_of = f"{each.member_id} is told {sorted(assigned)}"
                raise Violation(f"10: {told_of}, the target gave it {sorted(share)}")
            every += assigned
        if len(every) != len(set(every)):
            raise Violation(f"10: a conversion gives twice what is in {sorted(every)}")


def _grants(holder: ClassicMember | CurrentAssignment) -> Grants:
    return {**holder.pending, **holder.assigned}
