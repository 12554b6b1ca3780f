"""The kinds of groups: what distinguishes one type of group from another to its `GroupShard`.

All kinds have the same shell, timers, long poll and classic members. A kind brings the rules of its
own protocol, how the bytes of its classic members are read, and which further calls it serves.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ...events.group import Group
from ...events.log.space import DiskSpace
from ..assignors.built_in.catalogue import SERVER_ASSIGNORS, Computes
from ..classic.coordinator import ClassicCoordinator
from ..messages.commands import Command, Reply
from ..messages.consumers import ConsumerGroupHeartbeat
from ..messages.groups import RemoveGroup
from ..messages.members import HeartbeatReply
from ..messages.orders import DeleteGroup
from ..timing import Now
from .decide import decide
from .members.commit import OffsetLedger
from .state.own_settings import OF_NODE, OwnSettings
from .state.settings import GroupSettings
from .state.soft_state import Decision, SoftState
from .translation.connect import CONNECT_TRANSLATION
from .translation.protocol import Translation


class KindCalls(Protocol):
    """The calls that one kind of group serves beside the commands of any group."""

    def translate(self, request: Any, space: DiskSpace, now: Now) -> Command | Reply | None:  # noqa: ANN401
        """Return the command for a request, or its answer; None: it is no such call."""
        ...

    def answer(self, request: ConsumerGroupHeartbeat, reply: HeartbeatReply) -> Reply:
        """Return the answer to a translated heartbeat."""
        ...

    def remember(self, request: ConsumerGroupHeartbeat, end: int, reply: Reply) -> None:
        """Cache the answer to a heartbeat for its repetitions; the log ended at `end` before it."""
        ...

    def repeat(self, request: ConsumerGroupHeartbeat) -> Reply | None:
        """Return the answer to a repeated heartbeat without news; None: it has to be decided."""
        ...

    def run_timers(self, settings: GroupSettings, space: DiskSpace, now: Now) -> bool:
        """Execute all due timers; return whether the group has to be deleted."""
        ...

    def next_ms(self, settings: GroupSettings) -> int:
        """Return when something may be due next, steady clock."""
        ...


OpensCalls = Callable[[Group, ClassicCoordinator, OffsetLedger, GroupSettings, int], KindCalls]
"""Makes the calls of one group; the last argument is the time, steady clock."""


@dataclass(frozen=True, slots=True)
class GroupKind:
    """The rules, translation and calls by which one kind of group differs from others."""

    decide: Callable[[Group, SoftState, Command, int], Decision]
    """Decides a command of a member or of people."""
    complete: Callable[[Group, Decision], Decision]
    """Completes the decision of a classic member's call by what else ends with removed members."""
    translation: Translation
    """How the bytes of its classic members are read."""
    removal: Callable[[Group], Command]
    """Makes the command that deletes a group without members."""
    server_assignors: Mapping[str, Computes]
    """The assignors that the coordinator itself runs, by name."""
    own_settings: OwnSettings = OF_NODE
    """The settings that a group of this kind may have of its own."""
    grants_from_log: bool = False
    """Whether classic members start only what the log grants them, and number their calls."""
    parks_lost_work: bool = True
    """Whether the work of a lost member waits for it, and that of a member that is away."""
    looks_regularly: bool = True
    """Whether things may be due that have no timer, such as the end of a connector's work."""
    holds_heartbeats: bool = True
    """Whether heartbeats without news are held; else each is answered at once."""
    is_of_clients: bool = False
    """Whether members need an answer to each request; workers ignore all but that to their last."""
    open_calls: OpensCalls | None = None
    """Makes what serves further calls; None: there are none."""


def _as_it_is(group: Group, decision: Decision) -> Decision:
    """Add no records: the configured resources do not depend on the members."""
    del group
    return decision


def _removal_of_workers(group: Group) -> Command:
    """Return the command that deletes a group; only a classic one needs no epoch afterwards."""
    command = DeleteGroup if group.classic is None else RemoveGroup
    return command(group.group_id)


WORKERS: Final = GroupKind(
    decide,
    _as_it_is,
    CONNECT_TRANSLATION,
    _removal_of_workers,
    SERVER_ASSIGNORS,
    grants_from_log=True,
)
"""The group of a node's own workers."""
