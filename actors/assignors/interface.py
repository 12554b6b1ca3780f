"""The interface of an assignor: what it says for its worker, and what it makes of a group.

It is the proposal's `ConnectAssignor`. An assignor is made by calling what its entry point
names, a class or a function, with one mapping of texts, its configuration. One object is made
for each worker of a node. All of them live in the node's assignor process, never in a worker
or a group, and are called one at a time:

    class Alphabetical:
        name, minimum_version, maximum_version = "alphabetical", 0, 0

        def __init__(self, conf: Mapping[str, str]) -> None: ...
        def metadata(self, worker: Worker) -> Metadata:
            return plain_metadata(worker)
        def assign(self, group: Snapshot) -> Assignment: ...
        def on_assignment(self, assignment: MemberAssignment) -> None: ...

What is raised by any of these, returned by mistake, or never returned at all ends no worker:
it is told as the error of the attempt, and the target that there is stays. The process is
another one after a crash, a call that took too long, or when its memory is full: what an object
keeps may be gone at any time, and all that counts is to be found in the snapshot. Processes that
it starts end with it, and a fork of it ends where the call returns.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from ...events.placement.abilities import Abilities, written
from ..messages.assignors import MemberAssignment, Metadata, Worker
from ..messages.computing import Assignment, Snapshot


class ConnectAssignor(Protocol):
    """An assignor, speaking for one worker."""

    @property
    def name(self) -> str:
        """Its name, by which members agree on an assignor; that of its entry point."""
        ...

    @property
    def minimum_version(self) -> int:
        """The oldest version of metadata that it reads; -1 or more."""
        ...

    @property
    def maximum_version(self) -> int:
        """The newest version of metadata that it reads; 0 or more."""
        ...

    def metadata(self, worker: Worker) -> Metadata:
        """Return what the group is to know of the worker.

        It is asked when the worker begins, when its engine is warm, and every ten seconds.
        Every change is a new epoch, with a computation for the whole group: what differs each
        time is asked for ever less often, down to every five minutes. All workers of a node
        are asked one after the other, and computations wait meanwhile: it should take well
        below a second. Where it raises, what it said last of the same worker stands.
        """
        ...

    def assign(self, group: Snapshot) -> Assignment:
        """Return where everything in `group.configured` goes: to a member, parked, or nowhere.

        Parked may be only what a loss left, with a deadline that the loss gives; what goes
        nowhere is unplaceable, with the reason in words, of at most 32,000 characters. A member
        that is not named gets nothing. What work demands of its worker (`group.pins`,
        `group.needs`; see `demands`) is to be met: a member may run a resource if
        `demand_of(group, resource).is_met(member)`. A result that breaks any of this is
        refused as a whole, with the resource named, and the target stays as it was.

        What operators ordered of workers nobody checks: only the assignor heeds it. The takers
        that `eligible(group.members)` returns are those that may be given anything, its
        keepers those that may only keep what they have, and whoever is draining is to have
        nothing.
        """
        ...

    def on_assignment(self, assignment: MemberAssignment) -> None:
        """Take note of what the worker has been given by the group, after it changed.

        A new process is told it anew, unless three in a row ended over the very same.
        """
        ...


AssignorFactory = Callable[[Mapping[str, str]], ConnectAssignor]
"""Makes an assignor from its configuration: what an entry point names."""


def plain_metadata(worker: Worker) -> Metadata:
    """Return what the built-in assignors say: the worker's capacity and tags, as JSON."""
    return Metadata(content=written(Abilities(worker.capacity, worker.tags)))
