"""The assignors of a node's workers: one set of objects for each, asked with care.

Whatever they raise or return, the answer is one that a worker can take.
"""

import logging
from collections.abc import Mapping, Sequence

from ...actors.assignors.interface import (
    AssignorFactory,
    ConnectAssignor,
    MemberAssignment,
    Worker,
)
from ...actors.messages.assignors import Assigned, Introduced
from ...actors.messages.computing import Snapshot
from ...events.model import Assignor
from .finding import AssignorRefusedError, find_assignor, make_assignor
from .mishaps import USERS_ERRORS, told
from .results import introduced, plain_assignment

LOGGER = logging.getLogger(__name__)

Crew = Mapping[str, ConnectAssignor]


class Panel:
    """All assignors of one process; raises `AssignorRefusedError` if one can not be used."""

    def __init__(self, names: Sequence[str], conf: Mapping[str, str]) -> None:
        """Find them by name, in the order of preference; `conf` is theirs."""
        self._conf = dict(conf)
        self._factories: dict[str, AssignorFactory] = {name: find_assignor(name) for name in names}
        self._crews: dict[str, Crew] = {}
        self._members: dict[str, str] = {}
        self._make()  # what can not be made at all is to be told before anybody needs it

    def introduce(self, member_id: str, worker: Worker, number: int) -> Introduced:
        """Return what a member is to say of its assignors, and what is wrong with others."""
        gone = self._members.get(worker.name)
        if gone is not None and gone != member_id:
            self._crews.pop(gone, None)
        self._members[worker.name] = member_id
        found: list[Assignor] = []
        errors: list[str] = []
        try:
            crew = self._crew(member_id)
        except AssignorRefusedError as error:
            return Introduced(number, (), (str(error),))
        for name, assignor in crew.items():
            try:
                found.append(introduced(assignor, name, assignor.metadata(worker)))
            except USERS_ERRORS as error:
                LOGGER.warning("assignor %s says nothing of %s", name, worker.name, exc_info=error)
                errors.append(f"assignor {name} is left out: {told(error)}")
        return Introduced(number, tuple(found), tuple(errors))

    def assign(self, member_id: str, snapshot: Snapshot) -> Assigned:
        """Compute with the assignor that the snapshot names."""
        epoch, name = snapshot.group_epoch, snapshot.assignor
        if name not in self._factories:
            known = ", ".join(self._factories)
            return Assigned(epoch, None, f"there is no assignor {name!r} here: only {known}")
        try:
            made = plain_assignment(self._crew(member_id)[name].assign(snapshot))
        except USERS_ERRORS as error:
            LOGGER.warning("assignor %s made no assignment", name, exc_info=error)
            return Assigned(epoch, None, f"assignor {name}: {told(error)}")
        return Assigned(epoch, made)

    def given(self, name: str, assignment: MemberAssignment) -> None:
        """Tell an assignor what its worker was given."""
        crew = self._crews.get(assignment.member_id, {})
        if name not in crew:
            return
        try:
            crew[name].on_assignment(assignment)
        except USERS_ERRORS as error:
            LOGGER.warning("assignor %s failed on an assignment", name, exc_info=error)

    def _crew(self, member_id: str) -> Crew:
        if member_id not in self._crews:
            self._crews[member_id] = self._make()
        return self._crews[member_id]

    def _make(self) -> Crew:
        return {
            name: make_assignor(name, make, self._conf) for name, make in self._factories.items()
        }
