"""Builds replies about the nodes of a cluster: from the log, the members, and this node's process.

The names of nodes are in the claims of the group, and in what the owner has heard of the others.
Members have only the place of their node, which each node tells the owner. The place of a node that
nobody has heard of is shown by its host.
"""

import socket
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from .....actors.messages.commands import NODE_LIVES_MS, CopiesView, NodeReport
from .....events.group import Group
from .....events.records import OwnerBegan
from .....events.stores.opening import LMDB
from ....cluster.messages import OwnershipView
from ..node import CopiesDescription, NodeDescription, NodeList


def describe_nodes(
    group: Group, claims: Mapping[str, OwnerBegan], here: OwnershipView, places: Iterable[str]
) -> NodeList:
    """Return the nodes that a group knows; `places` are those of this node's own workers."""
    own = here.node or socket.gethostname()
    last = {**claims} if here.store else {}
    if here.store and isinstance(group.ownership, OwnerBegan):
        last[group.ownership.node] = group.ownership
    here = here if here.store else replace(here, node=own, owner=own)
    reports = _reports(here)
    workers = _workers_by_place(group)
    mine = {name for place in {*places} for name in workers.pop(place, ())}
    of_name = {name: workers.pop(each.place, set()) for name, each in reports.items()} | {own: mine}
    nodes = [
        _describe(name, here, last.get(name), reports.get(name), of_name.get(name, ()))
        for name in sorted({*last, *reports})
    ]
    nodes += [
        NodeDescription(
            name=_host(place), owns=False, is_here=False, workers=sorted(workers[place])
        )
        for place in sorted(workers)
    ]
    return NodeList(group.group_id, here.store or LMDB, here.owner, here.silent_ms, nodes)


def _reports(here: OwnershipView) -> dict[str, NodeReport]:
    """Return what is known of each node by its name, but for what the log has.

    This node knows most of itself, and from the store how long the owner is silent.
    """
    reports = {each.name: each for each in here.nodes}
    reports[here.node] = NodeReport(here.node, here.address, "", here.version, here.copies)
    if here.owner not in {"", here.node}:
        owner = reports.get(here.owner) or NodeReport(here.owner, here.owner_address, "", "")
        reports[here.owner] = replace(owner, copies=None, heard_ms=here.silent_ms)
    return reports


def _describe(
    name: str,
    here: OwnershipView,
    claim: OwnerBegan | None,
    report: NodeReport | None,
    workers: Iterable[str],
) -> NodeDescription:
    is_ready = report is not None and report.heard_ms < NODE_LIVES_MS
    copies = report.copies if report and is_ready else None
    return NodeDescription(
        name=name,
        owns=name == here.owner,
        is_here=name == here.node,
        is_ready=is_ready,
        address=(report.address if report else "") or (claim.address if claim else ""),
        version=(report.version if report else "") or (claim.version if claim else ""),
        workers=sorted(workers),
        heard_ms=report.heard_ms if report else None,
        owner_epoch=claim.epoch if claim else None,
        since_ms=claim.time_ms if claim else None,
        silence_ms=claim.silence_ms if claim else None,
        copies=_describe_copies(copies) if copies else None,
    )


def _describe_copies(copies: CopiesView) -> CopiesDescription:
    return CopiesDescription(copies.behind_entries, copies.in_step_ms, copies.clock_ms)


def _workers_by_place(group: Group) -> dict[str, set[str]]:
    """Return the names of workers by place; a process that has just gone shares its successor's."""
    workers: defaultdict[str, set[str]] = defaultdict(set)
    for member in group.workers():
        place, _, name = member.metadata.worker_url.rpartition("/")
        if place:
            workers[place].add(name)
    return {**workers}


def _host(address: str) -> str:
    return address.rpartition("//")[2].rpartition(":")[0]
