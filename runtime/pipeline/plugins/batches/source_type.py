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
from ...spi.keys.plugin_sink import SINK_OF_PLUGIN
from ...spi.keys.plugin_source import (
    HELD,
    METADATA,
    OF_CLUSTER,
    OF_PLUGIN,
    OF_TASK,
    RECORDS,
    SUPPORT,
)
from ...spi.source import Source
from ...spi.types import SourceType
from .connector import SplittingConnector
from .pair import Pair
from .source import PluginSource

_LEVEL: Final = "exactly.once.support"
_SUPPORTED: Final = "supported"
_WHY_NOT: Final = {
    "": "the plugin is asked whether it resumes right behind its last offset when it starts, and"
    " has not said so yet",
    "unsupported": "the plugin says that with this config it does not resume right behind its last"
    " offset",
    "undefined": "the plugin does not say whether it resumes right behind its last offset, as those"
    " that are older than this question",
}
_FAILED: Final = (
    "the plugin did not say whether it resumes right behind its last offset, it {answer}: its log"
    " says where"
)
_NO_COLUMNS: Final = "a record goes as it is, with its key, its headers and its time: leave it out"
_COLUMNS: Final = ("key", "topic", "partition", "timestamp", "headers")


class PluginSourceType(SourceType):
    """A source connector of Kafka Connect."""

    delivery = Delivery.EXACTLY_ONCE
    prefixes = (OF_PLUGIN, OF_TASK, OF_CLUSTER, RECORDS, HELD, SUPPORT)

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
        has_none = {RECORDS, HELD} & config.keys()
        return {METADATA: _NO_COLUMNS} if has_none and config.get(METADATA) else {}

    @classmethod
    def delivery_of(cls, config: Mapping[str, str]) -> Promise:
        """Return exactly once if the plugin says that it resumes right behind its last offset.

        One that has not said so yet does if the config requires it, and was not refused for that.
        """
        required = config.get(f"{OF_PLUGIN}{_LEVEL}", "").lower() == "required"
        answer = config.get(SUPPORT) or (_SUPPORTED if required else "")
        if answer == _SUPPORTED:
            return Promise(Delivery.EXACTLY_ONCE)
        why = _WHY_NOT.get(answer) or _FAILED.format(answer=answer)
        return Promise(Delivery.AT_LEAST_ONCE, (why,))

    def split(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Return the task configs of the plugin; `max_tasks` is in its config.

        Each has what the plugin says of its offsets, so that it is known wherever the log is.
        Raises `NotReady`, `SourceAway`, `FailedElsewhere`.
        """
        del max_tasks
        self._connector.ask_support()
        configs, support = self._connector.split(), self._connector.support or ""
        return [
            {SUPPORT: support, **{f"{OF_TASK}{key}": value for key, value in each.items()}}
            for each in configs
        ]

    def split_sample(self) -> Mapping[str, str]:
        """Refuse: a plugin may change its source as soon as it reads."""
        raise SampleRefused(
            "a connector of Kafka Connect reads by its own rules, and may change its source as soon"
            " as it does"
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
            Pair.of(config) if strip_prefix(SINK_OF_PLUGIN, config) else None,
        )


def _flaw_in_columns(value: Value) -> str | None:
    names = value if isinstance(value, list | tuple) else [value]
    unknown = [str(each) for each in names if str(each).removeprefix("_") not in _COLUMNS]
    return f"there are {', '.join(_COLUMNS)}, not {', '.join(unknown)}" if unknown else None
