"""What a worker takes of the log: the answers that concern its own member."""

from collections.abc import Collection
from typing import Protocol

from ...events.group import Group
from ...events.model import NOTHING, Resource, Resources
from ...projections.follow import Follower


class MemberLog(Protocol):
    """The log, as far as one member has to know it.

    It is read by `catch_up` only; between two calls `group` stays as it is. `group` need not be
    the whole group. It has to answer:

    * which resources this member was granted, with config and fencing token
      (`launches`, `token_of`: the member's own seat and step, the connectors of its resources and
      how these split their work);
    * what the log says of what this member has reported (`statuses` of the reported resources,
      their connectors, the task configs of its own connectors);
    * who computed the target, and what that assignor said to all (`target` without its shares);
    * how far the log was read (`end`).
    """

    @property
    def member_id(self) -> str:
        """What the group calls the member."""
        ...

    @property
    def group(self) -> Group:
        """The member's part of the group, as of the last `catch_up`."""
        ...

    def catch_up(self, reported: Collection[Resource] = NOTHING) -> Resources:
        """Read what is new; return those of the member's resources of which anything changed.

        `reported` are the resources whose status the log is waited for to show, held or not.
        """
        ...


class WholeLog:
    """A `MemberLog` that follows the log of the whole group."""

    def __init__(self, member_id: str, follower: Follower) -> None:
        self.member_id = member_id
        self._follower = follower
        self._seen_end = -1
        """The log's end as of the last look."""

    @property
    def group(self) -> Group:
        """The whole group."""
        return self._follower.group

    def catch_up(self, reported: Collection[Resource] = NOTHING) -> Resources:
        """Return all of the member's resources where anything changed at all."""
        del reported
        group = self._follower.catch_up()
        if group.end == self._seen_end:
            return NOTHING
        self._seen_end = group.end
        member = group.members.get(self.member_id)
        return frozenset(member.current.assigned) if member is not None else NOTHING

    def close(self) -> None:
        """Let go of the log."""
        self._follower.close()
