"""The seat that a worker takes in its group: who it is, and which assignor it names."""

import socket
import uuid

from ...actors.assignors import balanced
from ...actors.worker.instructions import Identity
from ...actors.worker.membership import Membership
from ...events import abilities
from ...events.model import Assignor
from ..node.spec import NodeSpec


def membership_of(node: NodeSpec, worker: str, *, is_warm: bool) -> Membership:
    """Return the membership of a worker's new process."""
    identity = Identity(
        node.group_id,
        str(uuid.uuid4()),
        str(uuid.uuid4()),
        node.url(worker),
        client_id=worker,
        client_host=socket.gethostname(),
        instance_id=node.instance_id(worker),
    )
    named = () if node.server_assignor else assignors(is_warm=is_warm)
    return Membership(identity, node.timing, named, server_assignor=node.server_assignor)


def joins_warm(node: NodeSpec, worker: str) -> bool:
    """Tell whether to join only when the engine is warm.

    Others join cold and say so. A worker that names a server assignor has no way to say it,
    and a static one would have its seat's work moved away by saying it.
    """
    return node.server_assignor is not None or node.instance_id(worker) is not None


def assignors(*, is_warm: bool) -> tuple[Assignor, ...]:
    """Return what a worker can compute with, and whether it can take work yet."""
    return (
        Assignor(
            balanced.NAME,
            balanced.MINIMUM_VERSION,
            balanced.MAXIMUM_VERSION,
            balanced.VERSION,
            metadata=abilities.WARM if is_warm else abilities.COLD,
        ),
    )
