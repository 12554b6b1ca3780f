"""Source connectors of Kafka Connect, as sources of pipelines.

The plugin splits its work in a host, as it does for Connect: its task configs become those of the
pipeline, behind a prefix.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .....actors.settings import Value
from ...spi.config import Definition, Importance, ParsedConfig, strip_prefix
from ...spi.connector import Delivery, Promise
from ...spi.context import Context
from ...spi.errors import SampleRefused
from ...spi.keys.kinds import list_key
from ...spi.keys.plugin_source import METADATA, OF_CLUSTER, OF_PLUGIN, OF_TASK, RECORDS
from ...spi.source import Source
from ...spi.types import SourceType
from .connector import SplittingConnector
from .source import PluginSource

_SUPPORT: Final = "exactly.once.support"
_NO_COLUMNS: Final = (
    "to Kafka a record goes as it is, with its key, its partition, its headers and its time: leave"
    " it out"
)
_COLUMNS: Final = ("key", "topic", "partition", "timestamp", "headers")


class PluginSourceType(SourceType):
    """A source connector of Kafka Connect."""

    delivery = Delivery.EXACTLY_ONCE
    prefixes = (OF_PLUGIN, OF_TASK, OF_CLUSTER, RECORDS)

    def __init__(self, context: Context, config: Mapping[str, str], settings: ParsedConfig) -> None:
        """Start nothing yet."""
        super().__init__(context, config, settings)
        self._connector = SplittingConnector(context, strip_prefix(OF_PLUGIN, config))

    @classmethod
    def keys(cls) -> Sequence[Definition]:
        """Return its own keys; those of the plugin are checked by the plugin."""
        return (
            list_key(
                METADATA,
                "The columns for what a record has beside its value: "
                f"{', '.join(f'`{each}`' for each in _COLUMNS)}. Their names begin with an"
                " underscore: `_topic`.",
                importance=Importance.LOW,
                validator=_flaw_in_columns,
            ),
        )

    @classmethod
    def complaints(cls, config: Mapping[str, str]) -> Mapping[str, str]:
        """Refuse columns beside those of values where there are no columns."""
        return {METADATA: _NO_COLUMNS} if RECORDS in config and config.get(METADATA) else {}

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return exactly once if the config requires that of the plugin, which then promises it."""
        if config.get(f"{OF_PLUGIN}{_SUPPORT}", "").lower() == "required":
            return Promise(Delivery.EXACTLY_ONCE)
        why = (
            "only the plugin knows whether it resumes right behind its last offset: with"
            f" {_SUPPORT}=required a config is refused unless it does"
        )
        return Promise(Delivery.AT_LEAST_ONCE, (why,))

    def split(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return the task configs of the plugin; `max_tasks` is in its config.

        Raises `NotReady`, `SourceAway`, `FailedElsewhere`.
        """
        del max_tasks
        configs = self._connector.split()
        return [{f"{OF_TASK}{key}": value for key, value in each.items()} for each in configs]

    def split_sample(self) -> Mapping[str, str]:
        """Refuse: a plugin may change its source as soon as it reads."""
        raise SampleRefused(
            "a connector of Kafka Connect reads by its own rules, and may change its source as soon"
            " as it does: no sample is read"
        )

    def needs_reconfiguration(self) -> bool:
        """Return whether the plugin asks to split again, or there is something to say of it."""
        return self._connector.wants_split

    def stop(self) -> None:
        """Stop the plugin's connector."""
        self._connector.stop()

    @classmethod
    def source(
        cls, context: Context, config: Mapping[str, str], settings: ParsedConfig
    ) -> Source[Any]:
        """Make the source of one task."""
        return PluginSource(
            context,
            strip_prefix(OF_PLUGIN, config),
            strip_prefix(OF_TASK, config),
            settings.items(METADATA),
            strip_prefix(OF_CLUSTER, config) or None,
        )


def _flaw_in_columns(value: Value) -> str | None:
    names = value if isinstance(value, list | tuple) else [value]
    unknown = [str(each) for each in names if str(each).removeprefix("_") not in _COLUMNS]
    return f"there are {', '.join(_COLUMNS)}, not {', '.join(unknown)}" if unknown else None
