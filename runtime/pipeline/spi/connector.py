"""The interface of a connector, and the pipeline that it makes for each of its tasks.

A `Connector` object lives on one worker: it inspects the source, splits the work into task configs,
and asks for reconfiguration when the split is out of date. Each task config makes a `Pipeline`: a
`Source`, a chain of `Transform`s and a `Sink`. A task runs it batch by batch. All methods of one
object are called from one thread.

Each entry point of the group `fairlead.connectors` names a subclass of `Connector`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import inf
from types import MappingProxyType
from typing import Any, ClassVar, Final, NamedTuple

from ....events.commits import CommitId, Document, Lag, Manifest
from ....events.model import Resource, Token
from .config import ConfigDef, Definition, Validation
from .context import Context, ExternalAccess, ProbeResult
from .errors import LettersRefused, Renamed, SinkBroken
from .lineage import NO_LINEAGE, Lineage
from .offsets import Offsets, Seek, seek_from_the_beginning
from .rows import LetterPage, LetterQuery
from .sink import Sink, TaskOwnership
from .source import Limit, Source
from .transform import Transform

_TYPE: Final = "sink.type"
"""The key in configs and in manifest notes that names the type of the sink."""


class Delivery(Enum):
    """The delivery guarantee for each row that the source had when it was read."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"
    BEST_EFFORT = "best-effort"
    """A row may be lost or duplicated."""


class Promise(NamedTuple):
    """The guarantee under one config; `why` explains each key that makes it weaker."""

    delivery: Delivery
    why: tuple[str, ...] = ()

    def and_also(self, other: "Promise") -> "Promise":
        """Return the weaker of two promises, with the reasons of both."""
        from_best = list(Delivery)
        weaker = max(self.delivery, other.delivery, key=from_best.index)
        return Promise(weaker, (*self.why, *other.why))


@dataclass(frozen=True, slots=True)
class Pace:
    """How large a task's batches may be, and how often it polls the source."""

    ceiling: Limit
    """The largest batch."""
    target_s: float = 1.0
    """The duration that a batch should have while the source has a backlog."""
    poll_interval_s: float = 0.5
    """The longest pause between two polls without new input."""
    linger_s: float = 0.5
    """Without a backlog: the longest time from the start of one batch to the start of the next."""
    rows_per_s: float = inf
    """The task's rate limit in rows of the source."""
    bytes_per_s: float = inf
    """The task's rate limit in bytes of the source, if the source knows its bytes."""
    rotate_s: float = 0.0
    """Without a backlog: the shortest time from one batch to the start of the next."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The treatment of bad rows by a task."""

    queue: str = ""
    """The name of the dead letter queue, a folder or a topic, for messages; empty: none."""

    max_ratio: float = 1.0
    """The largest tolerated ratio of bad rows in a batch; above it the batch fails."""

    has_headers: bool = False
    """Whether dead letters have Connect's error headers."""

    log: Callable[[str], None] | None = None
    """Logs a line for a bad row; None: bad rows are not logged."""

    most_searched: int = 0
    """How many bad rows to isolate by bisection when a transform or the sink fails for a batch."""

    hide: Callable[[str], str] = str
    """Takes secrets out of the reasons that these rows have: errors of Spark quote the query."""


NO_DEAD_LETTERS: Final = Tolerance()


