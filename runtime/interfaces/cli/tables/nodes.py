"""Tables of nodes: which one owns the group, and how far the copies of the asked one are."""

from typing import Final

from ...replies.node import CopiesDescription, NodeDescription, NodeList
from ..output.layout import TableLayout
from ..output.phrases import format_time
from ..output.printing import Section

CLOCK_MS: Final = 1_000
"""The least difference of clocks that is told."""
LATE_MS: Final = 1_000
"""A copy looks for news more often than that."""


def tabulate_nodes(found: NodeList) -> list[Section]:
    """Lay out `/nodes`."""
    return [NODES.lay_out(found.nodes)]


def tabulate_node(node: NodeDescription) -> list[Section]:
    """Lay out one node."""
    return [NODE_FACTS.lay_out_facts(node)]


def summarize_owner(found: NodeList) -> str:
    """Return who owns the group, and how far the copies of the asked node are."""
    owner = next((each for each in found.nodes if each.owns), None)
    here = next((each for each in found.nodes if each.is_here), None)
    told = "none is known" if owner is None else f"node {owner.name}"
    if owner is not None and owner.since_ms is not None:
        told += f", since {format_time(owner.since_ms)}"
    copies = _format_copies(here.copies) if here else ""
    return f"{told}; the copies here are {copies}" if copies else told


def _format_role(node: NodeDescription) -> str:
    role = "owns" if node.owns else "follows"
    return f"{role}, here" if node.is_here else role


def _format_status(is_ready: bool) -> str:  # the cell of a table
    return "Ready" if is_ready else "NotReady"


def _format_heard(node: NodeDescription) -> str:
    status = _format_status(node.is_ready)
    if node.heard_ms is None:
        return f"{status}, not heard of"
    return status if node.is_ready else f"{status}, heard of {node.heard_ms / 1_000:.0f} s ago"


def _format_lag(copies: CopiesDescription) -> str:
    if copies.in_step_ms is None:
        return "not in step yet"
    if copies.in_step_ms >= LATE_MS:
        ago = f"in step {copies.in_step_ms / 1_000:.1f} s ago"
        return f"{copies.behind_entries} entries behind, {ago}"
    return f"{copies.behind_entries} entries behind" if copies.behind_entries else "in step"


def _format_copies(copies: CopiesDescription | None) -> str:
    """Return how far copies are, and what is odd about the clock."""
    if copies is None:
        return ""
    ahead_ms = copies.clock_ms or 0
    word = "ahead of" if ahead_ms > 0 else "behind"
    lag, clock = _format_lag(copies), f"{abs(ahead_ms) / 1_000:.1f} s {word} the owner's"
    return f"{lag}; the clock is {clock}" if abs(ahead_ms) >= CLOCK_MS else lag


def _format_silence(silence_ms: int) -> str:
    return f"after {silence_ms / 1_000:.1f} s of silence" if silence_ms else ""


NODES: Final = TableLayout(
    NodeDescription,
    "NODE: name, STATUS: is_ready, ROLE, OWNED FROM: since_ms, WORKERS: workers, ADDRESS: address, "
    "VERSION: version, COPIES: copies",
    {
        "STATUS": _format_status,
        "ROLE": _format_role,
        "OWNED FROM": format_time,
        "COPIES": _format_lag,
    },
    shown_if=dict.fromkeys(("OWNED FROM", "ADDRESS", "VERSION", "COPIES"), any),
    empty="no nodes",
)
NODE_FACTS: Final = TableLayout(
    NodeDescription,
    "Node: name, Status, Role, Owned from: since_ms, Claimed: silence_ms, "
    "Owner epoch: owner_epoch, Address: address, Version: version, Workers: workers, "
    "Copies: copies",
    {
        "Status": _format_heard,
        "Role": _format_role,
        "Owned from": format_time,
        "Claimed": _format_silence,
        "Copies": _format_copies,
    },
)
