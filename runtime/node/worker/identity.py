"""A worker put together from its order: who it is, what it can, and which assignors it names."""

import socket
import uuid

from ....actors.messages.assignors import Worker
from ....actors.worker.instructions import Identity
from ....actors.worker.membership import Membership
from ....events.model import ClientAssignor
from ...cluster.messages import StartWorker
from .core.contract import MemberLog
from .core.worker_core import WorkerCore


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


def core_of(order: StartWorker, membership: Membership, log: MemberLog) -> WorkerCore:
    """Return the core of a worker that has not begun yet.

    It joins cold and says so, but for two: one that names a server assignor has no way to say it,
    and a static one would have its seat's work moved away by saying it.
    """
    node, traits = order.node, order.traits
    able = traits.abilities
    return WorkerCore(
        membership,
        log,
        Worker(order.name, traits.zone, able.tags, able.capacity),
        () if node.server_assignor else node.assignors.names,
        is_warm=node.engine.kind == "noop",
        joins_warm=node.server_assignor is not None or membership.identity.instance_id is not None,
    )
