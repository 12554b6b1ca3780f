"""The settings by which a group's coordinator goes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The group's settings; all times in milliseconds."""

    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    max_delay_ms: int = 300_000
    max_size: int = 1 << 31
    assignment_interval_ms: int = 0
    """The least time between two computations; bumps meanwhile wait for the next."""
    requests_per_second: int = 0
    """How many heartbeats a member may send in a second; 0: as many as it likes."""
    fence_margin_ms: int = 1_000
    retry_backoff_ms: int = 5_000
    retry_backoff_max_ms: int = 60_000


DEFAULT_SETTINGS = GroupSettings()
