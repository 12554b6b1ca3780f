"""What a worker takes of the log: the answers that concern its own member."""

from typing import Protocol

from .....events.group import Group
from .....events.model import Resources


class MemberLog(Protocol):
    """The log, as far as one member has to know it.

    It is read by `catch_up` only; between two calls `group` stays as it is, which need not be
    the whole group. It has to tell:

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

    def watch(self, reported: Resources) -> None:
        """Have the next `catch_up` show the status of these, held or not, and of no others."""
        ...

    def catch_up(self) -> Group:
        """Read what is new, and return the member's part of the group."""
        ...

    def take_changed(self) -> Resources:
        """Return those of the member's resources of which anything changed since the last call."""
        ...
