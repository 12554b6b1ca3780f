"""The result of a plan, as REST returns it and the command line shows it.

The fields are those of the JSON document. Resources have their usual names (`flights-0`), times are
in milliseconds, a deadline is wall clock.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from ...events.model import GroupState
from ...projections.explain.handovers import Handover


class PlannedSeat(Struct, frozen=True, order=True):
    """A member in a plan: its worker's url, and its member id.

    A worker that is added is `new-1`, `new-2` and so on.
    """

    worker: str
    member_id: str


class PlannedCause(Struct, frozen=True):
    """The cause of an epoch, and its subject."""

    cause: str
    subject: str = ""


class PlannedRound(Struct, frozen=True):
    """One intermediate target: its causes, and the number of resources that move."""

    causes: Sequence[PlannedCause]
    moved: int = 0
    placed: int = 0
    retired: int = 0
    displaced: int = 0
    """Running resources that become unplaceable."""


class ExpectedDowntime(Struct, frozen=True):
    """The downtime of a move, estimated from past ones."""

    median_ms: int
    p99_ms: int
    measured: int
    """The number of past moves that were measured."""
    of: str
    """`connector` if these were moves of the same connector, `group` if it has had none."""


class PlannedMove(Struct, frozen=True):
    """A resource that would move to another worker."""

    id: str
    giver: PlannedSeat
    taker: PlannedSeat
    reason: str
    detail: str = ""
    expected_downtime: ExpectedDowntime | None = None
    """None: no move was measured."""


class PlannedStart(Struct, frozen=True):
    """A resource that does not run now, and would start."""

    id: str
    taker: PlannedSeat


class PlannedStop(Struct, frozen=True):
    """A resource that runs now, and would stop."""

    id: str
    giver: PlannedSeat


class PlannedWait(Struct, frozen=True):
    """A resource that is parked, until the return of its lost worker."""

    id: str
    deadline_ms: int


class PlannedRefusal(Struct, frozen=True):
    """A resource that no worker would run, and why."""

    id: str
    reason: str


class PlannedLoad(Struct, frozen=True):
    """The number of a worker's resources, and their total weight."""

    connectors: int = 0
    tasks: int = 0
    weight: int = 0


class PlannedWorker(Struct, frozen=True):
    """One worker before and after; None if it is not a member then."""

    worker: str
    member_id: str
    before: PlannedLoad | None
    after: PlannedLoad | None
    stays: int
    """The number of resources that it keeps."""


class PlannedSplit(Struct, frozen=True):
    """The number of tasks of a connector before and after."""

    connector: str
    before: int
    after: int
    is_most: bool
    """Whether this is an upper limit: the connector decides, and may use fewer tasks."""
    restarts: int = 0
    """How many of its resources restart on the same worker, with a new config."""


class Plan(Struct, frozen=True, kw_only=True):
    """The result of changes, from one stable state of the group to another.

    It starts from the state in which the group becomes stable without the changes. A resource that
    moves more than once counts as one move.
    """

    group_id: str
    state: GroupState
    group_epoch: int
    settled: bool
    """Whether the group was stable when the plan was computed."""
    assignor: str
    rounds: Sequence[PlannedRound] = ()
    moves: Sequence[PlannedMove] = ()
    starts: Sequence[PlannedStart] = ()
    stops: Sequence[PlannedStop] = ()
    parked: Sequence[PlannedWait] = ()
    unplaceable: Sequence[PlannedRefusal] = ()
    workers: Sequence[PlannedWorker] = ()
    splits: Sequence[PlannedSplit] = ()
    """Only of the connectors in the changes."""
    cold: Sequence[PlannedSeat] = ()
    """Workers that cannot take work yet; the plan ignores when they can."""
    stays: int
    """The number of resources that do not move."""
    handovers: int
    """The total number of moves, intermediate ones included."""
    warnings: Sequence[str] = ()
    """Unused keys of configs, and missing data about past downtimes."""


@dataclass(frozen=True, slots=True)
class ExpectedDowntimes:
    """The downtimes of past moves, for each connector with any, and for the whole group."""

    by_connector: Mapping[str, ExpectedDowntime] = field(
        default_factory=dict[str, ExpectedDowntime]
    )
    overall: ExpectedDowntime | None = None

    @classmethod
    def of(cls, handovers: Iterable[Handover]) -> "ExpectedDowntimes":
        """Collect the downtimes of past handovers between two present workers.

        These are the kind of moves in plans; waits for lost or absent workers are excluded.
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
        """Return the expected downtime of a connector, from its own or else the group's moves."""
        return self.by_connector.get(connector, self.overall)


def _expected(took_ms: Sequence[int], of: str) -> ExpectedDowntime:
    ordered = sorted(took_ms)
    median, p99 = (ordered[-(-len(ordered) * percent // 100) - 1] for percent in (50, 99))
    return ExpectedDowntime(median, p99, len(ordered), of)
