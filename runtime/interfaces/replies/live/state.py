"""The formats of the page's data: `/state` at first, and then each change of it by `/events`.

Everything in one of them is of one moment. Times are wall clock, in milliseconds.
"""

from typing import Annotated

from msgspec import UNSET, Struct, UnsetType, field

from ..overview import VerdictWord
from ..words import CauseWord, ConnectorTypeWord, GroupStateWord, RunStateWord, one_of
from .events import EventInfo

ShapeWord = Annotated[str, one_of(["bad", "wait", "ok", "off"])]
TROUBLES = ("failed", "waiting", "unassigned", "restarting", "worker", "engine", "disk", "folder")
TroubleWord = Annotated[str, one_of(TROUBLES)]
ACTIONS = (
    "restart",
    "resume",
    "pause",
    "stop",
    "delete",
    "uncordon",
    "accept-column",
    "dead-letters",
    "log",
)
MARKS = ("config", "move", "failed", "paused", "resumed", "stopped", "restarted", "offsets")
MarkWord = Annotated[str, one_of(MARKS)]
ActionWord = Annotated[str, one_of(ACTIONS)]


class PageVerdict(Struct, frozen=True):
    """Whether anything is wrong, in words for a page."""

    status: VerdictWord
    """That of `/status`."""
    title: str
    """The verdict in a few words."""
    text: str
    """The rest of it in a sentence or two."""


class PageTrouble(Struct, frozen=True):
    """Something that is wrong: what happened, since when, what was kept, and what helps."""

    id: str
    """Names it for as long as it lasts."""
    kind: TroubleWord
    """The kind of the trouble."""
    connector: str | None
    """The connector that has it, null if it is of the node."""
    tasks: list[int]
    """The tasks that have it; empty: the connector itself."""
    worker: str | None
    """The worker that has it, null if it is of no worker."""
    title: str
    """The trouble in a few words, without a time."""
    text: str
    """The reason, in a sentence."""
    error_class: str | None
    """Who can mend it: config, input, outside or bug; null: it is no error."""
    since_ms: int | None
    """Since when it lasts: runs of less than a minute between do not end it; null: not known."""
    saved: str
    """What was kept meanwhile."""
    actions: list[ActionWord]
    """What may help, the most helpful one first."""
    trace: bool
    """Whether the status of the connector has a longer trace."""


class RebalanceFigure(Struct, frozen=True):
    """The last epoch that moved a task, in numbers."""

    epoch: int
    """The group epoch."""
    moved: int
    """How many connectors and tasks went to another worker."""
    tasks: int
    """How many connectors and tasks there were."""
    down_ms: int | None
    """For how long nobody ran the one that was down longest; null: not known."""


class FigureHistory(Struct, frozen=True):
    """The last hour of two figures, oldest first; null: not known."""

    rows_per_second: list[float | None]
    """Of all connectors together."""
    behind_ms: list[float | None]
    """Of the connector that is farthest behind."""


class PageFigures(Struct, frozen=True, omit_defaults=True):
    """The figures of the whole group."""

    rows_per_second: float
    """Rows that were committed a second, over the last ten seconds."""
    rows_today: int | None
    """Rows that were committed since midnight (UTC); null: not known."""
    behind_ms: int | None
    """For how long the connector that is farthest behind has had rows to read; null: not known."""
    behind_connector: str | None
    """Which one that is; null: none is behind."""
    last_rebalance: RebalanceFigure | None
    """The last epoch that moved a task; null: none is known."""
    workers: int
    """How many workers are members of the group."""
    workers_wanted: int
    """How many there are to be."""
    memory_bytes: int | None
    """The resident memory of this node's workers and JVMs; null: not known."""
    memory_total_bytes: int | None
    """The memory of the machine; null: not known."""
    engine: str
    """The state of the JVM that the workers share; empty: there is none."""
    history: FigureHistory | None = None
    """The last hour, in `/state` alone."""


class WorkerUsageHistory(Struct, frozen=True):
    """The last hour of a worker, oldest first; null: not known."""

    cpu: list[float | None]
    """Of one core."""
    memory_bytes: list[float | None]
    """Resident bytes."""
    heartbeat_age_ms: list[float | None]
    """How old its last heartbeat was."""


