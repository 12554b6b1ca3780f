"""Moves one connector after the other, as `steps` decides, and records how far each has come.

What a side refuses, or does not do in time, leads back to Kafka Connect. Where a side does not
answer at all, nothing more is done: the record stays, and the same command goes on from there.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from ...replies.progress import ConnectorOffset
from ..output.printing import Failed, Unreachable
from ..requests.client import RefusedByCluster
from .record import ImportRecord
from .sides import ImportSide, NodeSide, is_node_away, offset_changes
from .steps import (
    PAUSED,
    RUNNING,
    STOPPED,
    Act,
    BothSides,
    Deed,
    HasFailed,
    ImportPlace,
    ImportStep,
    import_next,
    return_next,
)

LOOK_SECONDS: Final = 0.5
AGAIN_SECONDS: Final = 15.0
"""After this time an order that has not been followed is given once more."""
_GO_ON: Final = "; with --back --yes the same command goes on with its return"


class ImportOutcome(Struct, frozen=True):
    """The end of what was done with a connector."""

    name: str
    step: ImportStep | None
    reason: str = ""


class ConnectorMover:
    """Moves the connectors of one import."""

    def __init__(
        self,
        there: ImportSide,
        here: NodeSide,
        record: ImportRecord,
        tell: Callable[[str], None],
        *,
        patience_seconds: float,
        may_idle: bool = False,
    ) -> None:
        """Wait so long for each step; `may_idle` is whether no commit at all is as good as one."""
        self._there, self._here, self._record, self._tell = there, here, record, tell
        self._patience, self._may_idle = patience_seconds, may_idle
        self._ordered: dict[Deed, float] = {}
        """When each order was given last, of the connector at hand."""
        self._deadline = 0.0

    def bring(self, name: str, config: Mapping[str, str]) -> ImportOutcome:
        """Move a connector to the node, or return it; one whose return has begun is returned.

        Raises `CannotGoOn`, `Failed`, `Unreachable`.
        """
        if self._record.place(name).is_returning:
            return self.take_back(name, config)
        try:
            place = self._go(name, config, import_next)
        except Unreachable:
            raise
        except (HasFailed, Failed) as error:
            if is_node_away(error):
                raise Unreachable(f"{error}; the same command goes on from here") from None
            self._reach(name, ImportStep.RETURNING, reason=str(error))
            return self.take_back(name, config)
        return ImportOutcome(name, place.step, place.reason)

    def take_back(self, name: str, config: Mapping[str, str]) -> ImportOutcome:
        """Return a connector to Kafka Connect; raises `CannotGoOn`, `Failed`, `Unreachable`."""
        try:
            place = self._go(name, config, return_next)
        except HasFailed as error:
            raise Failed(f"{error}{_GO_ON}") from None
        return ImportOutcome(name, place.step, place.reason)

    def _go(
        self,
        name: str,
        config: Mapping[str, str],
        decide: Callable[[ImportPlace, BothSides], Act | None],
    ) -> ImportPlace:
        """Do what is decided until nothing is left.

        Raises `CannotGoOn`, `Failed`, `HasFailed`.
        """
        self._ordered.clear()
        self._deadline = time.monotonic() + self._patience
        while True:
            place, sides = self._record.place(name), self._look(name)
            act = decide(place, sides)
            if act is None:
                return place
            if self._is_to_wait(act):
                self._wait(name, sides)
                continue
            self._do(name, config, act.deed)
            if act.then is not None:
                self._enter(name, act.then, sides, act.reason)

    def _is_to_wait(self, act: Act) -> bool:
        """Return whether nothing is to be done, or an order is being followed."""
        if act.then is not None:
            return False
        now = time.monotonic()
        if act.deed is Deed.WAIT or now < self._ordered.get(act.deed, 0) + AGAIN_SECONDS:
            return True
        self._ordered[act.deed] = now
        return False

    def _look(self, name: str) -> BothSides:
        place = self._record.place(name)
        there, here = self._there.status(name), self._here.status(name)
        has_committed = False
        if place.step is ImportStep.STARTING and here.runs_whole:
            with suppress(RefusedByCluster):  # Kafka is away for a moment
                has_committed = bool(offset_changes(self._here.offsets(name), place.offsets))
        return BothSides(there, here, has_committed)

    def _do(self, name: str, config: Mapping[str, str], deed: Deed) -> None:
        was = self._record.place(name).was
        deeds: Mapping[Deed, Callable[[], None]] = {
            Deed.STOP_THERE: lambda: self._there.order(name, "stop"),
            Deed.CREATE_HERE: lambda: self._here.create(name, config),
            Deed.SET_OFFSETS_HERE: lambda: self._place(name, config),
            Deed.START_HERE: lambda: self._here.start(name, was),
            Deed.STOP_HERE: lambda: self._here.order(name, "stop"),
            Deed.SET_OFFSETS_THERE: lambda: self._carry(name, self._here, self._there),
            Deed.DELETE_HERE: lambda: self._here.delete(name),
            Deed.START_THERE: lambda: self._there.start(name, was),
        }
        if deed is not Deed.NOTHING:
            deeds[deed]()

    def _place(self, name: str, config: Mapping[str, str]) -> None:
        """Give a connector its offsets here; raises `HasFailed` if it is one of another config."""
        if Deed.CREATE_HERE not in self._ordered:  # since then either config may have changed
            changes = self._here.compare(name, config).changes
            if keys := ", ".join(each.key for each in changes):
                raise HasFailed(f"its config there is another one than here, in {keys}")
        self._carry(name, self._there, self._here)

    def _carry(self, name: str, giver: ImportSide, taker: ImportSide) -> None:
        count = taker.take_offsets(name, giver.offsets(name))
        side = "here" if taker is self._here else "there"
        self._tell(f"{name}: {count or 'no'} offsets had to be set {side}")

    def _wait(self, name: str, sides: BothSides) -> None:
        """Wait for a moment; raises `HasFailed` after too many of them."""
        if time.monotonic() < self._deadline:
            time.sleep(LOOK_SECONDS)
            return
        step = self._record.place(name).step
        late = f"after {self._patience:g} s it is {sides.there} there and {sides.here} here"
        if step is ImportStep.STARTING and sides.here.runs_whole:
            if self._may_idle:
                self._enter(name, ImportStep.MOVED, sides, "it has committed nothing yet")
                return
            late = (
                f"it has run here for {self._patience:g} s and committed no offset: give it more"
                " --timeout, or --accept-idle if it has nothing to read"
            )
        raise HasFailed(late)

    def _enter(self, name: str, step: ImportStep, sides: BothSides, reason: str = "") -> None:
        """Record a step, and what belongs to it."""
        place = self._record.place(name)
        match step:
            case ImportStep.STOPPING if place.step in _BEFORE:
                self._reach(name, step, was=_state_before(sides))
            case ImportStep.STOPPED:
                offsets = self._there.offsets(name)
                time.sleep(self._there.settle_seconds)
                is_quiet = not offset_changes(self._there.offsets(name), offsets)
                if is_quiet and self._there.status(name).is_stopped:
                    self._reach(name, step, offsets=offsets)
                else:
                    self._wait(name, sides)
            case ImportStep.PLACED:
                self._reach(name, step, offsets=self._here.offsets(name))
            case _:
                before = place.reason if place.is_returning else ""
                self._reach(name, step, reason="; ".join(filter(None, (before, reason))))

    def _reach(
        self,
        name: str,
        step: ImportStep,
        *,
        was: str = "",
        offsets: Sequence[ConnectorOffset] | None = None,
        reason: str = "",
    ) -> None:
        self._record.add(name, step, was=was, offsets=offsets, reason=reason)
        self._deadline = time.monotonic() + self._patience
        self._tell(f"{name}: {step}")


_BEFORE: Final = (None, ImportStep.RETURNED)


def _state_before(sides: BothSides) -> str:
    """Return the state that a connector is to have again; what has failed is to run."""
    state = sides.there.state
    return state if state in {PAUSED, STOPPED} else RUNNING
