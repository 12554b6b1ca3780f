# pyright: basic
"""Records of several topics, each decoded by itself, where the sink has a target for each topic.

A topic has columns of its own then: inferred from its own last records, of its own subjects in a
registry, or of its own envelopes. A batch is one table all the same (`batches/topics.py`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from ....batches.frames import rows_of
from ....batches.topics import TOPIC, joined
from ....spi.errors import NotReady
from ....spi.rows import Rejects
from ...topics import has_target_for_each_topic
from .. import keys
from .decoding import KafkaRows, RecordDecoder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MakeDecoder = Callable[[str, pa.Table], RecordDecoder]
"""Makes the decoder of a topic, given some of its records; raises `NotReady` without a value."""

_KAFKA: Final = "kafka"


def is_by_topic(config: Mapping[str, str]) -> bool:
    """Return whether each topic is decoded by itself."""
    names = map(str.strip, config.get(keys.METADATA, "").split(","))
    tells_topics = TOPIC in {f"_{each.removeprefix('_')}" for each in names}
    is_of_topics = config.get("source.type") == _KAFKA and tells_topics
    return is_of_topics and has_target_for_each_topic(config)


def of_topic(records: pa.Table, topic: str) -> pa.Table:
    """Return the records of a topic."""
    return records.filter(pc.equal(records[TOPIC], topic))


class TopicDecoders(RecordDecoder):
    """A decoder for each topic, made at its first record."""

    def __init__(self, rows: KafkaRows, make: MakeDecoder) -> None:
        """Start without a decoder."""
        super().__init__(rows)
        self._make = make
        self._decoders: dict[str, RecordDecoder] = {}
        self._used: Sequence[RecordDecoder] = ()
        """Those of the last batch."""

    @property
    def needs_spark(self) -> bool:
        """Whether the records of a topic that is known do."""
        known = self._decoders.values()
        return not known or any(each.needs_spark for each in known)

    @property
    def separates_bad_rows(self) -> bool:
        """Whether the rows may be fewer than the records."""
        known = self._decoders.values()
        return self._rows.separates_bad or any(each.separates_bad_rows for each in known)

    @property
    def remark(self) -> str:
        """Return the remarks of all topics."""
        found = {topic: each.remark for topic, each in self._decoders.items()}
        return "; ".join(f"{topic}: {each}" for topic, each in sorted(found.items()) if each)

    def rejects(self) -> Sequence[Rejects]:
        """Return the records of the last batch that were left out, by topic."""
        return [one for each in self._used for one in each.rejects()]

    def decode_held(self, table: pa.Table) -> "pa.Table | None":
        """Return the rows without Spark; None: those of a topic need it."""
        parts: list[tuple[str, pa.Table]] = []
        for topic, records, decoder in self._parts(table):
            rows = self._metadata(records) if decoder is None else decoder.decode_held(records)
            if rows is None:
                return None
            parts.append((topic, rows))
        return joined(parts) if parts else self._metadata(table)

    def decode(self, spark: "SparkSession", table: pa.Table) -> "DataFrame | pa.Table":
        """Return the rows, as one table; raises `BadInput`."""
        parts: list[tuple[str, pa.Table]] = []
        for topic, records, decoder in self._parts(table):
            rows = self._metadata(records) if decoder is None else decoder.decode(spark, records)
            parts.append((topic, rows if isinstance(rows, pa.Table) else rows_of(rows)))
        return joined(parts) if parts else self._metadata(table)

    def _parts(self, table: pa.Table) -> Iterator[tuple[str, pa.Table, RecordDecoder | None]]:
        """Yield the topics with their records and decoders; None: no value tells the columns."""
        topics = pc.unique(table[TOPIC]).to_pylist()
        parts = {topic: of_topic(table, topic) for topic in topics}
        found = {topic: self._decoder(topic, records) for topic, records in parts.items()}
        self._used = [each for each in found.values() if each is not None]
        for topic, records in parts.items():
            yield topic, records, found[topic]

    def _decoder(self, topic: str, records: pa.Table) -> RecordDecoder | None:
        if topic not in self._decoders:
            try:
                self._decoders[topic] = self._make(topic, records)
            except NotReady:
                return None
        return self._decoders[topic]