class PageWorker(Struct, frozen=True, omit_defaults=True):
    """A worker: its member, and its process if it is of this node."""

    name: str
    """The short name of the worker."""
    member_id: str
    """Empty until it has joined."""
    host: str
    """The address that it joined from."""
    state: str
    """running, away, or the state of its process."""
    order: Annotated[str, one_of(["", "cordoned", "drained"])]
    """The order of operators for it; empty: there is none."""
    tasks: int
    """How many tasks it has, of those that the caller sees."""
    cpu: float | None
    """How much of one core it uses; null: not known."""
    memory_bytes: int | None
    """Its resident memory; null: not known."""
    heartbeat_age_ms: int | None
    """How old its last heartbeat was when the node last looked; null: not known, or it is away."""
    restarts: int
    """How often its process was restarted."""
    since_ms: int | None
    """Since when its process runs; null: not known."""
    detail: str
    """Why it does not run; empty if it does."""
    history: WorkerUsageHistory | None = None
    """The last hour, in `/state` alone."""


class RowLag(Struct, frozen=True):
    """The rest that a connector has to read."""

    records: int | None
    """Null: its source cannot tell."""
    bytes: int
    """Bytes of the source."""
    ranges: int
    """Files, say."""


class ConnectorRow(Struct, frozen=True, omit_defaults=True):
    """A connector, as one row of a table."""

    kind: ConnectorTypeWord
    """source, sink, or unknown if the class is not installed."""
    reads: str = field(name="from")
    """The type of its source."""
    writes: str = field(name="to")
    """The type of its sink."""
    made_by: str = field(name="class")
    """The short name of its class."""
    state: RunStateWord
    """The state of the connector itself."""
    shape: ShapeWord
    """The worst of it and its tasks: failed, waits, runs, or rests as a user wants it."""
    reason: str
    """The reason of the worst one; empty if all is well."""
    since_ms: int
    """Since when it is in trouble; if it is in none, since when it is in this shape."""
    cells: str
    """One letter a task: k runs, f failed, w waits, p rests, m moves, u is unassigned."""
    on: list[int]
    """For each task the index of its worker in `workers`; -1: none has it."""
    tasks_max: int
    """The most tasks that its config allows."""
    rows_per_second: float
    """Rows that were committed a second, over the last ten seconds."""
    rows: int
    """Rows that were ever read in batches that count."""
    dead_letters: int
    """Rows in its dead letter queue."""
    lag: RowLag | None
    """What it has left to read; null: not known."""
    behind_ms: int | None
    """For how long it has had something to read, at most; null: not known."""
    last_commit_ms: int | None
    """When it last committed; null: never."""
    labels: dict[str, str]
    """The labels of its config."""
    changed_by: str | None
    """Who changed its config last, where that is known."""
    changed_ms: int
    """When its config was changed last."""


class PageEpoch(Struct, frozen=True):
    """One epoch in a line of the page."""

    epoch: int
    """The group epoch."""
    time_ms: int
    """When it rose."""
    cause: CauseWord
    """Why it rose."""
    subject: str
    """What that is about: a worker, a connector, a task."""
    actor: str | None
    """Who asked for it, where that is known."""
    title: str
    """What it moved, and for how long that was down."""
    text: str
    """What had changed, and between which workers it moved, if that is one step."""
    moved: int
    """How many connectors and tasks went to another worker."""
    placed: int
    """How many got a worker for the first time."""
    parked: int
    """How many wait for their worker."""
    took_ms: int | None
    """From its cause until all ran again; null: not yet, or another epoch came first."""
    down_ms: int | None
    """The longest time that nobody ran one of them; null: not known."""
    down_sum_ms: int | None
    """The sum of those times; null: not known."""
    bar: list[int] | None
    """How many percent of the time it waited, was decided, and moved; null: not known."""


