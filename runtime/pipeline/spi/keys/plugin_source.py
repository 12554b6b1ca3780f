"""The keys of sources that are connectors of Kafka Connect."""

from typing import Final

CONNECT: Final = "connect"
"""The type of such a source."""
OF_PLUGIN: Final = "source.connect.config."
"""Before each key of the plugin's config."""
OF_TASK: Final = "source.connect.task."
"""Before each key that the plugin has given to one task."""
OF_CLUSTER: Final = "source.connect.cluster."
"""Before each setting of the client that creates topics; they are given to a task as it starts."""
RECORDS: Final = "source.connect.records"
"""Whether records are handed over as Kafka gets them, converted by the plugin's own converters."""
HELD: Final = "source.connect.held"
"""Whether records stay in the plugin host, as they are, since the sink is a plugin, too: `true`."""
METADATA: Final = "source.metadata.columns"
"""Which columns have what a record has beside its value: those of the Kafka source."""
SUPPORT: Final = "source.connect.exactly.once"
"""What the plugin says of resuming right behind its last offset; "" or absent: it was not asked."""


def delivers(delivery: str) -> str:
    """Return the words with which the remark of a task tells what it delivers now."""
    return f"delivery is {delivery}: "
