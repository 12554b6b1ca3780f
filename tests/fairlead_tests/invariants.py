"""What must always be true of a group (PROTOCOL §11), as far as its coordinator knows.

A `Witness` stands behind a group from its first record on: after every batch it holds the
group against itself, against its own past, and against a fold of the log's bytes.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields

from fairlead.actors.messages.computing import Assignment
from fairlead.actors.messages.heartbeat import TEMPORARY_LEAVE_EPOCH
from fairlead.events.entries.codec import decode, encode
from fairlead.events.entries.logs import restore
from fairlead.events.evolve import evolve
from fairlead.events.group import Group, Member, token_of
from fairlead.events.log.frame import Entry
from fairlead.events.model import NOTHING, MemberState, Resource, Resources, Token
from fairlead.events.records import Record, TargetAssignment
from fairlead.events.shard_layout import lay_out


class Witness:
    """Sees every batch of one group's log, and remembers what may never go back."""

    def __init__(self, group_id: str) -> None:
        self.entries: list[Entry] = []
        self._folded = Group(group_id)
        self._epochs = (0, 0)
        self._member_epochs: dict[tuple[str, int], int] = {}
        self._tokens: dict[Resource, Token] = {}
        self._configured_at: dict[int, Resources] = {}

    def see(self, group: Group, records: Sequence[Record], wrote: Assignment | None = None) -> None:
        """Hold the group, which has evolved by these records, against all invariants.

        `wrote` is the assignment that the batch installed, if it did.
        """
        self._append(records)
        same(group, self._folded)
        consistent(group)
        self._forward(group)
        self._tokens_forward(group)
        self._targets(group, records, wrote)
        if group.members:
            self._configured_at[group.group_epoch] = group.configured

    def compacted(self, group: Group) -> None:
        """Hold the group against its log as compaction may leave it, trimmed anywhere."""
        latest = {(entry.type, entry.key): entry for entry in self.entries}
        view = sorted(latest.values())
        for cut in {0, len(self.entries) // 2, len(self.entries)}:
            trimmed = [e for e in view if e.offset >= cut or e.value is not None]
            same(group, restore(group.group_id, trimmed, group.end))
            tail = [e for e in trimmed if e.offset < cut] + self.entries[cut:]
            same(group, restore(group.group_id, tail, group.end))

    def _append(self, records: Iterable[Record]) -> None:
        laid_out = lay_out(self._folded.log_shards, records)
        for record in (part for _, parts in laid_out for part in parts):
            kind, version, key, value = encode(record)
            entry = Entry(len(self.entries), kind, version, key, 0, value)
            read = decode(entry)
            assert read is not None
            assert read == record, "a record does not survive its bytes"
            evolve(self._folded, read, entry.offset)
            self.entries.append(entry)

    def _forward(self, group: Group) -> None:
        """4. Epochs never go back."""
        # A group that was deleted has no target; what it had stays the least of the next.
        assigned = group.assignment_epoch or self._epochs[1]
        epochs = (group.group_epoch, assigned)
        assert all(now >= then for now, then in zip(epochs, self._epochs, strict=True)), epochs
        self._epochs = epochs
        for member in group.members.values():
            seat = (member.member_id, member.metadata.joined_epoch)
            epoch = member.current.member_epoch
            if epoch == TEMPORARY_LEAVE_EPOCH:
                continue
            assert epoch >= self._member_epochs.get(seat, 0), f"{seat} went back to {epoch}"
            self._member_epochs[seat] = epoch

    def _tokens_forward(self, group: Group) -> None:
        """7. The token that may commit never goes back."""
        for resource, member_id in group.owner.items():
            token = token_of(group, member_id, resource)
            if token is not None:
                assert token >= self._tokens.get(resource, token), f"{resource} is back at {token}"
                self._tokens[resource] = token

    def _targets(self, group: Group, records: Iterable[Record], wrote: Assignment | None) -> None:
        """2. A target covers what was configured, and its epoch has no other."""
        for record in records:
            if isinstance(record, TargetAssignment) and wrote is not None and not record.error:
                asked = self._configured_at.get(record.assignment_epoch, group.configured)
                placed = NOTHING.union(*record.members.values())
                left_out = (asked & group.configured) - placed
                left_out -= group.schedule.parked.keys() | record.unplaceable.keys()
                for member_id, share in wrote.members.items():
                    if member_id not in record.members:
                        left_out -= share
                assert not left_out, f"neither placed, parked nor unplaceable: {left_out}"
                assert placed <= group.configured, "the target names what is not configured"


def same(group: Group, folded: Group) -> None:
    """5. The state is what the log says, to the last index."""
    if group != folded:
        differ = {
            field.name: (getattr(group, field.name), getattr(folded, field.name))
            for field in fields(Group)
            if getattr(group, field.name) != getattr(folded, field.name)
        }
        raise AssertionError(f"the log tells of another group (live, folded): {differ}")


def consistent(group: Group) -> None:
    """1, 3, 4: the group agrees with itself."""
    assert group.assignment_epoch <= group.group_epoch
    held = Counter[Resource]()
    placed = Counter(resource for share in group.target_of.values() for resource in share)
    for member_id, member in group.members.items():
        assert member_id == member.member_id == member.current.member_id
        held.update([*member.current.assigned, *member.current.pending])
        _member(group, member)
    assert all(count == 1 for count in held.values()), f"held twice: {held}"
    assert held.keys() == group.owner.keys()
    assert all(count == 1 for count in placed.values()), f"placed twice: {placed}"
    assert group.target_of.keys() <= group.members.keys(), "the target names who is gone"
    assert placed.keys() == group.target_owner.keys()
    assert placed.keys().isdisjoint(group.schedule.parked), "parked, and placed"


def _member(group: Group, member: Member) -> None:
    current = member.current
    assert current.member_epoch <= group.assignment_epoch
    is_away = current.member_epoch == TEMPORARY_LEAVE_EPOCH
    assert is_away or current.previous_epoch <= current.member_epoch
    if current.state is not MemberState.UNKNOWN:
        assert (current.state is MemberState.UNREVOKED) == bool(current.pending)
    for grants in (current.assigned, current.pending):
        assert all(group.owner[each] == member.member_id for each in grants)
        assert all(epoch <= group.assignment_epoch for epoch in grants.values())
    if current.state is MemberState.STABLE and current.member_epoch == group.assignment_epoch:
        assert current.assigned.keys() == group.share_of(member.member_id)
