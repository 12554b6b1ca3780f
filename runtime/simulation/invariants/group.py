"""The invariants of a group (PROTOCOL §11), as far as its coordinator knows.

The numbers in a `Violation` are those of the protocol's list. `GroupInvariants` follows a group
from its first record on, and checks it against itself, against its past, and against a fold of the
log's bytes.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import zip_longest
from typing import Final, NamedTuple

from ....actors.messages.computing import Assignment
from ....events.catalogue import offset_key
from ....events.commits import Committed, Offset, TaskProgress
from ....events.group import AWAY_EPOCH, Group, Member, token_of
from ....events.model import NOTHING, Key, MemberState, Resource, Resources, Token
from ....events.records import (
    GroupMetadata,
    MemberMetadata,
    Record,
    ScheduledRebalance,
    TargetAssignment,
    Tombstone,
)
from ..environment.clock import Violation


class _Cover(NamedTuple):
    """A target, with the resources that were configured and parked when it was written."""

    target: TargetAssignment
    configured: Resources
    parked: Resources


class GroupInvariants:
    """Checks every record of one group, and remembers values that may never go back."""

    def __init__(self) -> None:
        self.count = 0
        self.installs: dict[int, Assignment] = {}
        """What was handed in, by the group epoch that it was computed for."""
        self.gone: set[str] = set()
        """Members that have left, and heard that the group knows: none of them comes back."""
        self._epochs = (0, 0)
        self._member_epochs: dict[tuple[str, int], int] = {}
        self._tokens: dict[Resource, Token] = {}
        self._configured_at: dict[int, Resources] = {}
        self._targets: list[_Cover] = []
        self._is_new_target = False

    def see(self, record: Record, folded: Group) -> None:
        """Check a record, which the folded group has just applied."""
        if isinstance(record, MemberMetadata) and record.member_id in self.gone:
            raise Violation(f"3: {record.member_id} has a seat again, though it has left")
        if isinstance(record, GroupMetadata):
            self._configured_at[folded.group_epoch] = folded.configured
        elif isinstance(record, TargetAssignment):
            parked = frozenset(folded.schedule.parked)
            self._targets.append(_Cover(folded.target, folded.configured, parked))
            self._is_new_target = True
            return
        elif isinstance(record, ScheduledRebalance) and self._is_new_target:
            self._targets[-1] = self._targets[-1]._replace(parked=frozenset(record.parked))
        self._is_new_target = False

    def check(self, live: Group, folded: Group) -> None:
        """Check the group against all invariants after a write; raises `Violation`."""
        self.count += 1
        same(live, folded)
        consistent(live)
        self._forward(live)
        self._tokens_forward(live)
        for cover in self._targets:
            self._cover(cover)
        self._targets.clear()
        self._is_new_target = False

    def _forward(self, group: Group) -> None:
        # A group that was deleted has no target; what it had stays the least of the next.
        epochs = (group.group_epoch, group.assignment_epoch or self._epochs[1])
        if epochs[0] < self._epochs[0] or epochs[1] < self._epochs[1]:
            raise Violation(f"4: the epochs went back from {self._epochs} to {epochs}")
        self._epochs = epochs
        for member in group.members.values():
            seat = (member.member_id, member.metadata.joined_epoch)
            epoch = member.current.member_epoch
            if epoch == AWAY_EPOCH:
                continue
            if epoch < self._member_epochs.get(seat, 0):
                raise Violation(f"4: {seat} went back to {epoch}")
            self._member_epochs[seat] = epoch

    def _tokens_forward(self, group: Group) -> None:
        last_tokens = self._tokens
        for resource, member_id in group.owner.items():
            token = token_of(group, member_id, resource)
            if token is not None:
                last = last_tokens.get(resource)
                if last is not None and token < last:
                    raise Violation(f"7: the token of {resource} went back to {token}")
                last_tokens[resource] = token

    def _cover(self, cover: _Cover) -> None:
        """2. A target covers exactly what was configured at its epoch and still is."""
        target = cover.target
        if target.error:
            return
        epoch = target.assignment_epoch
        placed = NOTHING.union(*target.members.values())
        asked = self._configured_at.get(epoch, cover.configured) & cover.configured
        left_out = asked - placed - cover.parked - target.unplaceable.keys()
        install = self.installs.pop(epoch, None)
        for member_id, share in install.members.items() if install else ():
            if member_id not in target.members:
                left_out -= share
        if not placed <= cover.configured:
            unknown = sorted(placed - cover.configured)
            raise Violation(f"2: target {epoch} places {unknown}, which are not configured")
        if left_out:
            raise Violation(f"2: target {epoch} neither places nor parks {sorted(left_out)}")


ROW: Final = "row"
"""What an offset of the made-up sources counts."""


def _nobody(_: str) -> None:
    """Accept every connector, where nothing ever runs."""


class CommitInvariants:
    """Checks every entry of an offset log; raises `Violation` at the first invalid one."""

    def __init__(self, see_no_task: Callable[[str], None] = _nobody) -> None:
        """Call `see_no_task` with each connector whose offsets are altered."""
        self.commits: Counter[Resource] = Counter()
        """How often each task has committed."""
        self._see_no_task = see_no_task
        self._rows: dict[Key, int] = {}
        """Up to which row each source partition was committed."""
        self._tokens: dict[tuple[str, int], Token] = {}
        """Under which token each task committed last, by connector and number."""

    def see(self, records: Sequence[Record | None]) -> None:
        """Check one append to the offset log.

        The offset of a commit comes right before its progress, but for what is to be published; any
        other was set by people.
        """
        counted = [each for each in records if not isinstance(each, Committed)]
        for record, then in zip_longest(counted, counted[1:]):
            if isinstance(record, TaskProgress):
                self._forward(record)
            elif isinstance(record, Offset):
                key, row = (
                    offset_key(record.connector, record.partition),
                    int(str(record.offset[ROW])),
                )
                if isinstance(then, TaskProgress):
                    self._see_next(key, row)
                else:
                    self._see_no_task(record.connector)
                self._rows[key] = row
            elif isinstance(record, Tombstone) and record.kind is Offset:
                self._see_no_task(str(record.key[0]))
                self._rows.pop(record.key, None)

    def _see_next(self, key: Key, row: int) -> None:
        expected = self._rows.get(key, 0) + 1
        if row != expected:
            raise Violation(f"7: {key} was committed up to row {row}, {expected} was next")

    def _forward(self, record: TaskProgress) -> None:
        connector, task, token, _ = record.last
        last = self._tokens.get((connector, task))
        if last is not None and token < last:
            raise Violation(f"7: {connector}-{task} committed under {token}, after {last}")
        self._tokens[connector, task] = token
        self.commits[Resource(connector, task)] += 1


def same(live: Group, folded: Group) -> None:
    """5. The state is the fold of the log, to the last index; raises `Violation`."""
    if live == folded:
        return
    for each in fields(Group):
        mine, logged = getattr(live, each.name), getattr(folded, each.name)
        if mine != logged:
            raise Violation(f"5: {each.name} is {mine}, the log says {logged}")


def consistent(group: Group) -> None:
    """1, 2, 3, 4. The group agrees with itself; raises `Violation`."""
    if group.assignment_epoch > group.group_epoch:
        raise Violation("4: the assignment epoch is ahead of the group epoch")
    for member_id, member in group.members.items():
        _agree(group, member_id, member)
    held = sum(_holds(group, member) for member in group.workers())
    if held != len(group.owner):
        raise Violation(f"1: {held} grants, the index knows {len(group.owner)} holders")
    placed = NOTHING.union(*group.target_of.values())
    if sum(map(len, group.target_of.values())) != len(placed):
        raise Violation("2: the target places a resource twice")
    if placed != group.target_owner.keys():
        differ = sorted(placed ^ group.target_owner.keys())
        raise Violation(f"2: the target and its index differ in {differ}")
    if not group.target_of.keys() <= group.members.keys():
        raise Violation(f"2: the target names the departed: {set(group.target_of)}")
    if not group.target_owner.keys().isdisjoint(group.schedule.parked):
        raise Violation(
            f"2: parked and placed: {group.target_owner.keys() & group.schedule.parked}"
        )


def see_covered(group: Group) -> None:
    """2. While no target is due, all that is configured is placed or left out on purpose.

    Else nothing would ever place it. Raises `Violation`.
    """
    if not group.members or group.group_epoch > group.assignment_epoch or group.target.error:
        return
    left_out = group.schedule.parked.keys() | group.target.unplaceable.keys()
    if adrift := sorted(group.configured - group.target_owner.keys() - left_out):
        raise Violation(f"2: no target is due, and none places or leaves out {adrift}")


def _agree(group: Group, member_id: str, member: Member) -> None:
    current = member.current
    if not member_id == member.member_id == current.member_id:
        raise Violation(f"3: {member_id} is {member.member_id}, at a step of {current.member_id}")
    if current.member_epoch > group.assignment_epoch:
        raise Violation(f"4: {member_id} is ahead of the assignment epoch")
    if current.previous_epoch > current.member_epoch != AWAY_EPOCH:
        raise Violation(f"4: {member_id} was at {current.previous_epoch} before")
    if not current.assigned.keys().isdisjoint(current.pending):
        twice = sorted(current.assigned.keys() & current.pending)
        raise Violation(f"1: {member_id} holds {twice} twice")
    is_revoking = current.state is MemberState.UNREVOKED
    if current.state is not MemberState.UNKNOWN and is_revoking != bool(current.pending):
        raise Violation(f"3: {member_id} is {current.state.name} with {current.pending}")
    is_stable = current.state is MemberState.STABLE
    is_done = is_stable and current.member_epoch == group.assignment_epoch
    if is_done and frozenset(current.assigned) != group.share_of(member_id):
        raise Violation(f"3: {member_id} is STABLE and does not hold its target")


def _holds(group: Group, member: Member) -> int:
    """Return how many resources a member of either protocol holds; no other member holds them."""
    held = (*member.current.assigned.items(), *member.current.pending.items())
    for resource, epoch in held:
        if group.owner.get(resource) != member.member_id:
            raise Violation(f"1: {resource} is held by {member.member_id} as well")
        if epoch > group.assigned_epoch:
            raise Violation(f"4: {resource} was granted at {epoch}")
    return len(held)
