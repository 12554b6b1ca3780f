"""The assignor `range`: each subscriber of a topic gets a contiguous range of its partitions.

The ranges are in the order of the members' names. Their lengths differ by one at most, and the
longer ones come first. So topics with the same number of partitions and the same subscribers are
co-partitioned: the member with partition 3 of one has partition 3 of the other.
"""

from ....events.model import Resource
from ...messages.computing import Assignment, Snapshot
from .subscribers import as_assignment, find_subscribers, partitions_of


def assign_ranges(snapshot: Snapshot) -> Assignment:
    """Return the target assignment of all partitions."""
    shares: dict[str, set[Resource]] = {each: set() for each in snapshot.members}
    partitions = partitions_of(snapshot)
    for topic, members in find_subscribers(snapshot).items():
        begin = 0
        for index, member_id in enumerate(members):
            length, odd = divmod(len(partitions[topic]), len(members))
            end = begin + length + (index < odd)
            shares[member_id].update(partitions[topic][begin:end])
            begin = end
    return as_assignment(snapshot, {each: frozenset(share) for each, share in shares.items()})
