"""What must be true of classic members, and of a group that is converted (invariants 9 and 10).

Answers to workers are checked against earlier answers: one worker leads a generation, and no worker
takes an answer of an older one. Records are checked against earlier records: a conversion leaves
each member what it holds, under the same tokens.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...actors.assignors.classic.protocol import VERSIONS
from ...actors.classic.bytes.connect import decode_assignment
from ...actors.messages.classic import (
    ClassicCall,
    JoinGroup,
    MemberReply,
    SyncGroup,
)
from ...actors.messages.errors import Error
from ...actors.worker.states import State
from ...events.group import Group
from ...events.model import ClassicMember, Grants, Resource, Resources, Why
from ...events.records import (
    ClassicGroup,
    CurrentAssignment,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from ..node.worker.core.contract import Effect, SendToGroup
from .environment.clock import Violation


class Standing(NamedTuple):
    """Where a classic member stands."""

    state: State
    generation: int


class RoundInvariants:
    """Sees what classic workers are answered, and what they make of it."""

    def __init__(self) -> None:
        self._assigning: dict[int, str] = {}
        """Which worker has assigned a generation."""
        self._reached: dict[str, int] = {}
        """The last generation that each worker was in."""

    def take_call(self, worker: str, call: ClassicCall) -> None:
        """Take note of a call: one worker assigns a generation. Raises `Violation`."""
        if isinstance(call, SyncGroup) and call.assignments:
            leader = self._assigning.setdefault(call.generation, worker)
            if leader != worker:
                raise Violation(f"9: {leader} and {worker} assign generation {call.generation}")

    def check_reply(
        self,
        worker: str,
        asked: ClassicCall,
        reply: MemberReply,
        ways: tuple[Standing, Standing],
        effects: Sequence[Effect],
    ) -> None:
        """Take note of an answer, of where the worker stood before and after it, and what it does.

        Raises `Violation`.
        """
        before, after = ways
        if after.generation > 0:  # 0: there is no target yet
            if after.generation < self._reached.get(worker, 0):
                raise Violation(f"9: {worker} went back to generation {after.generation}")
            self._reached[worker] = after.generation
        is_old = isinstance(asked, SyncGroup) and asked.generation != before.generation
        if is_old and _is_taken(reply, ways, effects):
            told = f"an assignment that is not of its generation {before.generation}"
            raise Violation(f"9: {worker} takes {told}")


def _is_taken(
    reply: MemberReply, ways: tuple[Standing, Standing], effects: Sequence[Effect]
) -> bool:
    """Tell whether a worker has taken an assignment: it goes on, or joins anew at once."""
    before, after = ways
    joins = any(isinstance(e, SendToGroup) and isinstance(e.message, JoinGroup) for e in effects)
    is_told = reply.error is Error.NONE and before.state is State.JOINING
    return is_told and (after.state is not State.JOINING or joins)


class CrewInvariants:
    """Sees every record of one group, and what a conversion makes of its members."""

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
        """Take note of a record, by which the folded group has just evolved; raises `Violation`."""
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
        """See that nobody is in both protocols; raises `Violation`."""
        if both := group.members.keys() & group.classic_members.keys():
            raise Violation(f"10: {sorted(both)} are in both protocols")
        if not group.translated <= group.members.keys():
            raise Violation(f"10: {sorted(group.translated)} are not all in the group")

    def _see_leader(self, record: ClassicGroup) -> None:
        """See that all that is written of a generation names one leader."""
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
        """See that members go on with what they held, and are told what the target gave them."""
        self.conversions += 1
        version = VERSIONS[begun.protocol or ""]
        every: list[Resource] = []
        for each in begun.members:
            held, told = _grants(each), decode_assignment(each.assignment, version).assigned
            if held != self._steps.get(each.member_id, {}):
                was = self._steps.get(each.member_id)
                raise Violation(f"10: {each.member_id} had {was}, and begins with {held}")
            share = self._shares.get(each.member_id, frozenset(told))
            if share != frozenset(told):
                told_of = f"{each.member_id} is told {sorted(told)}"
                raise Violation(f"10: {told_of}, the target gave it {sorted(share)}")
            every += told
        if len(every) != len(set(every)):
            raise Violation(f"10: a conversion gives twice what is in {sorted(every)}")


def _grants(holder: ClassicMember | CurrentAssignment) -> Grants:
    return {**holder.pending, **holder.assigned}
