"""Requests about workers and assignors, and orders to workers.

Without `group` an order is for the worker of that name in the group of the node's own workers.
"""

from typing import Final

from msgspec.json import Decoder

from ...replies.node import AssignorList, GroupWorkerOrder, WorkerList, WorkerRemoval
from ..sending.requests import NodeRequest, get, put

WORKERS: Final = Decoder(WorkerList)
ORDER: Final = Decoder(GroupWorkerOrder)
REMOVAL: Final = Decoder(WorkerRemoval)
ASSIGNORS: Final = Decoder(AssignorList)


def list_workers() -> NodeRequest[WorkerList]:
    """List the workers, with their processes and all that they have."""
    return get(WORKERS, "workers")


def list_assignors() -> NodeRequest[AssignorList]:
    """List the assignors that a group can use, and the process that runs them."""
    return get(ASSIGNORS, "assignors")


def drain(worker: str, *, group: str | None = None) -> NodeRequest[GroupWorkerOrder]:
    """Assign no more work to a worker, and revoke what it has."""
    return put(ORDER, "workers", worker, "drain", group=group)


def cordon(worker: str, *, group: str | None = None) -> NodeRequest[GroupWorkerOrder]:
    """Assign no more work to a worker; it keeps what it has."""
    return put(ORDER, "workers", worker, "cordon", group=group)


def uncordon(worker: str, *, group: str | None = None) -> NodeRequest[GroupWorkerOrder]:
    """Allow work for a worker again: ends a cordon or a drain."""
    return put(ORDER, "workers", worker, "uncordon", group=group)


def expect(
    worker: str, within_ms: int, *, group: str | None = None
) -> NodeRequest[GroupWorkerOrder]:
    """Keep the work of a worker for its return within that time; 0 ends the wait."""
    path, body = ("workers", worker, "expect"), {"within_ms": within_ms}
    return NodeRequest("PUT", path, ORDER, {"group": group}, body)


def remove_worker(
    worker: str, *, force: bool = False, group: str | None = None
) -> NodeRequest[WorkerRemoval]:
    """Remove a worker: it gives up its work, leaves, and its process is not started again.

    With `force` its process ends at once. The message says what happens next.
    """
    query = {"force": force, "group": group}
    return NodeRequest("DELETE", ("workers", worker), REMOVAL, query)
