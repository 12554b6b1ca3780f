"""The reply with all that an overview of a node shows."""

from msgspec import Struct

from .connectors import ExpandedConnector
from .groups import GroupSummary
from .node import Health, ServerInfo, WorkerList
from .verdict import NodeVerdict


class NodeStatus(Struct, frozen=True):
    """A node, its groups and workers, and its connectors with status, config and progress."""

    server: ServerInfo
    health: Health
    verdict: NodeVerdict
    """Whether anything is wrong, judged of what is here."""
    groups: list[GroupSummary]
    workers: WorkerList
    connectors: dict[str, ExpandedConnector]
