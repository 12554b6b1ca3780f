"""ConnectGroupHeartbeat: what a member says, and what it is answered."""

from dataclasses import dataclass

from ...events.model import ClientAssignor, Resource, Resources
from .errors import Error

JOIN_EPOCH = 0


LEAVE_EPOCH = -1


TEMPORARY_LEAVE_EPOCH = -2


NO_COORDINATOR_EPOCH = -1
"""What a sender says that has heard of no coordinator process yet."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """ConnectGroupHeartbeat: a member is alive, joins (epoch 0), or leaves (-1).

    None and -1 stand for "unchanged since the last heartbeat". `incarnation` is one
    process; `sequence` counts its requests; `coordinator_epoch` is the one of the last answer.
    """

    group_id: str
    member_id: str
    member_epoch: int
    incarnation: str = ""
    sequence: int = 0
    instance_id: str | None = None
    rack: str | None = None
    url: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    rebalance_timeout_ms: int = -1
    session_timeout_ms: int = -1
    """By which session the member fences itself; the group waits no shorter."""
    assignors: tuple[ClientAssignor, ...] | None = None
    server_assignor: str | None = None
    owned: tuple[Resource, ...] | None = None
    node: str | None = None
    """The id of the node that the member's process runs on."""
    coordinator_epoch: int = NO_COORDINATOR_EPOCH

    @property
    def is_bare(self) -> bool:
        """Tell whether the request says nothing of its member that could be new."""
        return (
            self.assignors is None
            and self.rebalance_timeout_ms == -1
            and self.session_timeout_ms == -1
            and self.server_assignor is None
            and self.instance_id is None
            and self.rack is None
            and self.url is None
            and self.client_id is None
            and self.client_host is None
            and self.node is None
        )

    @property
    def is_full(self) -> bool:
        """Tell whether the request says everything, so that its answer must as well."""
        if self.member_epoch == JOIN_EPOCH:
            return True
        names_assignor = self.assignors is not None or self.server_assignor is not None
        return names_assignor and self.owned is not None and self.rebalance_timeout_ms != -1


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """The answer; `assignment` is None where nothing changed for the member.

    `log_offset` is the end of the log that the answer rests on.
    """

    error: Error
    member_id: str
    member_epoch: int
    incarnation: str = ""
    sequence: int = 0
    message: str = ""
    heartbeat_interval_ms: int = 0
    throttle_time_ms: int = 0
    session_timeout_ms: int = 0
    """By which session the member is to fence itself from now on; 0: as before."""
    log_offset: int = 0
    assignment: Resources | None = None
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    """Which process of the coordinator says so: the next request is to name it."""
