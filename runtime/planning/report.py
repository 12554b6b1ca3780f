"""A plan: what changes would lead to, and what would stay; REST answers it, the CLI reads it.

The fields are those of the JSON document. Resources are named as in logs and stories (`flights-0`),
times are in milliseconds, a deadline is wall clock.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from ...events.model import GroupState
from ...projections.explain.handovers import Handover


class PlannedSeat(Struct, frozen=True, order=True):
    """A member that a plan names: its worker's url, and its member id.

    A worker that is added is `new-1`, `new-2` and so on.
    """

    worker: str
    member_id: str


class PlannedCause(Struct, frozen=True):
    """What a target answers: the cause of an epoch, and its subject."""

    cause: str
    subject: str = ""


class PlannedRound(Struct, frozen=True):
    """One new target on the way: what it answers, and how many resources change hands for it."""

    causes: Sequence[PlannedCause]
    moved: int = 0
    placed: int = 0
    retired: int = 0
    displaced: int = 0
    """Resources that run, and would find no place any more."""


class ExpectedDowntime(Struct, frozen=True):
    """The downtime of a move, as past ones took."""

    median_ms: int
    p99_ms: int
    measured: int
    """How many past moves were measured."""
    of: str
    """`connector` if they were the connector's own, `group` if it has had none."""


class PlannedMove(Struct, frozen=True):
    """A resource that runs and would run elsewhere."""

    id: str
    giver: PlannedSeat
    taker: PlannedSeat
    reason: str
    detail: str = ""
    expected_downtime: ExpectedDowntime | None = None
    """None: no move was measured."""


class PlannedStart(Struct, frozen=True):
    """A resource that runs nowhere now, and would run."""

    id: str
    taker: PlannedSeat


class PlannedStop(Struct, frozen=True):
    """A resource that runs now, and would not any more."""

    id: str
    giver: PlannedSeat


class PlannedWait(Struct, frozen=True):
    """A resource that waits, parked, for the worker that lost it."""

    id: str
    deadline_ms: int


class PlannedRefusal(Struct, frozen=True):
    """A resource that no worker would run, and why."""

    id: str
    reason: str


class PlannedLoad(Struct, frozen=True):
    """What a worker has, counted, and what all of it weighs."""

    connectors: int = 0
    tasks: int = 0
    weight: int = 0


class PlannedWorker(Struct, frozen=True):
    """One worker before and after; None where it is not there yet, or no longer."""

    worker: str
    member_id: str
    before: PlannedLoad | None
    after: PlannedLoad | None
    stays: int
    """How many resources it keeps."""


class PlannedSplit(Struct, frozen=True):
    """How many tasks a connector has, and would have."""

    connector: str
    before: int
    after: int
    is_most: bool
    """Whether the connector itself decides, and may make fewer tasks."""
    restarts: int = 0
    """How many of its resources stay where they are, and start anew: their config is another."""


class Plan(Struct, frozen=True, kw_only=True):
    """What would come of changes, once the group has come to rest.

    It begins where the group comes to rest by itself. A resource that changes hands more than once
    on the way is one move.
    """

    group_id: str
    state: GroupState
    group_epoch: int
    settled: bool
    """Whether the group was at rest when the plan was made."""
    assignor: str
    rounds: Sequence[PlannedRound] = ()
    moves: Sequence[PlannedMove] = ()
    starts: Sequence[PlannedStart] = ()
    stops: Sequence[PlannedStop] = ()
    parked: Sequence[PlannedWait] = ()
    unplaceable: Sequence[PlannedRefusal] = ()
    workers: Sequence[PlannedWorker] = ()
    splits: Sequence[PlannedSplit] = ()
    """Of the connectors that the changes are about."""
    cold: Sequence[PlannedSeat] = ()
    """Workers that can take nothing yet: the plan knows nothing of when they can."""
    stays: int
    """How many resources stay where they are."""
    handovers: int
    """How often anything changes hands on the way."""
    warnings: Sequence[str] = ()
    """Keys of configs that nobody reads, and what is not known yet of past downtimes."""


@dataclass(frozen=True, slots=True)
class ExpectedDowntimes:
    """The downtimes of past moves: of each connector that has had any, and of all together."""

    by_connector: Mapping[str, ExpectedDowntime] = field(
        default_factory=dict[str, ExpectedDowntime]
    )
    overall: ExpectedDowntime | None = None

    @classmethod
    def of(cls, handovers: Iterable[Handover]) -> "ExpectedDowntimes":
        """Return what past hand-overs took whose givers were asked and were there to give.

        Such are the moves that plans are made of; what waited for a worker that was lost, or away,
        says nothing of them.
        """
        took_ms: defaultdict[str, list[int]] = defaultdict(list)
        for each in handovers:
            if each.is_live and each.downtime_ms is not None:
                took_ms[each.resource.connector].append(each.downtime_ms)
        if not took_ms:
            return cls()
        overall = [ms for each in took_ms.values() for ms in each]
        return cls(
            {name: _expected(each, "connector") for name, each in took_ms.items()},
            _expected(overall, "group"),
        )

    def of_connector(self, connector: str) -> ExpectedDowntime | None:
        """Return what is expected of a connector: by its own past, or else by that of the group."""
        return self.by_connector.get(connector, self.overall)


def _expected(took_ms: Sequence[int], of: str) -> ExpectedDowntime:
    ordered = sorted(took_ms)
    median, p99 = (ordered[-(-len(ordered) * percent // 100) - 1] for percent in (50, 99))
    return ExpectedDowntime(median, p99, len(ordered), of)
