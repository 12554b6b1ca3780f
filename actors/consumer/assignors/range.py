"""The assignor `range`: of each topic, each of its subscribers has a stretch of the partitions.

The stretches are in the order of the members' names, none longer than another by more than one, the
longer ones first. So topics with the same number of partitions and the same subscribers are cut
alike (co-partitioned): the member with partition 3 of one has partition 3 of the other.
"""

from ....events.model import Resource
from ...messages.computing import Assignment, Snapshot
from .subscribers import as_assignment, find_subscribers, partitions_of


def assign_ranges(snapshot: Snapshot) -> Assignment:
    """Compute `range`: return where every partition is to go."""
    shares: dict[str, set[Resource]] = {each: set() for each in snapshot.members}
    partitions = partitions_of(snapshot)
    for topic, members in find_subscribers(snapshot).items():
        begin = 0
        for place, member_id in enumerate(members):
            length, odd = divmod(len(partitions[topic]), len(members))
            end = begin + length + (place < odd)
            shares[member_id].update(partitions[topic][begin:end])
            begin = end
    return as_assignment(snapshot, {each: frozenset(share) for each, share in shares.items()})
