"""An example of a custom assignor: each connector runs on one worker, with all of its tasks.

The worker follows from the names only (rendezvous hashing), so a worker that joins or leaves moves
only its own connectors.
"""

from collections.abc import Mapping
from hashlib import blake2b

from fairlead.sdk import (
    Assignment,
    MemberAssignment,
    Metadata,
    Resource,
    Snapshot,
    Worker,
    demand_of,
    eligible,
    nobody_meets,
    plain_metadata,
)


class Together:
    """Configured by `assignor.conf.*`: another `salt` gives another distribution."""

    name = "together"
    minimum_version = 0
    maximum_version = 0

    def __init__(self, conf: Mapping[str, str]) -> None:
        self._salt = conf.get("salt", "")

    def metadata(self, worker: Worker) -> Metadata:
        """Return the metadata of the built-in assignors: capacity and tags."""
        return plain_metadata(worker)

    def assign(self, group: Snapshot) -> Assignment:
        """Assign each connector to the worker with the highest hash of both names."""
        takers = eligible(group.members).takers
        shares: dict[str, set[Resource]] = {member: set() for member in group.members}
        unplaceable: dict[Resource, str] = {}
        for resource in group.configured:
            demand = demand_of(group, resource)
            able = [taker for taker in takers if demand.is_met(taker)]
            if able:
                chosen = max(able, key=lambda taker: self._draw(resource, taker.worker))
                shares[chosen.member_id].add(resource)
            else:
                unplaceable[resource] = nobody_meets(demand, takers)
        members = {member: frozenset(share) for member, share in shares.items()}
        return Assignment(members, unplaceable=unplaceable)

    def on_assignment(self, assignment: MemberAssignment) -> None:
        """Do nothing: no state is kept between assignments."""

    def _draw(self, resource: Resource, worker: str) -> bytes:
        return blake2b(f"{self._salt}\0{resource.connector}\0{worker}".encode()).digest()
