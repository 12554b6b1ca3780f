"""What a connector is made of: the author of one implements these classes.

A `Connector` is a light object that lives on one worker: it looks at the source, splits the
work into task configs and asks for reconfiguration when the split no longer fits. Each task
config makes a `Pipeline`: a `Source`, a chain of `Transform`s and a `Sink`, which a task drives
batch by batch. All methods of one object are called from one thread.

Found through the entry-point group `fairlead.connectors`; an entry point names a subclass of
`Connector`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from ....events.commits import Advance, CommitId, Document, Lag, Manifest
from ....events.model import Resource, Token
from .arrow import ArrowSchema, ArrowTable
from .config import ConfigDef, ParsedConfig, Validation
from .context import Context, Findings, Outside
from .errors import BadInput, SinkBroken
from .offsets import PartitionOffset, Seek, seek_from_the_beginning
from .rejects import NOTHING_KEPT, Rejects, Tolerance

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


R = TypeVar("R")
"""One range of a source: what `Source.plan` hands to `Source.read`; opaque to the task."""

Rows = TypeVar("Rows", "DataFrame", ArrowTable)
"""What a sink takes; what a source gives is made into it."""


class Delivery(Enum):
    """What is promised about each row that a source held when it was read."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    BEST_EFFORT = "best-effort"
    """Nothing: it may be left out, or come twice."""


class Promise(NamedTuple):
    """What is promised under one config; `why` says of each key that makes it less what it does."""

    delivery: Delivery
    why: tuple[str, ...] = ()

    def and_also(self, other: "Promise") -> "Promise":
        """Return what is left of two promises that both have to hold: the weaker."""
        from_best = list(Delivery)
        weaker = max(self.delivery, other.delivery, key=from_best.index)
        return Promise(weaker, (*self.why, *other.why))


class Limit(NamedTuple):
    """How much one batch may hold; a range that is larger by itself makes a batch alone."""

    rows: int
    bytes: int
    ranges: int


@dataclass(frozen=True, slots=True)
class BatchPlan(Generic[R]):
    """One batch to come: what to read, how far that moves the offsets, and how large it is.

    `backlog` tells whether there is more where this came from, `lag` how much, None if the
    source cannot tell. `rows` may be -1, not known; the pipeline then counts them as they are
    read. `remark` is what is strange about the source although the task goes on: its status
    tells it for as long as plans do, those without ranges included.
    """

    ranges: tuple[R, ...] = ()
    advances: tuple[Advance, ...] = ()
    bytes: int = 0
    rows: int = -1
    backlog: bool = False
    lag: Lag | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Tenure:
    """A task that begins to work under a token, and what its log knows of its commits."""

    task: Resource
    token: Token
    last: CommitId | None
    """Its last commit, None if it never made one."""

    published: CommitId | None = None
    """The last commit that left something in the sink, if that is known to be published."""

    log: str = ""
    """What tells the log from its copies: its place."""


class Source(ABC, Generic[R]):
    """Where the rows of a task come from."""

    @abstractmethod
    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> BatchPlan[R]:
        """Choose the next batch: what lies behind the offsets, keyed by partition identity.

        Runs in the worker, without Spark: an empty plan costs no job. An advance starts at the
        offset that was given, and no two advances of a plan name the same partition.
        """

    @abstractmethod
    def read(self, spark: "SparkSession", ranges: Sequence[R]) -> "DataFrame | ArrowTable":
        """Return the rows of some ranges, or describe them; raises `BadInput`.

        Called once per batch, inside the job. A frame must not hold more than the ranges.
        """

    def verify(self, ranges: Sequence[R]) -> None:
        """Raise `BadInput` if ranges changed while they were read; called before the commit."""

    def blame(self, error: Exception) -> BadInput | None:
        """Return what an error of the job says about the input, or None if it says nothing."""
        del error
        return None

    def rejects(self) -> Sequence[Rejects]:
        """Return the rows of the ranges read last that are left out, since they do not fit.

        Asked once the batch's job is over.
        """
        return ()

    def acknowledge(self, advances: Sequence[Advance]) -> None:
        """Learn that a batch counts; a source that keeps receipts of its own gives them here."""

    def close(self) -> None:
        """Let go of what it holds; called once, when the task is over."""


class Fetched(NamedTuple):
    """What a source fetched, and how far that moves its offsets; `backlog`: there is more."""

    table: ArrowTable
    advances: tuple[Advance, ...]
    backlog: bool = False


