"""Publishes batches in a simulated sink, as the tasks of a worker do, and its janitor.

What counts, and what is unpublished, they learn from the worker's own `GroupLedger`, which reads
the offset log of its host.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ....events.commits import Commit
from ....events.model import Resource, Resources
from ...node.worker.cleanup_duty import is_on_duty
from ...node.worker.core.contract import BatchPublished, CommitAsked, Forgotten
from ...node.worker.group_ledger import GroupLedger
from ..group.durable_state import GROUP_ID
from ..group.place import GroupPlace
from ..invariants.hosts import SimulatedSink

T = TypeVar("T")


class SimulatedLedger(GroupLedger):
    """The ledger of a worker, on the copy of the offset log at its place.

    Its commits have gone through the core of the worker, and are answered already.
    """

    def __init__(self, place: GroupPlace, hand_over: Callable[..., None]) -> None:
        super().__init__(GROUP_ID, Path(), hand_over)
        self._place = place

    def _ask(self, commit: Commit) -> None:
        """Do nothing: it is answered."""

    def tasks_with_unpublished(self) -> Resources:
        """Return the tasks that have commits which are not recorded as published."""
        unpublished = (each.commit.commit_id for each in self._unpublished(()))
        return frozenset(Resource(each.connector, each.task) for each in unpublished)

    def _read(self, what: Callable[..., T]) -> T:
        return what(self._place.offsets)


class Publishing:
    """Publishes the batches of one worker's tasks."""

    def __init__(
        self,
        place: GroupPlace,
        sink: SimulatedSink,
        hand_over: Callable[[CommitAsked | BatchPublished | Forgotten], None],
    ) -> None:
        self._ledger = SimulatedLedger(place, hand_over)
        self._place, self._sink = place, sink

    def publish(self, commit: Commit) -> None:
        """Publish a batch whose commit is accepted, unless that was done already."""
        sequence = self._ledger.commit(commit)
        if sequence is not None:
            self._sink.publish(Resource(*commit.commit_id[:2]), sequence)
            self._ledger.published(commit.commit_id)

    def recover(self, resource: Resource) -> None:
        """Publish what a task's former owner has left."""
        for each in self._ledger.unpublished(resource.connector, resource.task):
            self._sink.publish(resource, each.sequence)
            self._ledger.published(each.commit.commit_id)

    def clean_up(self, member_id: str) -> None:
        """Publish what tasks without an owner have left, if this member is on duty.

        A real sink is known by the config of its task; this one has none to know.
        """
        group = self._place.group
        if is_on_duty(group, member_id):
            for task in sorted(self._ledger.tasks_with_unpublished() - group.owner.keys()):
                self.recover(task)
