"""Conflicts between settings that are each valid, such as timeouts that do not fit together."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...actors.group.state.settings import flaw_in_bounds
from ...actors.worker.instructions import flaw_in_session
from .keys import NodeSettings


class Contradiction(NamedTuple):
    """A conflict between settings: their keys, and a text with valid values."""

    keys: tuple[str, ...]
    text: str


class Contradictory(Exception):  # noqa: N818  # says what the settings are
    """Settings conflict with one another; `found` has all conflicts."""

    def __init__(self, found: Sequence[Contradiction]) -> None:
        self.found = found
        super().__init__("; ".join(each.text for each in found))


def flaws_in_times(config: NodeSettings) -> Iterator[Contradiction]:
    """Yield conflicts between timeouts and intervals."""
    session = config.session_timeout_ms
    flaw = flaw_in_session(session, config.heartbeat_interval_ms, config.fence_margin_ms)
    if flaw:
        keys = "session.timeout.ms", "heartbeat.interval.ms", "fence.margin.ms"
        yield Contradiction(keys, flaw)
    if config.rebalance_timeout_ms < session:
        yield Contradiction(
            ("rebalance.timeout.ms", "session.timeout.ms"),
            f"rebalance.timeout.ms = {config.rebalance_timeout_ms} is too short: a lost worker that"
            " has to give up work is detected only after its session, so it must be"
            f" at least session.timeout.ms = {session}",
        )
    least, longest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if flaw := flaw_in_bounds(least, longest):
        yield Contradiction(("group.min.session.timeout.ms", "group.max.session.timeout.ms"), flaw)
    if config.worker_restart_backoff_max_ms < config.worker_restart_backoff_ms:
        yield Contradiction(
            ("worker.restart.backoff.max.ms", "worker.restart.backoff.ms"),
            f"worker.restart.backoff.max.ms = {config.worker_restart_backoff_max_ms} must be at"
            f" least worker.restart.backoff.ms = {config.worker_restart_backoff_ms}",
        )