class Fetching(Source[ArrowTable]):
    """A source that knows where a batch ends only once it has it: a query, a page, a generator.

    What it fetched is held by the plan: it must fit into memory, which is what the limit is for.
    """

    @abstractmethod
    def fetch(self, offsets: Mapping[str, Document], limit: Limit) -> Fetched | None:
        """Fetch what lies behind the offsets, about as much as the limit says; None: nothing."""

    def plan(self, offsets: Mapping[str, Document], limit: Limit) -> "BatchPlan[ArrowTable]":
        """Fetch the next batch."""
        fetched = self.fetch(offsets, limit)
        if fetched is None:
            return BatchPlan()
        table, advances, backlog = fetched
        return BatchPlan((table,), advances, table.nbytes, table.num_rows, backlog)

    def read(self, spark: "SparkSession", ranges: Sequence[ArrowTable]) -> ArrowTable:
        """Return what was fetched."""
        del spark
        (table,) = ranges
        return table


class Transform(ABC):
    """A step between source and sink; must be a function of the batch alone.

    Configs name one by `transforms.<name>.type`: built in, or by the name of an entry point of the
    group `fairlead.transforms`, which names a subclass. It is made of its keys.
    """

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions of its keys, by their bare names: `field`.

        A family `<name>` in a key, `lookup.<name>.path`, is the user's to name.
        """
        return ConfigDef(())

    @classmethod
    def flaws(cls, settings: ParsedConfig) -> Mapping[str, str]:
        """Return what is wrong with keys that are sound each by itself, by the key to change."""
        del settings
        return {}

    def __init__(self, settings: ParsedConfig, context: Context) -> None:  # noqa: B027
        """Take its keys as they were parsed, by their bare names; raises `ConfigInvalid`."""

    @abstractmethod
    def apply(self, frame: "DataFrame") -> "DataFrame":
        """Describe the transformed rows."""

    def conclude(self) -> None:  # noqa: B027  # most have nothing to say
        """Learn that the job of the last frame is over; raises `BadInput` if it must not count."""

    def rejects(self) -> Sequence[Rejects]:
        """Return the rows of the last frame that are left out, since they are bad.

        Asked once the batch's job is over.
        """
        return ()


class Sink(ABC, Generic[Rows]):
    """Where the rows go, in two steps: staged aside, then put in place once they count."""

    takes_arrow: ClassVar[bool] = False
    """Whether `stage` wants an Arrow table, which the worker holds, instead of a frame."""

    @property
    def counts_rows(self) -> bool:
        """Whether `stage` fills in `Manifest.rows`; else the pipeline counts and fills it in."""
        return False

    def acquire(self, tenure: Tenure) -> None:  # not every sink can tell
        """Take the sink for a task, before anything is staged or published under its token.

        Raises `SinkAway`, or `SinkBroken` if the sink is not this log's to write to.
        """

    def prepare(self, schema: ArrowSchema) -> None:  # most need not
        """Create or change the target, so that rows of this schema fit into it.

        Called after `acquire` and before a batch is staged, once for each schema that differs
        from the one before. May be repeated, also by another task at once; batches of an earlier
        schema may still be to publish. Raises `SchemaRefused` if the target must stay as it is, or
        `SinkAway`.
        """

    @abstractmethod
    def stage(self, rows: Rows, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch, in one Spark job, where no reader looks; replaces an earlier attempt.

        When it returns, what it wrote survives a crash of the machine. What `publish` has to know
        goes into the manifest; one whose `files` is 0 is not published. Raises `SinkAway`.
        """

    @abstractmethod
    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Put a committed batch in place, durably, all of it, or raise.

        Idempotent, finishes what another began and died over, and any number may do it at once.
        The manifest may be older than this sink's config: it alone says where things are.

        `sequence` is the batch's place in the group's offset log, from 0: each attempt at a batch
        is given the same one, whoever makes it, and each later commit of the task, under any token,
        a higher one, with gaps. A log that was restored from a copy, or begun anew, may give one
        again.
        """

    @abstractmethod
    def discard(self, commit_id: CommitId) -> None:
        """Remove what was staged for a batch that will not count; nothing there is fine."""

    @abstractmethod
    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove what a task staged under this token and older ones.

        Called between batches, when all that was committed is published, so that no commit
        names what goes; again and again, since a former owner that hung may stage late.
        """

    def close(self) -> None:
        """Let go of what it holds; called once, when the task is over."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How a task may size its batches and how often it looks for new input."""

    ceiling: Limit
    target_s: float = 1.0
    """How long a batch should take while there is more to read."""
    poll_interval_s: float = 0.5
    """The longest pause between two looks that find nothing."""
    linger_s: float = 0.5
    """How long after a batch began the next one may at the latest, if there is no backlog."""
    rows_per_s: float = inf
    """How many rows of the source the task may take in a second."""
    bytes_per_s: float = inf
    """How many bytes of it, where the source knows."""


