"""Requests about groups: their state and settings, their history, and plans."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, Unpack

from msgspec.json import Decoder

from ....planning.report import Plan
from ...replies.epochs import EpochExplanation
from ...replies.groups import (
    ClientGroupList,
    GroupCompaction,
    GroupDescription,
    GroupLag,
    GroupPlacement,
    GroupSummary,
)
from ...replies.handovers import ResourceHistory
from ...replies.live.events import EventList
from ...replies.node import OwnerMove
from ..sending.requests import NOTHING, NodeRequest, get
from .configs import CONFIG, Config, ConfigValue
from .frames import EpochHistory

GROUP: Final = "connect"
"""The group of a node's workers, if its setting `group.id` names no other."""
LINES: Final = 50

SUMMARIES: Final = Decoder(list[GroupSummary])
CLIENT_GROUPS: Final = Decoder(ClientGroupList)
LAG: Final = Decoder(GroupLag)
SUMMARY: Final = Decoder(GroupSummary)
DESCRIPTION: Final = Decoder(GroupDescription)
HISTORY: Final = Decoder(EpochHistory)
EXPLANATION: Final = Decoder(EpochExplanation)
MOVES: Final = Decoder(ResourceHistory)
EVENTS: Final = Decoder(EventList)
PLAN: Final = Decoder(Plan)
PLACEMENT: Final = Decoder(GroupPlacement)
COMPACTION: Final = Decoder(GroupCompaction)
OWNER_MOVE: Final = Decoder(OwnerMove)


class PlannedChanges(TypedDict, total=False):
    """Changes for a plan."""

    add_workers: int
    """How many workers join."""
    worker: Mapping[str, Any]
    """The `zone`, `tags` and `capacity` of each of these."""
    drain: Sequence[str]
    """Workers that give up their work, and stay."""
    remove_workers: Sequence[str]
    """Workers that leave."""
    delete: Sequence[str]
    """Connectors that are deleted."""
    connectors: Sequence[Mapping[str, Any]]
    """Connectors that are created or changed, each with `name` and `config`."""
    scale: Mapping[str, int]
    """Connectors with another number of tasks."""


def list_groups() -> NodeRequest[list[GroupSummary]]:
    """List the groups of the node, then those of Kafka clients."""
    return get(SUMMARIES, "groups")


def list_client_groups(
    text: str = "",
    *,
    type: Literal["classic", "consumer"] | None = None,  # noqa: A002  # as the field of the answer
    state: str = "",
    after: str = "",
    limit: int = LINES,
    lag: bool = False,
) -> NodeRequest[ClientGroupList]:
    """List the groups of Kafka clients whose ids have a text in them, a page of them by id.

    `after` is the last id of the page before. With `lag` they have what is left to read.
    """
    query = {"text": text or None, "type": type, "state": state or None, "after": after or None}
    return get(CLIENT_GROUPS, "client-groups", **query, limit=limit, lag=lag)


def get_lag(group: str) -> NodeRequest[GroupLag]:
    """Return how far a group of Kafka clients has read each partition, and what is left."""
    return get(LAG, "groups", group, "lag")


def get_group(group: str = GROUP) -> NodeRequest[GroupDescription]:
    """Return the full state of a group: epochs, members, target, parked work, losses."""
    return get(DESCRIPTION, "groups", group)


def delete_group(group: str) -> NodeRequest[None]:
    """Delete a group without members, with its connectors; their offsets stay."""
    return NodeRequest("DELETE", ("groups", group), NOTHING)


def get_group_config(group: str = GROUP) -> NodeRequest[dict[str, str]]:
    """Return the settings of a group that override those of its node."""
    return get(CONFIG, "groups", group, "config")


def put_group_config(config: Config, *, group: str = GROUP) -> NodeRequest[dict[str, str]]:
    """Replace all settings of a group."""
    return NodeRequest("PUT", ("groups", group, "config"), CONFIG, {}, config)


