"""The encoded requests of Connect's workers."""

from collections.abc import Iterable

from fairlead.actors.assignors.classic.protocol import MODES, VERSIONS, ReceivedAssignment
from fairlead.actors.classic.bytes.connect import WorkerMetadata, encode_assignment, encode_offers
from fairlead.events.model import CONNECT, ClassicProtocol, Resource
from fairlead_tests.decider import resource


def as_worker(
    url: str, *runs: str, mode: str = "sessioned", config_offset: int = 1
) -> dict[str, object]:
    """Return the JoinGroup metadata of a worker that runs this."""
    own = ReceivedAssignment(named(runs), leader="l", leader_url="http://l/")
    metadata = WorkerMetadata(url, config_offset, own)
    offers = tuple(ClassicProtocol(*each) for each in encode_offers(mode, metadata))
    return {"protocol_type": CONNECT, "protocols": offers}


def told(
    given: Iterable[str] = (), taken: Iterable[str] = (), mode: str = "sessioned", **more: int
) -> bytes:
    """Return the encoded assignment of one worker."""
    version = VERSIONS[MODES[mode]]
    return encode_assignment(
        ReceivedAssignment(
            named(given), named(taken), leader="l", leader_url="http://l/", version=version, **more
        )
    )


def named(names: Iterable[str]) -> tuple[Resource, ...]:
    """Return resources by their short names, in this order."""
    return tuple(map(resource, names))
