# pyright: basic
"""The records of a source whose sink is a connector of Kafka Connect's, too.

Its records stay in the host that both tasks are in, as they are: what comes here is a table with
the topic of each and its place in the batch. With a transform of fairlead's between, rows with
columns come here. The sink has the records of its topics alone, as in Connect.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Self

from ...spi.config import strip_prefix
from ...spi.keys.plugin_sink import SINK_OF_PLUGIN
from ...spi.keys.plugin_source import HELD

BATCH: Final = b"fairlead.batch"
"""The metadata of a table of records that a host holds: the number of their batch there."""
_TOPIC: Final = "_topic"


class Pair(NamedTuple):
    """The wishes of a sink that is a plugin."""

    is_held: bool
    """Whether records stay in the host."""
    reads: Callable[[str], bool]
    """Whether the sink reads a topic."""

    @classmethod
    def of(cls, config: Mapping[str, str]) -> Self:
        """Return those that a task config has."""
        sink = strip_prefix(SINK_OF_PLUGIN, config)
        topics = {each.strip() for each in sink.get("topics", "").split(",")}
        pattern = sink.get("topics.regex")
        reads = re.compile(pattern).fullmatch if pattern else topics.__contains__
        return cls(config.get(HELD) == "true", lambda topic: bool(reads(topic)))

    def select(self, number: int, rows: Any) -> Any:  # noqa: ANN401  # pyarrow has no types
        """Return the rows of a batch that the sink reads; the batch has that number."""
        topics = rows[_TOPIC].to_pylist()
        known = {each: self.reads(each) for each in {*topics}}
        if not all(known.values()):
            rows = rows.filter([known[each] for each in topics])
        if not self.is_held:
            return rows
        return rows.replace_schema_metadata({BATCH: str(number).encode()})