class Connector(Renamed, ABC):
    """The base class of connectors; subclasses are listed at `/connector-plugins`."""

    names_by_former = MappingProxyType(
        {"check_outside": "probe", "keeps_outside": "has_external_state"},
    )

    version: ClassVar[str] = "0"
    kind: ClassVar[str] = "source"
    """The direction in Connect's API: `source` or `sink`."""

    delivery: ClassVar[Delivery] = Delivery.AT_LEAST_ONCE
    """The strongest guarantee that it can give."""

    full_name: ClassVar[str] = ""
    """The name in configs, if the class has moved since; empty: its module and class name."""

    @classmethod
    @abstractmethod
    def config(cls) -> ConfigDef:
        """Return the definitions of all keys, including the common ones."""

    @classmethod
    def optional_keys(cls) -> Mapping[str, Sequence[Definition]]:
        """Return keys that only some configs have, by what selects them: `source.type=kafka`."""
        return {}

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Validation:
        """Validate a config without any access to external systems."""
        return cls.config().check(config)

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return the delivery guarantee under a valid config.

        It must depend on the config alone, since the result is cached. Values may have unresolved
        `${...}` references.
        """
        del config
        return Promise(cls.delivery)

    @classmethod
    def has_external_state(cls, config: Mapping[str, str]) -> bool:
        """Tell whether its sources have external state, such as a replication slot.

        A deletion of the connector completes only after `Source.remove_external_state`. Values may
        have unresolved `${...}` references: return True if the answer depends on one.
        """
        del config
        return False

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check a valid config against external systems: missing folders, invalid SQL.

        It may take seconds; a longer call is abandoned. It must change nothing. Values may have
        unresolved `${...}` references.
        """
        del config, outside
        return ProbeResult()

    @classmethod
    def check_offset(
        cls, config: Mapping[str, str], partition: Document, offset: Document | None
    ) -> None:
        """Raise `OffsetRefused` if a task could not resume from an offset that a user sets.

        Offset None removes the partition's offset. It may take seconds; a longer call is abandoned.
        Values may have unresolved `${...}` references.
        """
        del config, partition, offset

    @classmethod
    def seek(
        cls, config: Mapping[str, str], outside: ExternalAccess, to: Seek, offsets: Offsets
    ) -> Offsets:
        """Return the offsets to change so that the next read begins at `to`.

        `offsets` are the connector's current offsets; it has no tasks now. The call changes nothing
        and may take seconds; a longer call is abandoned. Values may have unresolved `${...}`
        references. Raises `OffsetRefused`, `Away`.
        """
        del config, outside
        return seek_from_the_beginning(to, offsets)

    @classmethod
    def lag(
        cls, config: Mapping[str, str], outside: ExternalAccess, offsets: Offsets
    ) -> Lag | None:
        """Return what is left to read after these offsets, None if it is not known.

        It is asked rarely, of a connector that is paused, stopped or has failed. Limits, references
        and errors are those of `seek`.
        """
        del config, outside, offsets
        return None

    @classmethod
    def read_letters(
        cls, config: Mapping[str, str], outside: ExternalAccess, query: LetterQuery
    ) -> LetterPage:
        """Return a page of the dead letters of a connector, the newest first.

        It reads some MB at most: a page may have fewer letters than are asked for, and even none,
        although there are more. Limits and references are those of `seek`. Raises
        `LettersRefused`, `Away`.
        """
        del config, outside, query
        raise LettersRefused("connectors of this class keep no dead letters that can be read here")

    @classmethod
    def retry_config(
        cls, config: Mapping[str, str], task_config: Mapping[str, str], name: str
    ) -> Mapping[str, str]:
        """Return the config of a connector `name` that retries the dead letters of another one.

        It reads each of them once, also those that come later, and writes as the other one does.
        `config` is that of the other one, `task_config` that of a task of it; empty: there is none
        yet. Secret values may be sealed. Raises `LettersRefused`.
        """
        del config, task_config, name
        raise LettersRefused("connectors of this class keep no dead letters that can be retried")

    @abstractmethod
    def start(self, context: Context, config: Mapping[str, str]) -> None:
        """Start with a config; raises `ConfigInvalid`."""

    @abstractmethod
    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Split the work into at most `max_tasks` task configs; raises `NotReady`.

        An unchanged split must return equal configs, since each change restarts tasks.
        """

    def needs_reconfiguration(self) -> bool:
        """Tell whether to call `task_configs` again; it is polled and must be cheap."""
        return False

    def stop(self) -> None:  # most hold no resources
        """Release its resources."""

    @abstractmethod
    def pipeline(self, context: Context, task_config: Mapping[str, str]) -> "Pipeline":
        """Make the pipeline of one task; raises `ConfigInvalid`.

        It is called on a separate object without `start`, on the worker that owns the task.
        """


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The source, transforms and sink that one task runs."""

    source: Source[Any]
    transforms: tuple[Transform, ...]
    sink: Sink[Any]
    pace: Pace
    tolerance: Tolerance = NO_DEAD_LETTERS
    dead_letters: Sink[Any] | None = None
    """Writes to the dead letter queue; without a queue it only publishes batches staged earlier."""
    spark_settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Spark SQL settings of its batches; if there are any, the task has a session of its own."""
    sink_type: str = ""
    """The `sink.type` of the config; a batch is published only by the type that staged it."""
    lineage: Lineage = NO_LINEAGE
    by_arrow: bool = True
    """Whether rows may pass by Spark: nothing transforms them, and `engine.lane` allows it."""

    @property
    def needs_engine(self) -> bool:
        """Whether no batch can do without Spark."""
        is_plain = self.by_arrow and not self.transforms
        return not (is_plain and self.source.holds_tables and self.sink.takes_tables)

    def with_sink_type(self, manifest: Manifest) -> Manifest:
        """Return a manifest that names the type of sink that must publish it."""
        if not (self.sink_type and manifest.files):
            return manifest
        return replace(manifest, note={**manifest.note, _TYPE: self.sink_type})

    def acquire(self, ownership: TaskOwnership) -> None:
        """Acquire the sink and the dead letter queue for a task; see `Sink.acquire`."""
        self.sink.acquire(ownership)
        if letters := self._letters:
            # The log does not say which commit had dead letters last.
            letters.acquire(replace(ownership, published=None))

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Publish a committed batch and its dead letters; see `Sink.publish`.

        Raises `SinkBroken` if another type of sink staged the batch.
        """
        staged_by = manifest.note.get(_TYPE, self.sink_type)
        if staged_by != self.sink_type:
            raise SinkBroken(
                f"batch {commit_id.batch} of token {commit_id.token} is committed and staged in "
                f"{manifest.root} by a sink of {_TYPE}={staged_by}, but the config now has "
                f"{_TYPE}={self.sink_type}. Nothing was lost: set the former sink again until "
                "this batch is published"
            )
        if manifest.dead_letters is not None:
            if self.dead_letters is None:
                raise SinkBroken(f"nothing can publish the dead letters of {commit_id}")
            self.dead_letters.publish(manifest.dead_letters, commit_id, sequence)
        if manifest.files:
            self.sink.publish(manifest, commit_id, sequence)

    def discard(self, commit_id: CommitId) -> None:
        """Remove the staged rows of a batch that will not be committed; see `Sink.discard`."""
        self.sink.discard(commit_id)
        if letters := self._letters:
            letters.discard(commit_id)

    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove all rows that a task staged under this token and older ones; see `Sink.sweep`."""
        self.sink.sweep(resource, token)
        if letters := self._letters:
            letters.sweep(resource, token)

    def close(self, tell: Callable[[Exception], None]) -> None:
        """Close source, sink and dead letter queue; `tell` takes the error of each that fails."""
        for end in (self.source, self.sink, self.dead_letters):
            try:
                if end is not None:
                    end.close()
            except Exception as error:  # noqa: BLE001  # user code may fail in any way
                tell(error)

    @property
    def _letters(self) -> Sink[Any] | None:
        return self.dead_letters if self.tolerance.queue else None
