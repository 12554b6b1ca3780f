"""The next step in the import of one connector, decided by what is recorded and seen.

A connector is stopped in Connect, created in the node, given its offsets, started, and watched
until it commits an offset. The way back is the same from the other end. Every step is recorded; one
that changes something is recorded before. So whoever goes on after a death looks at both sides
again and repeats at most what may be repeated.

The rule of all this: a connector is started on one side only while it is seen STOPPED, without
tasks, on the other.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from typing import Final, NamedTuple

from msgspec import Struct

from ...replies.progress import ConnectorOffset

STOPPED: Final = "STOPPED"
PAUSED: Final = "PAUSED"
RUNNING: Final = "RUNNING"
FAILED: Final = "FAILED"


class ImportStep(StrEnum):
    """How far a connector has come. *There* is Kafka Connect, *here* the node."""

    STOPPING = "stopping there"
    STOPPED = "stopped there"
    CREATING = "being created here"
    CREATED = "created here"
    PLACED = "offsets are here"
    STARTING = "starting here"
    MOVED = "moved"
    RETURNING = "stopping here"
    READY = "ready to start there"
    RETURNED = "returned"


class ImportEntry(Struct, frozen=True, omit_defaults=True):
    """A step as it is recorded; nothing of it is secret."""

    connector: str
    step: ImportStep
    time_ms: int
    was: str = ""
    """Its state there before the import: RUNNING, PAUSED or STOPPED; empty: as before."""
    offsets: Sequence[ConnectorOffset] | None = None
    """Its offsets there when it had stopped, or here before it starts; None: as before."""
    reason: str = ""
    """Why it returns, or what is remarkable about the step."""


@dataclass(frozen=True, slots=True)
class ImportPlace:
    """The place of a connector between the sides, as it is recorded."""

    step: ImportStep | None = None
    """None: nothing."""
    was: str = RUNNING
    offsets: Sequence[ConnectorOffset] = ()
    is_own: bool = False
    """Whether the import has created it here."""
    has_run: bool = False
    """Whether it may have run here."""
    reason: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it is between the two sides."""
        return self.step not in {None, ImportStep.MOVED, ImportStep.RETURNED}

    @property
    def is_returning(self) -> bool:
        """Whether its way back has begun, and not ended."""
        return self.step in {ImportStep.RETURNING, ImportStep.READY}

    def after(self, entry: "ImportEntry") -> "ImportPlace":
        """Return the place after one more step."""
        before = ImportPlace() if self.step is ImportStep.RETURNED else self
        step = entry.step
        return replace(
            before,
            step=step,
            reason=entry.reason,
            was=entry.was or before.was,
            offsets=before.offsets if entry.offsets is None else entry.offsets,
            is_own=before.is_own or step is ImportStep.CREATING,
            has_run=before.has_run or step in {ImportStep.STARTING, ImportStep.MOVED},
        )


