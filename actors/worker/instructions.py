"""A member's identity and timing, and the instructions that it gives to its program."""

from dataclasses import dataclass

from ...events.model import Resources
from ..messages.classic import ClassicCall
from ..messages.computing import Snapshot
from ..messages.members import Heartbeat

REQUEST_GRACE_MS = 1_500
"""How long past the heartbeat interval an answer may take before the request is repeated."""


def flaw_in_session(session_ms: int, interval_ms: int, margin_ms: int) -> str:
    """Return why a session is too short for a heartbeat interval and a fence margin; "" if none."""
    smallest_ms = margin_ms + 2 * (interval_ms + REQUEST_GRACE_MS)
    if session_ms >= smallest_ms:
        return ""
    return (
        f"session.timeout.ms = {session_ms} is too short: a worker has to be able to miss one"
        " heartbeat and still to stop in time, so it must be at least fence.margin.ms"
        f" + 2 * (heartbeat.interval.ms + {REQUEST_GRACE_MS}) = {smallest_ms} with"
        f" heartbeat.interval.ms = {interval_ms} and fence.margin.ms = {margin_ms}"
    )


@dataclass(frozen=True, slots=True)
class Identity:
    """Identifies the member; the ids live as long as its process."""

    group_id: str
    member_id: str
    incarnation: str
    url: str = ""
    rack: str | None = None
    client_id: str = ""
    client_host: str = ""
    instance_id: str | None = None
    """The `group.instance.id` of a static member."""
    node: str = ""
    """The id of the node that the process runs on."""


@dataclass(frozen=True, slots=True)
class Timing:
    """A member's timeouts in milliseconds; the group's interval and session replace its own."""

    heartbeat_interval_ms: int = 3_000
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    fence_margin_ms: int = 1_000

    @property
    def patience_ms(self) -> int:
        """How long an answer may take: the group may hold a request for an interval."""
        return self.heartbeat_interval_ms + REQUEST_GRACE_MS


@dataclass(frozen=True, slots=True)
class Send:
    """Send this heartbeat to the group."""

    request: Heartbeat


@dataclass(frozen=True, slots=True)
class SendCall:
    """Send this call of the classic protocol to the group."""

    call: ClassicCall


@dataclass(frozen=True, slots=True)
class Start:
    """Start these with their configs of the log up to `log_offset`; they are owned already."""

    resources: Resources
    log_offset: int
    """The log offset of the grant."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop these in good order; call `release` for each that has stopped."""

    resources: Resources


@dataclass(frozen=True, slots=True)
class Fence:
    """Cancel everything without grace; call `release` for each that has stopped."""

    reason: str


@dataclass(frozen=True, slots=True)
class Kill:
    """End all that still runs at once: kill the engine, or exit."""

    reason: str


@dataclass(frozen=True, slots=True)
class Compute:
    """The group asks this member to compute its assignment."""

    member_epoch: int


@dataclass(frozen=True, slots=True)
class ComputeRound:
    """Compute, by an assignor, who is to run what in the generation that the member leads."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Gone:
    """The member has left, or cannot continue: `error` has the reason."""

    error: str = ""
    """Why the member cannot continue; empty if it left."""


Instruction = Send | SendCall | Start | Stop | Fence | Kill | Compute | ComputeRound | Gone
