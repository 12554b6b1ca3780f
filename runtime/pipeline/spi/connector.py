"""A kind of connector, and the pipeline that it makes for each of its tasks.

A `Connector` is a light object that lives on one worker: it looks at the source, splits the
work into task configs and asks for reconfiguration when the split no longer fits. Each task
config makes a `Pipeline`: a `Source`, a chain of `Transform`s and a `Sink`, which a task drives
batch by batch. All methods of one object are called from one thread.

Found through the entry-point group `fairlead.connectors`; an entry point names a subclass of
`Connector`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import inf
from typing import Any, ClassVar, Final, NamedTuple

from ....events.commits import CommitId, Document, Manifest
from ....events.model import Resource, Token
from .config import ConfigDef, Validation
from .context import Context, Findings, Outside
from .errors import SinkBroken
from .lineage import UNTOLD, Lineage
from .offsets import Offsets, Seek, seek_from_the_beginning
from .sink import Sink, Tenure
from .source import Limit, Source
from .transform import Transform

_TYPE: Final = "sink.type"
"""The key of a config, and of a manifest's note, that names the type of its sink."""


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
    rotate_s: float = 0.0
    """How long after a batch without a backlog the next one begins at the earliest."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What becomes of the rows that are left out of batches."""

    queue: str = ""
    """What people call the dead letter queue: a folder, or a topic; empty: there is none."""

    max_ratio: float = 1.0
    """Which part of a batch's rows may be bad."""

    has_headers: bool = False
    """Whether dead letters have the headers that Connect gives them."""

    log: Callable[[str], None] | None = None
    """Takes a line for each bad row; None: they are not logged."""

    most_searched: int = 0
    """How many rows of a batch that a transform or the sink fails for are looked for by halves."""

    hide: Callable[[str], str] = str
    """Takes secrets out of the reasons that these rows have: errors of Spark quote the query."""


NOTHING_KEPT: Final = Tolerance()


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
    def keeps_outside(cls, config: Mapping[str, str]) -> bool:
        """Tell whether its sources keep anything outside that a deletion has to remove.

        The deletion is complete only once `Source.forget` did that. Values may hold `${...}`
        unresolved: what nobody can tell is True.
        """
        del config
        return False

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
        cls, config: Mapping[str, str], outside: Outside, to: Seek, offsets: Offsets
    ) -> Offsets:
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
    spark_settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Those of Spark's that its batches run with, in a session of their own if there are any."""
    sink_type: str = ""
    """What configs call the sink; a batch is published by one of the type that staged it."""
    lineage: Lineage = UNTOLD

    def signed(self, manifest: Manifest) -> Manifest:
        """Return a manifest that says which type of sink is to publish it."""
        if not (self.sink_type and manifest.files):
            return manifest
        return replace(manifest, note={**manifest.note, _TYPE: self.sink_type})

    def acquire(self, tenure: Tenure) -> None:
        """Take the sink, and the dead letter queue, for a task; see `Sink.acquire`."""
        self.sink.acquire(tenure)
        if letters := self._letters:
            # Which commit left dead letters last is not logged.
            letters.acquire(replace(tenure, published=None))

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Put all of a committed batch in place, its dead letters too; see `Sink.publish`.

        Raises `SinkBroken` for one that was staged by another type of sink.
        """
        staged_by = manifest.note.get(_TYPE, self.sink_type)
        if staged_by != self.sink_type:
            raise SinkBroken(
                f"batch {commit_id.batch} of token {commit_id.token} counts, and waits in "
                f"{manifest.root} to be put in place by the sink that staged it, of "
                f"{_TYPE}={staged_by}; the config has {_TYPE}={self.sink_type} by now. Nothing was "
                "lost: set the former sink again until that is done"
            )
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

    def close(self, tell: Callable[[Exception], None]) -> None:
        """Let go of all ends; what one of them raises is told, and keeps no other from that."""
        for end in (self.source, self.sink, self.dead_letters):
            try:
                if end is not None:
                    end.close()
            except Exception as error:  # noqa: BLE001  # user code may fail in any way
                tell(error)

    @property
    def _letters(self) -> Sink[Any] | None:
        return self.dead_letters if self.tolerance.queue else None
