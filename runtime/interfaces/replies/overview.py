"""The overview of a node, and the verdict whether anything is wrong with it.

The verdict is judged of one snapshot of a group's log and of the node's processes. REST, the
command line and the page show it; none of them judges again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from msgspec import Struct

from ....events.model import RunState
from .connectors import ConnectorState, ConnectorStateInfo, ExpandedConnector, TaskState
from .groups import GroupSummary
from .node import Health, ServerInfo, WorkerList
from .words import one_of

BACKING_OFF: Final = "backing-off"
"""The state of a process that has ended and is to be started again."""
RESTING: Final = frozenset({RunState.PAUSED.value, RunState.STOPPED.value})
"""States that a user has asked for: they are no trouble."""
HEALTHY, DEGRADED = "healthy", "degraded"
VerdictWord = Annotated[str, one_of([HEALTHY, DEGRADED, "slow", "unhealthy"])]


class NodeVerdict(Struct, frozen=True):
    """Whether anything is wrong with the node, its connectors, tasks and workers."""

    status: VerdictWord
    """That of the node's health, but degraded if a healthy one has troubles."""
    message: str
    troubles: dict[str, int]
    """How many connectors, tasks and processes have which trouble."""


class NodeStatus(Struct, frozen=True):
    """A node, its groups and workers, and its connectors with status, config and progress."""

    server: ServerInfo
    health: Health
    verdict: NodeVerdict
    """Whether anything is wrong, judged of what is here."""
    groups: list[GroupSummary]
    workers: WorkerList
    connectors: dict[str, ExpandedConnector]


def count_troubles(
    states: Iterable[ConnectorStateInfo],
    processes: Iterable[str],
    engine: str = "",
) -> Mapping[str, int]:
    """Count what failed, waits or has a remark among connectors, tasks and processes.

    `processes` are the states of the worker processes, `engine` that of the JVM that they share.
    """
    troubles: Counter[str] = Counter()
    for info in states:
        troubles[_trouble_of(info.connector)] += 1
        troubles.update(map(_trouble_of, info.tasks))
    del troubles[""]
    if down := [*processes].count(BACKING_OFF):
        troubles["worker processes down"] = down
    if engine == BACKING_OFF:
        troubles["shared JVM down"] = 1
    return dict(sorted(troubles.items()))


def with_troubles(health: Health, troubles: Mapping[str, int]) -> Health:
    """Return the health of a node with its troubles in the message, if it is healthy."""
    if not troubles or health.status != HEALTHY:
        return health
    counts = ", ".join(f"{count} {what}" for what, count in troubles.items())
    message = f"{health.message}; of its connectors, tasks and workers: {counts}"
    return Health(status=HEALTHY, message=message)


def judge(health: Health, troubles: Mapping[str, int]) -> NodeVerdict:
    """Return the verdict on a node, whose health names its troubles."""
    is_degraded = health.status == HEALTHY and bool(troubles)
    return NodeVerdict(DEGRADED if is_degraded else health.status, health.message, dict(troubles))


def _trouble_of(each: ConnectorState | TaskState) -> str:
    """Return the trouble of a connector or a task; "" if it runs, or rests as it is to."""
    if each.state == RunState.RUNNING.value:
        return "RUNNING with a remark" if each.reason else ""
    return "" if each.state in RESTING else each.state
