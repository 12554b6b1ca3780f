"""The interfaces of source types and sink types, which `source.type` and `sink.type` name.

A type defines its config keys, checks a config against external systems, splits the work into
tasks, and makes the source or the sink of one task. Any source type works with any sink type.

Each entry point of the groups `fairlead.sources` and `fairlead.sinks` names a subclass of
`SourceType` or `SinkType`; configs use the entry point's name.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from ....events.commits import Document, Lag, Manifest
from .config import Definition, ParsedConfig
from .connector import Delivery, Promise
from .context import Context, ExternalAccess, ProbeResult
from .errors import LettersRefused, Renamed, SampleRefused
from .lineage import Dataset
from .offsets import Offsets, Seek, SeekEnd, seek_from_the_beginning
from .sink import Sink
from .source import Source


class WrittenColumns(NamedTuple):
    """The names of the columns that a sink will get; `may_grow`: there may be more."""

    names: Sequence[str]
    may_grow: bool = False


class _Type(Renamed, ABC):
    """The common part of both; an object of it lives on the worker that runs the connector."""

    names_by_former = MappingProxyType(
        {"look": "probe", "keeps_outside": "has_external_state"},
    )

    version: ClassVar[str] = "0"

    delivery: ClassVar[Delivery] = Delivery.AT_LEAST_ONCE
    """The strongest guarantee that it can give; a pipeline gives the weaker of its two types'."""

    prefixes: ClassVar[tuple[str, ...]] = ()
    """Prefixes of keys that are passed on unchecked: `source.option.`."""

    def __init__(self, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> None:
        self.context = context
        self.config = config
        """The connector's whole config, with references resolved."""
        self.settings = settings
        """The parsed config."""

    @classmethod
    @abstractmethod
    def keys(cls) -> Sequence[Definition]:
        """Return the definitions of its keys; each name begins with `source.` or `sink.`."""

    @classmethod
    def task_keys(cls) -> Sequence[Definition]:
        """Return the definitions of the keys that it adds to task configs."""
        return ()

    @classmethod
    def families(cls) -> Sequence[Definition]:
        """Return definitions of keys with a part that users choose: `source.option.*`."""
        return ()

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return errors of valid keys that do not fit together, by the key to change."""
        del config
        return {}

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return the delivery guarantee under a valid config; see `Connector.delivery_of`."""
        del config
        return Promise(cls.delivery)

    def stop(self) -> None:  # most hold no resources
        """Release its resources; called once, when the connector stops."""


class SourceType(_Type):
    """The base class of source types."""

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check a valid config against the external system, within seconds; changes nothing.

        Values may have unresolved `${...}` references.
        """
        del config, outside
        return ProbeResult()

    @classmethod
    def datasets(
        cls, config: Mapping[str, str], partitions: Iterable[Document]
    ) -> Collection[Dataset]:
        """Return the lineage datasets of source partitions."""
        del config, partitions
        return ()

    @classmethod
    def has_external_state(cls, config: Mapping[str, str]) -> bool:
        """Tell whether a source has external state; see `Connector.has_external_state`."""
        del config
        return False

    @classmethod
    def check_offset(
        cls, config: Mapping[str, str], partition: Document, offset: Document | None
    ) -> None:
        """Raise `OffsetRefused` if a task could not resume from an offset that a user sets.

        It is called for each partition of Connect's PATCH of offsets; the error names the key and
        the valid values. A partition must be equal to that in the advances of `plan`, with the same
        types. Offset None removes the partition's offset.

        It may read the external system but changes nothing. It may take seconds; a longer call is
        abandoned. Values may have unresolved `${...}` references.
        """
        del config, partition, offset

    @classmethod
    def seek(
        cls, config: Mapping[str, str], outside: ExternalAccess, to: Seek, offsets: Offsets
    ) -> Offsets:
        """Return the offsets to change so that the next read begins at `to`; changes nothing.

        `EARLIEST`: all existing data is read again. `LATEST`: all existing data is skipped. A time:
        earlier data is skipped. `offsets` are all offsets of the connector, including those of its
        former sources; it has no tasks now. The result may have new partitions; offset None removes
        one.

        It may take seconds; a longer call is abandoned. Values may have unresolved `${...}`
        references. Raises `OffsetRefused` for a position that it cannot find, `Away` if the
        external system is unreachable.
        """
        del config, outside
        return seek_from_the_beginning(to, offsets)

    @classmethod
    def lag(
        cls, config: Mapping[str, str], outside: ExternalAccess, offsets: Offsets
    ) -> Lag | None:
        """Return what is left to read after offsets, while no task tells; None: it is not known.

        It is asked once a minute of each connector that does not run. By default `seek` finds the
        end, and `lag_of` what lies between. Raises as `seek`.
        """
        if cls.lag_of is SourceType.lag_of:
            return None
        return cls.lag_of(offsets, cls.seek(config, outside, SeekEnd.LATEST, offsets))

    @staticmethod
    def lag_of(offsets: Offsets, latest: Offsets) -> Lag | None:
        """Return the lag between offsets and the latest ones, which `seek` returned.

        None: the offsets do not tell.
        """
        del offsets, latest
        return None

    @classmethod
    def letter_keys(
        cls, config: Mapping[str, str], task_config: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Return the `source.*` keys with which `dead-letters` reads the rows of its letters.

        These are the format, the schema and a dialect. `task_config` is that of a task; empty:
        there is none yet. Values may have unresolved `${...}` references. Raises `LettersRefused`.
        """
        del task_config
        raise LettersRefused(
            f"rows of source.type={config.get('source.type')} have no columns and no text that a "
            "source of letters could read: the letters do not tell the types of their values"
        )

    def split(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Split the work into at most `max_tasks` tasks; raises `NotReady`.

        Returns the keys to add to each task config. An unchanged split must return equal keys,
        since each change restarts tasks. `context.split` is the split in force at the start.
        """
        del max_tasks
        return ({},)

    def split_sample(self) -> Mapping[str, str]:
        """Return the keys of a task that reads the first rows, without any change outside.

        The source of that task plans and reads, and is closed; nothing is acknowledged. Raises as
        `split`, and `SampleRefused` if the rows cannot be read without a change.
        """
        raise SampleRefused(
            f"{type(self).__name__} does not tell how its rows are read without a change outside"
            " (`SourceType.split_sample`): no sample is read"
        )

    def needs_reconfiguration(self) -> bool:
        """Tell whether to call `split` again; it is polled and must be cheap."""
        return False

    @classmethod
    @abstractmethod
    def source(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> Source[Any]:
        """Make the source of one task, on the task's worker; raises `ConfigInvalid`."""


class SinkType(_Type):
    """The base class of sink types."""

    ignores_case: ClassVar[bool] = False
    """Whether it cannot write columns, at any depth, whose names differ in case only."""

    @classmethod
    def probe(cls, config: Mapping[str, str], outside: ExternalAccess) -> ProbeResult:
        """Check a valid config against the external system; it must undo all its changes."""
        del config, outside
        return ProbeResult()

    @classmethod
    def wants_columns(cls, config: Mapping[str, str]) -> bool:
        """Tell whether to call `check_columns`; Spark then has to determine the columns."""
        del config
        return False

    @classmethod
    def check_columns(cls, config: Mapping[str, str], columns: WrittenColumns) -> ProbeResult:
        """Check whether the sink can write these columns."""
        del config, columns
        return ProbeResult()

    @classmethod
    def datasets(cls, config: Mapping[str, str], manifest: Manifest) -> Collection[Dataset]:
        """Return the lineage datasets that a batch was written to."""
        del config, manifest
        return ()

    @classmethod
    def rotates_after_s(cls, settings: ParsedConfig) -> float:
        """Return the shortest time between batches without a backlog, so that files fill up."""
        del settings
        return 0.0

    def shared_task_config(self) -> Mapping[str, str]:
        """Return the keys to add to all task configs; raises `NotReady`."""
        return {}

    def task_configs(self, tasks: int) -> Sequence[Mapping[str, str]]:
        """Return the keys to add to each task config; raises `NotReady`.

        An unchanged sink must return equal keys, since each change restarts tasks.
        """
        return [self.shared_task_config()] * tasks

    def needs_reconfiguration(self) -> bool:
        """Tell whether to call `task_configs` again; it is polled and must be cheap."""
        return False

    @classmethod
    @abstractmethod
    def sink(cls, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> Sink[Any]:
        """Make the sink of one task, on the task's worker; raises `ConfigInvalid`."""
