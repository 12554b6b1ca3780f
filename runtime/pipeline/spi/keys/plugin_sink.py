"""The keys of sinks that are connectors of Kafka Connect, whose type is `connect`."""

from collections.abc import Mapping
from typing import Final

from .common import NAME, TASKS_MAX
from .plugin_source import CONNECT

OF_SINK: Final = "sink.connect."
"""Before each key of such a sink."""
SINK_OF_PLUGIN: Final = "sink.connect.config."
"""Before each key of the plugin's config."""
SINK_OF_TASK: Final = "sink.connect.task."
"""Before each key that the plugin has given to one task."""
IS_RAW: Final = "sink.connect.is.raw"
"""Whether such a sink gets the bytes of records, which the plugin's converters read: `true`."""
KEY_COLUMNS: Final = "sink.key.columns"
"""Which columns are the key of a record."""
TIME_PRECISION: Final = "sink.time.precision"
"""How the times of rows are written."""
OWN_KEYS: Final = ("sink.type", KEY_COLUMNS, TIME_PRECISION)
"""The keys that are fairlead's, of all that users set for such a sink."""
_OF_WHOLE: Final = (NAME, TASKS_MAX, "errors.")
BESIDE_SOURCE: Final = "sink."
"""Before each key of a sink whose source is a connector of Kafka Connect's as well."""
RECORD_TOPIC: Final = "sink_topic"
RECORD_PARTITION: Final = "sink_partition"
"""What names the records that rows become, in a partition of offsets beside those of the source."""
RECORD_OFFSET: Final = "sink_offset"
"""The offset of the next one."""


def has_two_plugins(config: Mapping[str, str | None]) -> bool:
    """Return whether a config of Connect's own class names another one as its sink."""
    return config.get("sink.type") == CONNECT and "source.type" not in config


def is_of_whole(key: str) -> bool:
    """Return whether a key is one of a connector with both its plugins."""
    return key.startswith(_OF_WHOLE)


def name_beside_source(key: str) -> str:
    """Return the name that a key of a plugin has which is the sink of another one."""
    named = f"{BESIDE_SOURCE}{key}"
    return f"{SINK_OF_PLUGIN}{key}" if named in OWN_KEYS else named


def name_at_plugin(key: str) -> str:
    """Return the name that such a key has for the plugin."""
    prefix = SINK_OF_PLUGIN if key.startswith(SINK_OF_PLUGIN) else BESIDE_SOURCE
    return key.removeprefix(prefix)
