"""The overview of a node, and the verdict whether anything is wrong with it.

The verdict is judged of one snapshot of a group's log and of the node's processes. REST, the
command line and the page show it; none of them judges again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Final

from msgspec import Struct

from ....projections.page.troubles import trouble_of
from .connectors import ConnectorStateInfo, ExpandedConnector
from .folder import FolderReport
from .groups import GroupSummary
from .node import Health, NodeList, ServerInfo, WorkerList
from .words import one_of

BACKING_OFF: Final = "backing-off"
"""The state of a process that has ended and is to be started again."""
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
    folder: FolderReport | None = None
    """How the connectors differ from `connectors.dir`; null: none is set."""
    nodes: NodeList | None = None
    """The nodes of which one owns the group; null: its log is on one host."""


def count_troubles(
    states: Iterable[ConnectorStateInfo],
    processes: Iterable[str],
    engine: str = "",
) -> Mapping[str, int]:
    """Count what failed, waits or has a remark among connectors, tasks and processes.

    `processes` are the states of the worker processes, `engine` that of the JVM that they share.
    """
    return sum_troubles(map(_troubles_in, states), processes, engine)


def sum_troubles(
    counts: Iterable[Mapping[str, int]], processes: Iterable[str], engine: str = ""
) -> Mapping[str, int]:
    """Add up the troubles of connectors, each with its tasks, and of processes."""
    troubles: Counter[str] = Counter()
    for each in counts:
        troubles.update(each)
    if down := [*processes].count(BACKING_OFF):
        troubles["worker processes down"] = down
    if engine == BACKING_OFF:
        troubles["shared JVM down"] = 1
    return dict(sorted(troubles.items()))


def _troubles_in(info: ConnectorStateInfo) -> Counter[str]:
    own = info.connector
    troubles = Counter((trouble_of(own.state, own.reason),))
    troubles.update(trouble_of(each.state, each.reason) for each in info.tasks)
    del troubles[""]
    return troubles


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
