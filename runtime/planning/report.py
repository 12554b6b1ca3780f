"""A plan: what changes would lead to, and what would stay. Values, and their plain data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...events.model import Cause, Grants, GroupState, Resource
from ...projections.documents import Document, Json
from ...projections.explain.diff import Seat
from ...projections.explain.reasons import Reason
from ...projections.moves import Downtime


@dataclass(frozen=True, slots=True)
class PlannedRound:
    """One new target on the way: what it answers, and how much changes hands for it."""

    causes: tuple[Cause, ...]
    moved: int
    placed: int
    retired: int
    displaced: int
    """What runs, and finds no place any more."""


@dataclass(frozen=True, slots=True)
class ExpectedDowntime:
    """The downtime of a move, as past ones took; of the connector's own where it has any."""

    downtime: Downtime
    is_its_own: bool

    def to_json(self) -> Document:
        """Return it in plain data."""
        return {
            "median_ms": self.downtime.median_ms,
            "p99_ms": self.downtime.p99_ms,
            "measured": self.downtime.measured,
            "of": "connector" if self.is_its_own else "group",
        }


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A resource that runs and would run elsewhere; `expected` None: no move was measured."""

    resource: Resource
    giver: Seat
    taker: Seat
    reason: Reason
    expected: ExpectedDowntime | None


@dataclass(frozen=True, slots=True)
class Load:
    """What a worker has, counted, and what all of it weighs."""

    connectors: int = 0
    tasks: int = 0
    weight: int = 0


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """One worker before and after; None where it is not there yet, or no longer."""

    seat: Seat
    before: Load | None
    after: Load | None
    stays: int
    """How many resources it keeps."""


@dataclass(frozen=True, slots=True)
class PlannedSplit:
    """How many tasks a connector has, and would have.

    Where `is_most` the connector itself decides, and may make fewer of them.
    """

    connector: str
    before: int
    after: int
    is_most: bool
    restarts: int = 0
    """How many of its resources stay where they are, and start anew: their config is another."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What would come of changes, once the group has come to rest.

    It begins where the group comes to rest by itself: `settled` is False where that is still
    ahead of it. A resource that changes hands more than once on the way is one move.
    """

    group_id: str
    state: GroupState
    group_epoch: int
    settled: bool
    assignor: str
    rounds: Sequence[PlannedRound]
    moves: Sequence[PlannedMove]
    starts: Sequence[tuple[Resource, Seat]]
    """What would run that runs nowhere now."""
    stops: Sequence[tuple[Resource, Seat]]
    """What would not run any more."""
    parked: Grants
    unplaceable: Mapping[Resource, str]
    workers: Sequence[WorkerPlan]
    splits: Sequence[PlannedSplit]
    """Of the connectors that the changes are about."""
    cold: Sequence[Seat]
    """Workers that can take nothing yet: the plan knows nothing of when they can."""

    @property
    def stays(self) -> int:
        """How many resources stay where they are."""
        return sum(each.stays for each in self.workers)

    @property
    def handovers(self) -> int:
        """How often anything changes hands on the way."""
        return sum(each.moved for each in self.rounds)

    def to_json(self) -> Document:
        """Return the plan in plain data."""
        return {
            "group_id": self.group_id,
            "state": self.state.value,
            "group_epoch": self.group_epoch,
            "settled": self.settled,
            "assignor": self.assignor,
            "rounds": [_round(each) for each in self.rounds],
            "moves": [_move(each) for each in self.moves],
            "starts": [
                {"id": str(resource), "taker": _seat(seat)} for resource, seat in self.starts
            ],
            "stops": [{"id": str(resource), "giver": _seat(seat)} for resource, seat in self.stops],
            "parked": [
                {"id": str(each), "deadline_ms": due} for each, due in sorted(self.parked.items())
            ],
            "unplaceable": [
                {"id": str(each), "reason": reason}
                for each, reason in sorted(self.unplaceable.items())
            ],
            "workers": [_worker(each) for each in self.workers],
            "splits": [_split(each) for each in self.splits],
            "cold": [_seat(each) for each in self.cold],
            "stays": self.stays,
            "handovers": self.handovers,
        }


def _round(each: PlannedRound) -> Document:
    return {
        "causes": _causes(each.causes),
        "moved": each.moved,
        "placed": each.placed,
        "retired": each.retired,
        "displaced": each.displaced,
    }


def _causes(causes: Iterable[Cause]) -> list[Json]:
    return [{"cause": each.why.value, "subject": each.subject} for each in causes]


def _move(each: PlannedMove) -> Document:
    return {
        "id": str(each.resource),
        "giver": _seat(each.giver),
        "taker": _seat(each.taker),
        "reason": each.reason.kind.value,
        "detail": each.reason.detail,
        "expected_downtime": each.expected.to_json() if each.expected else None,
    }


def _worker(each: WorkerPlan) -> Document:
    return {
        **_seat(each.seat),
        "before": _load(each.before),
        "after": _load(each.after),
        "stays": each.stays,
    }


def _load(load: Load | None) -> Document | None:
    if load is None:
        return None
    return {"connectors": load.connectors, "tasks": load.tasks, "weight": load.weight}


def _split(each: PlannedSplit) -> Document:
    return {
        "connector": each.connector,
        "before": each.before,
        "after": each.after,
        "is_most": each.is_most,
        "restarts": each.restarts,
    }


def _seat(seat: Seat) -> Document:
    return dict(seat._asdict())