def patch_group_config(
    changes: Mapping[str, ConfigValue | None], *, group: str = GROUP
) -> NodeRequest[dict[str, str]]:
    """Change settings of a group; None resets one to the node's."""
    return NodeRequest("PATCH", ("groups", group, "config"), CONFIG, {}, changes)


def get_history(limit: int = LINES, *, group: str = GROUP) -> NodeRequest[EpochHistory]:
    """List the last epochs: their causes, what they moved, and how long it took."""
    return get(HISTORY, "groups", group, "history", limit=limit)


def explain(
    epoch: int | Literal["latest"] = "latest", *, group: str = GROUP
) -> NodeRequest[EpochExplanation]:
    """Explain an epoch: its cause, its target, and each connector and task that moved."""
    return get(EXPLANATION, "groups", group, "explain", str(epoch))


def list_moves(
    resource: str, limit: int = LINES, *, group: str = GROUP
) -> NodeRequest[ResourceHistory]:
    """List how a connector or a task (`flights-0`) moved, and why."""
    return get(MOVES, "groups", group, "moves", resource, limit=limit)


def list_events(
    start: int = -1, *, connector: str = "", group: str = GROUP
) -> NodeRequest[EventList]:
    """List what happened from an offset of the group's log on; -1: lately.

    With `connector` only what happened to it and its tasks.
    """
    return get(EVENTS, "groups", group, "events", start=start, connector=connector or None)


def plan(group: str = GROUP, **changes: Unpack[PlannedChanges]) -> NodeRequest[Plan]:
    """Return what would move, start, stop and stay if changes were made; nothing is changed."""
    return NodeRequest("POST", ("groups", group, "plan"), PLAN, {}, changes)


def rebalance(group: str = GROUP) -> NodeRequest[GroupSummary]:
    """Make a group compute a new target, although nothing has changed."""
    return NodeRequest("POST", ("groups", group, "rebalance"), SUMMARY)


def move_owner(to: str = "", *, group: str = GROUP) -> NodeRequest[OwnerMove]:
    """Order the node that owns a group to give it up to another one, by name or any."""
    return NodeRequest("POST", ("groups", group, "owner"), OWNER_MOVE, {"to": to or None})


def place(
    connector: str,
    task: int | None = None,
    *,
    weight: int | None = None,
    workers: Sequence[str] | None = None,
    group: str = GROUP,
) -> NodeRequest[GroupPlacement]:
    """Order the weight of a connector or of one task, and the workers that may run it.

    What is None stays as it is; without any worker the config decides again.
    """
    body = {"weight": weight, "workers": workers}
    return NodeRequest("PUT", _placement_of(group, connector, task), PLACEMENT, {}, body)


def release(
    connector: str, task: int | None = None, *, group: str = GROUP
) -> NodeRequest[GroupPlacement]:
    """Release the order for a connector or a task: its config is in force again."""
    return NodeRequest("DELETE", _placement_of(group, connector, task), PLACEMENT)


def _placement_of(group: str, connector: str, task: int | None) -> tuple[str, ...]:
    path = ("groups", group, "placements", connector)
    return path if task is None else (*path, str(task))


def compact(
    *,
    keep_ms: int | None = None,
    keep_epochs: int | None = None,
    keep_bytes: int | None = None,
    group: str = GROUP,
) -> NodeRequest[GroupCompaction]:
    """Begin to sum up the old history of a group; for what is None the node's settings count."""
    limits = {"keep_ms": keep_ms, "keep_epochs": keep_epochs, "keep_bytes": keep_bytes}
    return NodeRequest("PUT", ("groups", group, "compaction"), COMPACTION, limits)


def get_compaction(group: str = GROUP) -> NodeRequest[GroupCompaction]:
    """Return how far the compaction is that was asked for last."""
    return get(COMPACTION, "groups", group, "compaction")
