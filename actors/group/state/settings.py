"""The settings of a group: those of its node, changed by its own.

This module imports nothing else, so that reading a configuration is quick.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class MigrationPolicy(StrEnum):
    """Which conversions of a group with members are allowed, in Kafka's words."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    """A classic group becomes a connect group when a worker joins by that protocol."""
    DOWNGRADE = "downgrade"
    """A connect group becomes classic when only classic members are left in it."""
    BIDIRECTIONAL = "bidirectional"

    @property
    def upgrades(self) -> bool:
        """Whether classic groups may become connect groups."""
        return self in {MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL}

    @property
    def downgrades(self) -> bool:
        """Whether connect groups may become classic."""
        return self in {MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL}


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The group's settings; all times in milliseconds."""

    session_timeout_ms: int = 10_000
    """How long a member may be silent."""
    heartbeat_interval_ms: int = 3_000
    """How often a member reports when there is nothing to say; so long a heartbeat is held."""
    max_delay_ms: int = 300_000
    """How long lost work waits for its worker, parked."""
    leave_delay_ms: int = -1
    """How long the work of a worker that left waits for it; -1: as long as lost work."""
    max_size: int = 1 << 31
    """How many members may be in the group."""
    assignment_interval_ms: int = 0
    """The least time between the beginnings of two computations."""
    requests_per_second: int = 0
    """How many heartbeats a member may send in a second; 0: as many as it likes."""
    fence_margin_ms: int = 1_000
    """How long before its session ends a member begins to fence itself."""
    retry_backoff_ms: int = 5_000
    """The time after a first failed computation until the next; each failure doubles it."""
    retry_backoff_max_ms: int = 60_000
    initial_delay_ms: int = 3_000
    """How long an empty classic group waits for more members, counted from the last new one."""
    least_classic_session_ms: int = 6_000
    """The shortest session that a classic member may ask for."""
    longest_classic_session_ms: int = 1_800_000
    connect_initial_delay_ms: int = 0
    """The same for the first target of an empty connect group."""
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    """Which conversions between the two protocols are allowed while there are members."""
    offsets_retention_ms: int = 604_800_000
    """How long offsets of Kafka's clients are kept that nobody uses any more."""
    offsets_check_interval_ms: int = 600_000
    """The least time between two looks for expired offsets of a group."""

    @property
    def delay_after_leave_ms(self) -> int:
        """How long the work of a worker that left waits for its return, as in Connect."""
        return self.max_delay_ms if self.leave_delay_ms < 0 else self.leave_delay_ms


@dataclass(frozen=True, slots=True)
class ShardLimits:
    """The limits of what one process of groups keeps of Kafka's clients."""

    groups: int = 100_000
    members: int = 100_000
    """The most members of all groups."""
    metadata_bytes: int = 32 << 20
    """The most bytes of metadata, subscriptions and assignments of all members."""


def flaw_in_bounds(least_ms: int, longest_ms: int) -> str:
    """Return why no classic member could ask for any session; "" if none."""
    if least_ms <= longest_ms:
        return ""
    return (
        f"group.min.session.timeout.ms = {least_ms} is above group.max.session.timeout.ms ="
        f" {longest_ms}: no classic member could ask for any session"
    )


DEFAULT_SETTINGS: Final = GroupSettings()
DEFAULT_LIMITS: Final = ShardLimits()

DEFAULT_ASSIGNOR: Final = "balanced"
"""The assignor of workers whose node names no other."""