class Connector(ABC):
    """A kind of connector; the class is listed at `/connector-plugins`."""

    version: ClassVar[str] = "0"
    kind: ClassVar[str] = "source"
    """Connect's word for the direction: `source` or `sink`."""

    delivery: ClassVar[Delivery] = Delivery.AT_LEAST_ONCE
    """The best that it can do."""

    full_name: ClassVar[str] = ""
    """What configs call it if it has moved to another module since; empty: module and class."""

    @classmethod
    @abstractmethod
    def config(cls) -> ConfigDef:
        """Return the definitions of all keys, the common ones included."""

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Validation:
        """Find everything that is wrong with a config, without touching the outside world."""
        return cls.config().check(config)

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return what it promises under a config that `validate` finds sound.

        A function of the config alone: the answer is kept. Values may hold `${...}` unresolved.
        """
        del config
        return Promise(cls.delivery)

    @classmethod
    def check_outside(cls, config: Mapping[str, str], outside: Outside) -> Findings:
        """Find what keeps a config, which `validate` finds sound, from working here and now.

        Folders that are not there, queries that Spark refuses. It may take seconds, and is left
        behind if it takes longer; it must change nothing. Values may hold `${...}` unresolved.
        """
        del config, outside
        return Findings()

    @classmethod
    def check_offset(
        cls, config: Mapping[str, str], partition: Document, offset: Document | None
    ) -> None:
        """Raise `OffsetRefused` if a task could not go on from such an offset.

        Offset None takes the partition's offset away. It may take seconds, and is left behind if it
        takes longer. Values may hold `${...}` unresolved.
        """
        del config, partition, offset

    @classmethod
    def seek(
        cls,
        config: Mapping[str, str],
        outside: Outside,
        to: Seek,
        offsets: Sequence[PartitionOffset],
    ) -> Sequence[PartitionOffset]:
        """Return the offsets that change, as they have to be for the next read to begin there.

        `offsets` are all that the connector has. Asked of a connector without tasks; it may take
        seconds, is left behind if it takes longer, and changes nothing. Values may hold `${...}`
        unresolved. Raises `OffsetRefused`, `Away`.
        """
        del config, outside
        return seek_from_the_beginning(to, offsets)

    @abstractmethod
    def start(self, context: Context, config: Mapping[str, str]) -> None:
        """Take up a config; raises `ConfigInvalid`."""

    @abstractmethod
    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Split the work into at most so many task configs; raises `NotReady`.

        A split that did not change must come out equal: each change restarts tasks.
        """

    def needs_reconfiguration(self) -> bool:
        """Tell whether `task_configs` should be asked again; polled, must be cheap."""
        return False

    def stop(self) -> None:  # noqa: B027  # most have nothing to let go of
        """Let go of what it holds."""

    @abstractmethod
    def pipeline(self, context: Context, task_config: Mapping[str, str]) -> "Pipeline":
        """Make the pipeline of one task; raises `ConfigInvalid`.

        Called on an object of its own, which was not started, on whatever worker has the task.
        """


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What one task drives: where rows come from, what is done to them, where they go."""

    source: Source[Any]
    transforms: tuple[Transform, ...]
    sink: Sink[Any]
    pace: Pace
    tolerance: Tolerance = NOTHING_KEPT
    """What becomes of bad rows."""
    dead_letters: Sink[Any] | None = None
    """Writes the dead letter queue, or finishes what an earlier config has it written."""

    def acquire(self, tenure: Tenure) -> None:
        """Take the sink, and the dead letter queue, for a task; see `Sink.acquire`."""
        self.sink.acquire(tenure)
        if letters := self._letters:
            # Which commit left dead letters last is not logged.
            letters.acquire(replace(tenure, published=None))

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Put all of a committed batch in place, its dead letters too; see `Sink.publish`."""
        if manifest.dead_letters is not None:
            if self.dead_letters is None:
                raise SinkBroken(f"nothing can publish the dead letters of {commit_id}")
            self.dead_letters.publish(manifest.dead_letters, commit_id, sequence)
        if manifest.files:
            self.sink.publish(manifest, commit_id, sequence)

    def discard(self, commit_id: CommitId) -> None:
        """Remove what was staged for a batch that will not count; see `Sink.discard`."""
        self.sink.discard(commit_id)
        if letters := self._letters:
            letters.discard(commit_id)

    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove what a task staged under this token and older ones; see `Sink.sweep`."""
        self.sink.sweep(resource, token)
        if letters := self._letters:
            letters.sweep(resource, token)

    @property
    def _letters(self) -> Sink[Any] | None:
        return self.dead_letters if self.tolerance.folder else None
