"""The coordinator computes a target itself, with a server assignor (PROTOCOL §5)."""

from collections.abc import Sequence
from dataclasses import replace

from ....events.group import Group
from ....events.records import Record
from ...assignors.built_in.catalogue import SERVER_ASSIGNORS
from ..state.settings import GroupSettings
from .failure import failed
from .snapshot import snapshot_of
from .target import Computed, flaw_in, target

COORDINATOR = "coordinator"
"""Who computed a target that no member did."""


def serve(
    group: Group, settings: GroupSettings, assignor: str, now_ms: int, again_at_ms: int = 0
) -> Sequence[Record]:
    """Return the records of the group's new target, or of the attempt that failed.

    At `again_at_ms` moves are due that a member left for later; 0: none are. An assignor that
    raises costs the attempt, never the group.
    """
    snapshot = snapshot_of(group, assignor, now_ms)
    try:
        assignment = SERVER_ASSIGNORS[assignor](snapshot)
        found = flaw_in(assignment, snapshot)
    except Exception as error:  # noqa: BLE001 - it goes into the log with the attempt
        text = f"{assignor}: {type(error).__name__}: {error}"
        return [failed(group, settings, group.group_epoch, text, now_ms)]
    if found:
        return [failed(group, settings, group.group_epoch, f"{assignor}: {found}", now_ms)]
    assignment = replace(assignment, again_at_ms=again_at_ms)
    return list(target(group, Computed(snapshot, assignment, COORDINATOR), now_ms))
