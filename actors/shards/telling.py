"""The lines of the log about one group of Kafka's clients: what has become of it, once durable.

One line (INFO) says that the group was made, is empty, or was deleted, and one that a rebalance has
ended: with the epoch or the generation, the number of members, and why there was one. DEBUG names
the members that come and go. A look compares four facts, however large the group is.
"""

import logging
from collections.abc import Set
from typing import NamedTuple

from ...events.group import Group
from ...events.model import Cause, GroupState

LOGGER = logging.getLogger(__name__)


class _Facts(NamedTuple):
    is_there: bool
    state: GroupState
    epoch: int
    """The group epoch, or the generation of a classic group."""
    members: int


class GroupTeller:
    """Logs what has changed in a group since the last call."""

    def __init__(self, group: Group) -> None:
        """Start from the group as its log has it; only later changes are logged."""
        self._group = group
        self._last = _facts_of(group)
        """The facts of the last line."""
        self._members: Set[str] = _members_of(group)
        """The ids as they were told last; not kept up unless DEBUG is written."""

    def tell(self) -> None:
        """Write a line for each thing that has happened; call it once records are durable."""
        last, now = self._last, _facts_of(self._group)
        self._last = now
        if now.is_there and not last.is_there:
            self._say("was made")
        if LOGGER.isEnabledFor(logging.DEBUG):
            self._tell_members()
        if last.is_there and not now.is_there:
            self._say("was deleted")
        elif last.members and not now.members:
            self._say(f"is empty{self._why}")
        elif now.state is GroupState.STABLE and last[1:3] != now[1:3]:
            what = "generation" if self._group.classic else "epoch"
            self._say(f"has rebalanced: {what} {now.epoch}, members: {now.members}{self._why}")

    def _tell_members(self) -> None:
        before, self._members = self._members, _members_of(self._group)
        for each in sorted(self._members - before):
            self._say(f"has a new member {each}", logging.DEBUG)
        for each in sorted(before - self._members):
            self._say(f"has lost its member {each}", logging.DEBUG)

    def _say(self, told: str, level: int = logging.INFO) -> None:
        text = f"group {self._group.group_id} of Kafka's clients {told}"
        LOGGER.log(level, "%s", text if text.isprintable() else ascii(text))  # names are clients'

    @property
    def _why(self) -> str:
        cause = _cause_of(self._group)
        return f" ({cause})" if cause else ""


def _facts_of(group: Group) -> _Facts:
    if group.classic is not None:
        members = len(group.classic.members) or len(group.members)
        return _Facts(True, group.state, group.classic.generation, members)  # noqa: FBT003
    is_there = group.topics is not None or bool(group.members)
    return _Facts(is_there, group.state, group.group_epoch, len(group.members))


def _members_of(group: Group) -> Set[str]:
    classic = group.classic.members if group.classic else ()
    return group.members.keys() | {each.member_id for each in classic}


def _cause_of(group: Group) -> Cause | None:
    if group.classic is not None:
        return group.classic.cause
    return group.bump.cause if group.bump else None