class PageState(Struct, frozen=True):
    """Everything that a page shows at first, of one moment."""

    version: str
    """The version of fairlead."""
    group: str
    """The id of the group."""
    cluster_id: str
    """The id of the cluster, as `GET /` has it."""
    position: int
    """The end of the control log that this shows."""
    sequence: int
    """The number of the last message of `/events` that is contained."""
    time_ms: int
    """The node's clock at that moment."""
    began_ms: int
    """When the recording of the last hour began."""
    step_ms: int
    """The time between two values of the last hour."""
    epoch: int
    """The group epoch."""
    assignment_epoch: int
    """The epoch that the target answers."""
    group_state: GroupStateWord
    """The state of the group."""
    assignor: str
    """The assignor that computed the target."""
    verdict: PageVerdict
    """Whether anything is wrong."""
    troubles: list[PageTrouble]
    """All that is wrong, the worst first."""
    figures: PageFigures
    """The figures of the whole group."""
    workers: list[PageWorker]
    """The workers, by name."""
    connectors: dict[str, ConnectorRow]
    """The connectors, by name."""
    epochs: list[PageEpoch]
    """The last epochs, the latest one first; of a limited caller those about what it sees."""
    lines: list[EventInfo]
    """The last events, the latest one first."""


class RowHistory(Struct, frozen=True):
    """The last hour of a connector by the minute, oldest first; null: not known."""

    rows_per_second: list[float | None]
    """The average of each minute."""


class PageHours(Struct, frozen=True):
    """The last hour of each connector of a page."""

    sequence: int
    """The number of the last message of `/events` that is contained."""
    connectors: dict[str, RowHistory]
    """By name."""


class WorkerStep(Struct, frozen=True, array_like=True):
    """The use of a worker; in JSON a list of its values in this order."""

    cpu: float | None
    """Of one core; null: not known."""
    memory_bytes: int | None
    """Its resident memory; null: not known."""
    heartbeat_age_ms: int | None
    """How old its last heartbeat was; null: not known, or it is away."""


class PageStep(Struct, frozen=True):
    """The data of the message of each step: what changes all the time, at one moment."""

    sequence: int
    """The number of the message."""
    time_ms: int
    """The node's clock at that moment."""
    connectors: dict[str, float]
    """Rows that a connector commits a second, of each where that is not 0."""
    figures: PageFigures
    """The figures of the whole group."""
    workers: dict[str, WorkerStep]
    """CPU of one core, memory in bytes, and age of the last heartbeat in ms, of each worker."""


class HistoryMark(Struct, frozen=True):
    """Something that happened to a connector."""

    time_ms: int
    """When it happened."""
    kind: MarkWord
    """What it was."""
    text: str
    """It in a sentence."""


class ConnectorHistory(Struct, frozen=True):
    """The last hour of a connector in steps, as far as it was recorded; null: not known."""

    began_ms: int
    """When the recording began."""
    step_ms: int
    """The time between two values."""
    time_ms: list[int]
    """When each step began, the oldest first."""
    rows_per_second: list[float | None]
    """Rows that were committed a second."""
    bytes_per_second: list[float | None]
    """Bytes of the source that were read for them."""
    lag_records: list[float | None]
    """Records that were left to read."""
    lag_bytes: list[float | None]
    """Bytes that were left to read."""
    behind_ms: list[float | None]
    """For how long there was something to read, at most."""
    commit_age_ms: list[float | None]
    """The age of the last commit."""
    marks: list[HistoryMark]
    """What happened to it in this time."""


class PageChange(Struct, frozen=True, omit_defaults=True):
    """The data of one message: all that has changed since the message before, at one moment."""

    sequence: int
    """The number of the message."""
    position: int
    """The end of the control log that this shows."""
    time_ms: int
    """The node's clock at that moment."""
    epoch: int | UnsetType = UNSET
    """The group epoch."""
    assignment_epoch: int | UnsetType = UNSET
    """The epoch that the target answers."""
    group_state: GroupStateWord | UnsetType = UNSET
    """The state of the group."""
    verdict: PageVerdict | UnsetType = UNSET
    """Whether anything is wrong."""
    troubles: list[PageTrouble] | UnsetType = UNSET
    """All that is wrong, the worst first."""
    figures: PageFigures | UnsetType = UNSET
    """The figures of the whole group."""
    connectors: dict[str, ConnectorRow] | UnsetType = UNSET
    """The whole row of each connector that has changed."""
    gone: list[str] | UnsetType = UNSET
    """The connectors that are no more."""
    workers: list[PageWorker] | UnsetType = UNSET
    """All workers."""
    epochs: list[PageEpoch] | UnsetType = UNSET
    """New or changed ones, the latest one first."""
    lines: list[EventInfo] | UnsetType = UNSET
    """New ones, the latest one first."""
    client_groups: list[str] | UnsetType | None = UNSET
    """The groups of Kafka clients that have changed, if somebody has read them; null: too many."""
