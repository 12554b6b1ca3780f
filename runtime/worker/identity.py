"""The seat that a worker takes in its group: who it is, and which assignors it names."""

import socket
import uuid

from ...actors.messages.assignors import Worker
from ...actors.worker.instructions import Identity
from ...actors.worker.membership import Membership
from ...events.model import ClientAssignor
from ..cluster.spec import NodeSpec, StartWorker


def membership_of(order: StartWorker) -> Membership:
    """Return the membership of a worker's new process.

    What its assignors say of themselves it has to be told before it joins.
    """
    node = order.node
    identity = Identity(
        node.group_id,
        str(uuid.uuid4()),
        str(uuid.uuid4()),
        node.url(order.name),
        client_id=order.name,
        client_host=socket.gethostname(),
        instance_id=node.instance_id(order.name),
        rack=order.traits.zone,
        node=node.node_id,
    )
    named = () if node.server_assignor else tuple(map(ClientAssignor, node.assignors.names))
    return Membership(identity, node.timing, named, server_assignor=node.server_assignor)


def facts_of(order: StartWorker, *, is_warm: bool) -> Worker:
    """Return what assignors are to know of a worker."""
    traits, able = order.traits, order.traits.abilities
    return Worker(order.name, traits.zone, able.tags, able.capacity if is_warm else 0)


def joins_warm(node: NodeSpec, worker: str) -> bool:
    """Tell whether to join only when the engine is warm.

    Others join cold and say so. A worker that names a server assignor has no way to say it,
    and a static one would have its seat's work moved away by saying it.
    """
    return node.server_assignor is not None or node.instance_id(worker) is not None
