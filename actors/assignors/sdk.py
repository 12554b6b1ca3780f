"""The interface of an assignor, and all that one's own is written with.

An assignor is a class as `ConnectAssignor` describes it, named by an entry point of the group
`fairlead.assignors`; nothing else of fairlead needs an import:

    class Alphabetical:
        name, minimum_version, maximum_version = "alphabetical", 0, 0

        def __init__(self, conf: Mapping[str, str]) -> None: ...
        def metadata(self, worker: Worker) -> Metadata:
            return plain_metadata(worker)
        def assign(self, group: Snapshot) -> Assignment: ...
        def on_assignment(self, assignment: MemberAssignment) -> None: ...

`eligible` tells which members may be given work, `demand_of` where a resource may run, and
`nobody_meets` says in words why one is left out. ASSIGNORS.md has the smallest assignor,
deploy/together a whole one.

One object is made for each worker of a node, by calling what the entry point names, a class or a
function, with one mapping of texts, its configuration. All of them live in the node's assignor
process, never in a worker or a group, and are called one at a time. An exception, a wrong result,
or a call that never returns ends no worker: it is the error of that attempt, and the target stays
as it is. The process is another one after a crash, a call that took too long, or when its memory is
full: what an object keeps may be gone at any time, and all that counts is in the snapshot.
Processes that it starts end with it, and a fork of it ends where the call returns.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from ...events.model import CONNECTOR, NOTHING, AssignorData, Resource, Resources
from ...events.placement import Abilities, abilities, encode_abilities
from ..messages.assignors import MemberAssignment, Metadata, Worker
from ..messages.computing import Assignment, LossView, MemberView, Needs, Snapshot
from .demands import Demand, demand_of, nobody_meets
from .eligibility import Eligible, eligible

__all__ = [
    "CONNECTOR",
    "NOTHING",
    "Abilities",
    "Assignment",
    "AssignorData",
    "AssignorFactory",
    "ConnectAssignor",
    "Demand",
    "Eligible",
    "LossView",
    "MemberAssignment",
    "MemberView",
    "Metadata",
    "Needs",
    "Resource",
    "Resources",
    "Snapshot",
    "Worker",
    "abilities",
    "demand_of",
    "eligible",
    "nobody_meets",
    "plain_metadata",
]


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
        """Return this worker's metadata for the assignors of all members.

        It is called when the worker begins, when its engine is warm, and every ten seconds.
        Every change is a new epoch, with a computation for the whole group: metadata that differs
        each time is asked for ever less often, down to every five minutes. The workers of a node
        are asked one after the other, and computations wait meanwhile: it should take well below a
        second. Where it raises, what it returned last for the same worker stands.
        """
        ...

    def assign(self, group: Snapshot) -> Assignment:
        """Return the place of each resource in `group.configured`: a member, parked, or none.

        Only lost work may be parked, with a deadline that its loss gives. Work that goes nowhere
        is unplaceable, with the reason in words, of at most 32,000 characters. A member that is not
        named gets nothing. What work demands of its worker (`group.pins`, `group.needs`) is to be
        met: a member may run a resource if `demand_of(group, resource).is_met(member)`. A result
        that breaks any of this is refused as a whole, with the resource named, and the target
        stays as it was.

        Orders of operators for workers are not checked: the assignor alone heeds them. The takers
        of `eligible(group.members)` may be given anything, its keepers may only keep what they
        have, and a member that is draining is to have nothing.
        """
        ...

    def on_assignment(self, assignment: MemberAssignment) -> None:
        """Handle a new assignment of this worker; called after each change.

        A new process is told it again, unless three processes in a row ended over the same.
        """
        ...


AssignorFactory = Callable[[Mapping[str, str]], ConnectAssignor]
"""Makes an assignor from its configuration: what an entry point names."""


def plain_metadata(worker: Worker) -> Metadata:
    """Return the metadata of the built-in assignors: the worker's capacity and tags, as JSON."""
    return Metadata(content=encode_abilities(Abilities(worker.capacity, worker.tags)))