class SideStatus(NamedTuple):
    """The state of a connector on one side."""

    state: str = ""
    """Empty: it is not there."""
    tasks: Sequence[str] = ()
    """The states of its tasks."""
    trace: str = ""
    """Why it, or the first of its tasks that has failed, has failed."""

    @property
    def is_absent(self) -> bool:
        """Whether there is no such connector."""
        return not self.state

    @property
    def is_stopped(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.state == STOPPED and not self.tasks

    @property
    def may_run(self) -> bool:
        """Whether something of it may run, now or soon."""
        return not (self.is_absent or self.is_stopped)

    @property
    def runs_whole(self) -> bool:
        """Whether it and all its tasks run."""
        return self.state == RUNNING and bool(self.tasks) and {*self.tasks} == {RUNNING}

    @property
    def has_failed(self) -> bool:
        """Whether it or one of its tasks has failed."""
        return FAILED in {self.state, *self.tasks}

    def __str__(self) -> str:
        """Return it in words, with the tasks if they have other states."""
        is_plain = {*self.tasks} <= {self.state}
        counts = Counter(self.tasks).items()
        tasks = "" if is_plain else ", ".join(f"{count} {state}" for state, count in counts)
        return f"{self.state or 'not there'}{f' (tasks: {tasks})' if tasks else ''}"


class BothSides(NamedTuple):
    """The states of a connector on both sides, as they were seen last."""

    there: SideStatus
    here: SideStatus
    has_committed: bool = False
    """Whether its offsets here are others than those that it came with."""


class Deed(Enum):
    """A deed; each may be repeated."""

    NOTHING = auto()
    WAIT = auto()
    STOP_THERE = auto()
    CREATE_HERE = auto()
    SET_OFFSETS_HERE = auto()
    START_HERE = auto()
    STOP_HERE = auto()
    SET_OFFSETS_THERE = auto()
    DELETE_HERE = auto()
    START_THERE = auto()


class Act(NamedTuple):
    """The next deed, and the step that it reaches; None: that is to be looked for."""

    deed: Deed
    then: ImportStep | None = None
    reason: str = ""
    """What is to be recorded with the step."""


class CannotGoOn(Exception):  # noqa: N818  # says what happened
    """Somebody has to decide; the message says what was seen, and what to do."""


class HasFailed(Exception):  # noqa: N818  # says what happened
    """A connector does not run here, and is to be returned; the message says why."""


_WAIT: Final = Act(Deed.WAIT)


def _record(step: ImportStep) -> Act:
    return Act(Deed.NOTHING, step)


def import_next(place: ImportPlace, sides: BothSides) -> Act | None:
    """Return what brings a connector nearer to the node; None: it has been moved.

    Raises `CannotGoOn`, `HasFailed`.
    """
    if place.step in _STOPPED_THERE and not sides.there.is_stopped:  # somebody has resumed it
        return _record(ImportStep.STOPPING)
    return _FORWARD[place.step](place, sides)


def _begin(_: ImportPlace, __: BothSides) -> Act:
    return _record(ImportStep.STOPPING)


def _stop_there(_: ImportPlace, sides: BothSides) -> Act:
    if sides.there.is_absent:
        raise CannotGoOn("it is not in Kafka Connect any more")
    if sides.there.is_stopped:
        return _record(ImportStep.STOPPED)
    return _WAIT if sides.there.state == STOPPED else Act(Deed.STOP_THERE)


def _create(place: ImportPlace, sides: BothSides) -> Act:
    is_noted, here = place.step is ImportStep.CREATING, sides.here
    if here.is_absent:
        return Act(Deed.CREATE_HERE) if is_noted else _record(ImportStep.CREATING)
    if here.is_stopped:
        return _record(ImportStep.CREATED)
    if is_noted and not here.tasks:  # it has just been created, and no worker has it yet
        return _WAIT
    raise CannotGoOn(f"it is {here} here already: stop it on one of the two sides, and go on")


def _take_offsets(_: ImportPlace, __: BothSides) -> Act:
    return Act(Deed.SET_OFFSETS_HERE, ImportStep.PLACED)


def _go_live(place: ImportPlace, _: BothSides) -> Act:
    return _record(ImportStep.MOVED if place.was == STOPPED else ImportStep.STARTING)


def _watch(place: ImportPlace, sides: BothSides) -> Act:
    """Start it here, and look whether it has committed."""
    there, here = sides.there, sides.here
    if there.may_run:
        raise CannotGoOn(
            f"it is {there} there although it was started here: stop it there, or here and"
            " give --back"
        )
    if here.is_absent:
        raise CannotGoOn("somebody has deleted it here: --back starts it there again")
    if here.is_stopped:
        return Act(Deed.START_HERE)
    if here.has_failed:
        raise HasFailed(f"it is {here} here: {here.trace}".rstrip(": "))
    is_there = here.state == PAUSED if place.was == PAUSED else sides.has_committed
    return _record(ImportStep.MOVED) if is_there else _WAIT


def _end(_: ImportPlace, sides: BothSides) -> None:
    if sides.here.is_absent:
        raise CannotGoOn("somebody has deleted it here: --back starts it there again")
    if sides.there.may_run and sides.here.may_run:
        raise CannotGoOn(f"it is {sides.there} there, too: stop it on one of the two sides")


_STOPPED_THERE: Final = frozenset(
    {ImportStep.STOPPED, ImportStep.CREATING, ImportStep.CREATED, ImportStep.PLACED}
)
"""After these steps nothing goes on before it is seen again that nothing runs there."""
_FORWARD: Final[Mapping[ImportStep | None, Callable[[ImportPlace, BothSides], Act | None]]] = {
    None: _begin,
    ImportStep.RETURNED: _begin,
    ImportStep.STOPPING: _stop_there,
    ImportStep.STOPPED: _create,
    ImportStep.CREATING: _create,
    ImportStep.CREATED: _take_offsets,
    ImportStep.PLACED: _go_live,
    ImportStep.STARTING: _watch,
    ImportStep.MOVED: _end,
}


def return_next(place: ImportPlace, sides: BothSides) -> Act | None:
    """Return what brings a connector nearer to Kafka Connect; None: it has been returned.

    Raises `CannotGoOn`.
    """
    if place.step in {None, ImportStep.RETURNED}:
        return None
    if not place.is_returning:
        return _record(ImportStep.RETURNING)
    if sides.there.is_absent:
        raise CannotGoOn("it is not in Kafka Connect any more, so it cannot start there")
    if sides.here.may_run:
        return _stop_here(place, sides.here)
    is_ready = place.step is ImportStep.READY
    return _start_there(place, sides) if is_ready else _return_offsets(place, sides)


def _stop_here(place: ImportPlace, here: SideStatus) -> Act:
    if place.step is ImportStep.READY:  # somebody has resumed it
        return _record(ImportStep.RETURNING)
    return _WAIT if here.state == STOPPED else Act(Deed.STOP_HERE)


def _return_offsets(place: ImportPlace, sides: BothSides) -> Act:
    there, here = sides.there, sides.here
    if not place.has_run:
        return _record(ImportStep.READY)
    if there.state != STOPPED:  # somebody has started it there
        return Act(Deed.NOTHING, ImportStep.READY, "it ran there already, from its offsets there")
    if not there.is_stopped:
        return _WAIT
    if here.is_absent:  # only a connector that is there can be asked for its offsets
        return Act(Deed.CREATE_HERE)
    return Act(Deed.SET_OFFSETS_THERE, ImportStep.READY)


def _start_there(place: ImportPlace, sides: BothSides) -> Act:
    there = sides.there
    if place.is_own and not sides.here.is_absent:
        return Act(Deed.DELETE_HERE)
    if there.is_stopped and place.was != STOPPED:
        return Act(Deed.START_THERE)
    return _WAIT if there.state == STOPPED and there.tasks else _record(ImportStep.RETURNED)
