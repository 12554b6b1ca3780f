"""The assignors of a node's workers: one set of objects for each, asked with care.

Whatever they raise or return, the answer is one that a worker can take.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from ...actors.assignors.interface import AssignorFactory, ConnectAssignor
from ...actors.group.computing.target import flaw_in
from ...actors.messages.assignors import (
    Assign,
    Assigned,
    Forget,
    Given,
    Introduce,
    Introduced,
    MemberAssignment,
    Noted,
    Worker,
)
from ...actors.messages.computing import Assignment, Snapshot
from ...events.model import ClientAssignor
from .finding import AssignorRefusedError, find_assignor, make_assignor
from .isolation import has_room
from .results import introduced, plain_assignment
from .user_errors import USERS_ERRORS, describe, log_story, one_line

LOGGER = logging.getLogger(__name__)

Crew = Mapping[str, ConnectAssignor]
Show = Callable[[str], AbstractContextManager[None]]
"""Shows what is being done, for as long as it takes."""


def show_nowhere(_: str) -> AbstractContextManager[None]:
    """Show it to nobody."""
    return nullcontext()


class AssignorHost:
    """All assignors of one process; raises `AssignorRefusedError` if one cannot be used."""

    def __init__(
        self, names: Sequence[str], conf: Mapping[str, str], show: Show = show_nowhere
    ) -> None:
        """Find them by name, in the order of preference; `conf` is theirs."""
        self._conf = dict(conf)
        self._show = show
        self._factories: dict[str, AssignorFactory] = {}
        for name in names:
            with show(f"loading {name}"):
                self._factories[name] = find_assignor(name)
        self._crews: dict[str, Crew] = {}
        self._members: dict[str, str] = {}
        self._logged: dict[str, str] = {}
        self._has_starved = False
        """Whether one of them has wanted more memory than there is, since `is_full` was asked."""
        # what cannot be made at all is to be told before anybody needs it
        self._spare: Crew | None = self._make()

    def answer(
        self, question: Introduce | Assign | Given | Forget
    ) -> Introduced | Assigned | Noted | None:
        """Return the answer to a question; None where nobody waits for one."""
        match question:
            case Introduce(member_id, worker, number):
                return self.introduce(member_id, worker, number)
            case Assign(snapshot, member_id):
                return self.assign(member_id, snapshot)
            case Given(name, assignment, number):
                self.given(name, assignment)
                return Noted(number)
            case Forget(worker):
                self.forget(worker)
                return None

    def introduce(self, member_id: str, worker: Worker, number: int) -> Introduced:
        """Return what a member is to say of its assignors, and what is wrong with others."""
        if self._members.get(worker.name, member_id) != member_id:
            self.forget(worker.name)
        self._members[worker.name] = member_id
        found: list[ClientAssignor] = []
        errors: list[str] = []
        try:
            crew = self._crew(member_id)
        except AssignorRefusedError as error:
            return Introduced(number, (), (str(error),))
        for name, assignor in crew.items():
            try:
                with self._show(f"calling {name}.metadata"):
                    found.append(introduced(assignor, name, assignor.metadata(worker)))
            except USERS_ERRORS as error:
                errors.append(f"assignor {name} said nothing: {describe(error)}")
                self._log(f"assignor {name} says nothing of {worker.name}", error)
        return Introduced(number, tuple(found), tuple(errors))

    def assign(self, member_id: str, snapshot: Snapshot) -> Assigned:
        """Compute with the assignor that the snapshot names."""
        made, error = self._made(member_id, snapshot)
        return Assigned(snapshot.group_epoch, made, error, snapshot.snapshot_id)

    def _made(self, member_id: str, snapshot: Snapshot) -> tuple[Assignment | None, str]:
        """Return the assignment, or why there is none."""
        name = snapshot.assignor
        if name not in self._factories:
            known = ", ".join(self._factories)
            return None, f"there is no assignor {name!r} here: only {known}"
        try:
            assignor = self._crew(member_id)[name]
            with self._show(f"calling {name}.assign"):
                made = plain_assignment(assignor.assign(snapshot))
            flaw = flaw_in(made, snapshot)
        except USERS_ERRORS as error:
            self._log(f"assignor {name} made no assignment", error)
            return None, f"assignor {name}: {describe(error)}"
        if flaw:  # the group would find it too, once all of it has been sent there
            return None, f"assignor {name}: {one_line(flaw)}"
        return made, ""

    def given(self, name: str, assignment: MemberAssignment) -> None:
        """Tell an assignor what its worker was given."""
        crew = self._crews.get(assignment.member_id, {})
        if name not in crew:
            return
        try:
            with self._show(f"calling {name}.on_assignment"):
                crew[name].on_assignment(assignment)
        except USERS_ERRORS as error:
            self._log(f"assignor {name} failed on an assignment", error)

    def is_full(self, memory_bytes: int) -> bool:
        """Tell whether this process keeps nearly all of its memory: it would fail at everything."""
        has_starved, self._has_starved = self._has_starved, False
        return has_starved and not has_room(memory_bytes)

    def forget(self, worker: str) -> None:
        """Let go of the assignors of a worker, and of all that no known worker has."""
        self._members.pop(worker, None)
        known = set(self._members.values())
        self._crews = {each: crew for each, crew in self._crews.items() if each in known}

    def _log(self, what: str, error: BaseException) -> None:
        """Log what went wrong, unless it is just what went wrong the last time."""
        self._has_starved |= issubclass(type(error), MemoryError)
        said = describe(error)
        if self._logged.get(what) != said:
            self._logged[what] = said
            log_story(LOGGER, what, error)

    def _crew(self, member_id: str) -> Crew:
        if member_id not in self._crews:
            self._crews[member_id] = self._spare or self._make()
            self._spare = None
        return self._crews[member_id]

    def _make(self) -> Crew:
        crew: dict[str, ConnectAssignor] = {}
        for name, make in self._factories.items():
            with self._show(f"making {name}"):
                crew[name] = make_assignor(name, make, self._conf)
        return crew
