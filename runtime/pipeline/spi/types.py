"""What `source.type` and `sink.type` name: a kind of source, a kind of sink.

A type says which keys it has, looks at what a config leads to, splits the work into tasks, and
makes the source or the sink of one task. Any source type goes with any sink type: the pipeline
between them is the same.

Found through the entry-point groups `fairlead.sources` and `fairlead.sinks`; the entry point's name
is what configs say, and it names a subclass of `SourceType` or `SinkType`.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from ....events.commits import Document, Manifest
from .config import Definition, ParsedConfig
from .connector import Delivery, Promise
from .context import Context, Outside
from .lineage import Dataset
from .offsets import Offsets, Seek, seek_from_the_beginning
from .sink import Sink
from .source import Source


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The columns of a source's rows, as far as they are known beforehand.

    `ddl` spells them as `CREATE TABLE` does; empty if nobody can tell yet. `key` is what to change
    if they are refused.
    """

    ddl: str = ""
    key: str = "source.type"
    is_given: bool = False
    """Whether the user gave them."""
    is_sample: bool = False
    """Whether they are those of a part of the source, and types may turn out otherwise."""
    may_grow: bool = False
    """Whether that may have more columns, too."""


class WrittenColumns(NamedTuple):
    """The names of the columns that a sink will be given; `may_grow` as those of the source."""

    names: Sequence[str]
    may_grow: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at the outside found: errors by the key to change, what is only to be told."""

    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    warnings: tuple[str, ...] = ()
    columns: SourceColumns = SourceColumns()
    """Those of a source; a sink has none to tell."""

    def plus(self, other: "Look") -> "Look":
        """Return what both found; the columns are those of this one."""
        errors = {**self.errors, **other.errors}
        return Look(errors, (*self.warnings, *other.warnings), self.columns)


class _Type(ABC):
    """What both have; an object of it is made on the worker that has the connector."""

    version: ClassVar[str] = "0"

    delivery: ClassVar[Delivery] = Delivery.AT_LEAST_ONCE
    """The best that it can do; a pipeline promises what both of its ends can."""

    prefixes: ClassVar[tuple[str, ...]] = ()
    """Families of keys that are passed on as they are: `source.option.`."""

    def __init__(self, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> None:
        self.context = context
        self.config = config
        """The connector's whole config, references resolved."""
        self.settings = settings
        """The same, parsed."""

    @classmethod
    @abstractmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the definitions of its keys; each begins with `source.` or `sink.`."""

    @classmethod
    def task_keys(cls) -> Sequence[Definition]:
        """Return the definitions of what it tells its own tasks, beyond what the user set."""
        return ()

    @classmethod
    def families(cls) -> Sequence[Definition]:
        """Return definitions of keys of which a part is the user's to choose: `source.option.*`."""
        return ()

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return what is wrong with its keys together, under the key to change."""
        del config
        return {}

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return what it promises under a sound config; see `Connector.delivery_of`."""
        del config
        return Promise(cls.delivery)

    def stop(self) -> None:  # noqa: B027  # most have nothing to let go of
        """Let go of what it holds; called once, when the connector ends."""


class SourceType(_Type):
    """A kind of source."""

    @classmethod
    def look(cls, config: Mapping[str, str], outside: Outside) -> Look:
        """Look at what a sound config leads to, within seconds; changes nothing.

        Values may hold `${...}` unresolved.
        """
        del config, outside
        return Look()

    @classmethod
    def datasets(
        cls, config: Mapping[str, str], partitions: Iterable[Document]
    ) -> Collection[Dataset]:
        """Return what rows of such partitions were read from, as lineage is told of it."""
        del config, partitions
        return ()

    @classmethod
    def keeps_outside(cls, config: Mapping[str, str]) -> bool:
        """Tell whether a source keeps anything outside; see `Connector.keeps_outside`."""
        del config
        return False

    @classmethod
    def check_offset(
        cls, config: Mapping[str, str], partition: Document, offset: Document | None
    ) -> None:
        """Raise `OffsetRefused` if a task could not go on from such an offset.

        What people set (Connect's PATCH of offsets) goes through here, each partition by itself;
        its text names the key at fault and says what would do. A partition must be spelled just
        as `plan` names it in its advances: a number is no text. Offset None takes it away.

        It may look at what the config leads to, changes nothing, and is left behind if it takes
        longer than seconds. Values may hold `${...}` unresolved.
        """
        del config, partition, offset

    @classmethod
    def seek(
        cls, config: Mapping[str, str], outside: Outside, to: Seek, offsets: Offsets
    ) -> Offsets:
        """Return the offsets that change for the next read to begin there; changes nothing.

        `EARLIEST`: all that there is counts as not read. `LATEST`: all as read. A time: what came
        before it as read, the remainder not. `offsets` are all that the connector has, those of
        sources that it had before included. What is returned may name partitions without an
        offset so far; offset None takes one away. The connector has no tasks meanwhile.

        It may take seconds, and is left behind if it takes longer. Values may hold `${...}`
        unresolved: refuse what needs them. Raises `OffsetRefused` for where it cannot go, `Away`
        if what has to be asked is out of reach.
        """
        del config, outside
        return seek_from_the_beginning(to, offsets)

    def split(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Split the work into at most so many tasks; return what each is told beside the config.

        Raises `NotReady`. A split that did not change must come out equal: each change restarts
        tasks. The one in force at the start is `context.split`.
        """
        del max_tasks
        return ({},)

    def needs_reconfiguration(self) -> bool:
        """Tell whether `split` should be asked again; polled, must be cheap."""
        return False

    @classmethod
    @abstractmethod
    def source(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> Source[Any]:
        """Make the source of one task, on whatever worker has it; raises `ConfigInvalid`."""


class SinkType(_Type):
    """A kind of sink."""

    @classmethod
    def look(cls, config: Mapping[str, str], outside: Outside) -> Look:
        """Look at what a sound config leads to; changes nothing that outlives the look."""
        del config, outside
        return Look()

    @classmethod
    def wants_columns(cls, config: Mapping[str, str]) -> bool:
        """Tell whether `fits` has anything to say: Spark must be asked what the columns are."""
        del config
        return False

    @classmethod
    def fits(cls, config: Mapping[str, str], columns: WrittenColumns) -> Look:
        """Tell whether such columns can be written."""
        del config, columns
        return Look()

    @classmethod
    def datasets(cls, config: Mapping[str, str], manifest: Manifest) -> Collection[Dataset]:
        """Return what a batch was written to, as lineage is told of it."""
        del config, manifest
        return ()

    @classmethod
    def rotates_after_s(cls, settings: ParsedConfig) -> float:
        """Return how long after a batch the next one should begin at the earliest, to fill."""
        del settings
        return 0.0

    def told_to_tasks(self) -> Mapping[str, str]:
        """Return what all tasks are told beside the config; raises `NotReady`."""
        return {}

    @classmethod
    @abstractmethod
    def sink(cls, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> Sink[Any]:
        """Make the sink of one task, on whatever worker has it; raises `ConfigInvalid`."""
