"""Sink connectors of Kafka Connect, as sinks of pipelines.

The plugin makes its task configs in a host, as it does for Connect; each task gets one, behind a
prefix. It is asked for as many as the source has shares for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ...spi.config import Definition, ParsedConfig, strip_prefix
from ...spi.connector import Delivery, Promise
from ...spi.context import Context
from ...spi.errors import ContractBroken
from ...spi.keys.common import CONNECTOR_CLASS, QUEUE, TASKS_MAX, TOLERANCE
from ...spi.keys.kinds import choice_key, list_key
from ...spi.keys.letters import LETTER_TOPIC, LETTERS
from ...spi.keys.plugin_sink import (
    IS_RAW,
    KEY_COLUMNS,
    OF_SINK,
    SINK_OF_PLUGIN,
    SINK_OF_TASK,
    TIME_PRECISION,
)
from ...spi.keys.plugin_source import HELD, OF_PLUGIN
from ...spi.sink import Sink
from ...spi.types import SinkType
from ..batches.connector import SplittingConnector
from ..batches.pair import Pair
from ..host_names import SINK_PART
from .errant import ErrantRecords
from .feed import Feed
from .records import (
    MICROSECONDS,
    MILLISECONDS,
    TIME_FORMS,
    PlacedRows,
    RecordForm,
    partition_of_letters,
)
from .sink import PluginSink

_DEBEZIUM = "io.debezium."
_WHY = (
    "Kafka Connect's sink connectors are at least once: rows that were put to the plugin and not"
    " committed are put again after a failure; with an upsert by key that leaves each row once"
)
_HAS_KEY = (
    "a record goes as it is, with its own key: leave it out, or make another key by a transform of"
    " Kafka's (ValueToKey)"
)
_HAS_TIMES = "a record goes as it is, with the types that it has: leave it out"


class PluginSinkType(SinkType):
    """A sink connector of Kafka Connect."""

    delivery = Delivery.AT_LEAST_ONCE
    prefixes = (OF_SINK,)

    def __init__(self, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> None:
        """Start nothing yet."""
        super().__init__(context, config, settings)
        self._pair = _pair_of(config)
        self._connector: SplittingConnector | None = None
        self._tasks = 0
        """How many task configs it makes."""

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return its own keys; those of the plugin are checked by the plugin."""
        return (
            list_key(
                KEY_COLUMNS,
                "The columns of a record's key, for a plugin that is fed with rows: the key is a"
                " struct of them. With it a deleted row (`__op=d`) is a tombstone.",
            ),
            choice_key(
                TIME_PRECISION,
                "How the times of rows are written for a plugin: `milliseconds` is Connect's"
                " Timestamp, and a time that has more is refused; `truncated` is the same, and what"
                " a time has more is lost; `microseconds` is Debezium's MicroTimestamp. Default:"
                " `microseconds` for Debezium's own plugins, `milliseconds` for all others.",
                "",
                *TIME_FORMS,
            ),
        )

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Refuse keys about columns where records go as they are."""
        own = {KEY_COLUMNS: _HAS_KEY, TIME_PRECISION: _HAS_TIMES} if HELD in config else {}
        return {key: why for key, why in own.items() if config.get(key)}

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return at least once, with the reason."""
        del config
        return Promise(Delivery.AT_LEAST_ONCE, (_WHY,))

    def task_configs(self, tasks: int) -> Sequence[Mapping[str, str]]:
        """Return the task configs of the plugin.

        Raises `NotReady`, `SourceAway`, `FailedElsewhere`, and `ContractBroken` if it makes fewer.
        """
        if self._connector is None or tasks != self._tasks:
            self.stop()
            own = {**strip_prefix(SINK_OF_PLUGIN, self.config), TASKS_MAX: str(tasks)}
            part = "" if self._pair is None else SINK_PART
            self._connector, self._tasks = SplittingConnector(self.context, own, part), tasks
        configs = self._connector.split()
        if len(configs) != tasks:
            raise ContractBroken(
                f"the plugin makes {len(configs)} task configs, and the source is read by {tasks} "
                f"tasks: set {TASKS_MAX}={len(configs)}"
            )
        return [{f"{SINK_OF_TASK}{key}": value for key, value in each.items()} for each in configs]

    def needs_reconfiguration(self) -> bool:
        """Return whether the plugin asks to split again, or there is something to say of it."""
        return self._connector is not None and self._connector.wants_split

    def stop(self) -> None:
        """Stop the plugin's connector."""
        if self._connector is not None:
            self._connector.stop()

    @classmethod
    def sink(cls, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> Sink[Any]:
        """Make the sink of one task."""
        is_raw = config.get(IS_RAW) == "true"
        own = strip_prefix(SINK_OF_PLUGIN, config)
        keeps = config.get(TOLERANCE) == "all" and any(each.startswith(QUEUE) for each in config)
        task, pair = strip_prefix(SINK_OF_TASK, config), _pair_of(config)
        feed = Feed(context, own, task, is_raw=is_raw, keeps_errors=keeps, pair=pair)
        topics = [each.strip() for each in own.get("topics", "").split(",") if each.strip()]
        topic = topics[0] if len(topics) == 1 else ""
        keys = settings.items(KEY_COLUMNS)
        partition = context.resource.task
        is_letter = config.get("source.type") in {LETTERS, LETTER_TOPIC}
        if is_letter:
            partition += partition_of_letters(context.resource.connector)
        times = settings.text(TIME_PRECISION) or _times_for(own.get(CONNECTOR_CLASS, ""))
        placed = PlacedRows(topic, partition, RecordForm(is_raw, keys, is_letter, times))
        errant = ErrantRecords(context.hide, is_raw=is_raw, has_keys=bool(keys))
        return PluginSink(feed, placed, errant)


def _times_for(connector_class: str) -> str:
    """Return how times are written unless the config says it."""
    return MICROSECONDS if connector_class.startswith(_DEBEZIUM) else MILLISECONDS


def _pair_of(config: Mapping[str, str]) -> Pair | None:
    """Return the wishes of the sink to a source that is a plugin, too; None: it is none."""
    return Pair.of(config) if strip_prefix(OF_PLUGIN, config) else None
