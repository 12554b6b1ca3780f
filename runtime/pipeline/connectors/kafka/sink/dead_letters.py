# pyright: basic, reportAttributeAccessIssue=false
"""A topic of dead letters: of each the text as the record's value, and its context as headers.

A record of Kafka keeps its key and its value, byte for byte, as in Connect's queue.

It is written to as a sink of topics is, by a group, a transactional id and a staging folder of its
own: the task's sink may be the same cluster. The topic is made if it is not there, as Connect does.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ......events.commits import CommitId, Manifest
from ......events.model import Resource, Token
from ....spi.context import Context
from ....spi.errors import SinkAway
from ....spi.sink import Sink, Tenure
from .. import keys
from ..cluster import KafkaCluster
from ..connection import client_settings, locations
from .encoding import LONE, RECORD, Converter, RecordEncoder
from .publishing import Publisher
from .sink import KafkaSink, MarkRules
from .sink_type import staging_root
from .staging import StagingFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OWN: Final = "dead-letters"
"""What tells a task's letters from its rows: no name of a task ends without its number."""
_BYTES: Final = Converter("bytes")
_RETENTION_MS: Final = 7 * 24 * 3600 * 1000
"""How long brokers keep a mark unless they are told otherwise."""


class LetterTopic(NamedTuple):
    """Where letters go: a topic, and the end of the config that says how its cluster is reached."""

    end: str
    topic: str
    replicas: int
    """How many copies the topic has if it has to be made."""
    staging: str
    """The folder of batches that wait; empty: the node's own."""


class DeadLetterTopic(Sink["DataFrame"]):
    """Writes the dead letters of one task."""

    def __init__(self, sink: KafkaSink, cluster: KafkaCluster, place: LetterTopic) -> None:
        """Take what writes records of texts, and where they go."""
        self._sink = sink
        self._cluster = cluster
        self._place = place

    def acquire(self, tenure: Tenure) -> None:
        """Make the topic unless it is there, and hold the mark against the log."""
        topic = self._place.topic
        if topic not in self._cluster.facts([topic]):
            self._cluster.create(topic, self._place.replicas)
        self._sink.acquire(tenure)

    def stage(self, rows: "DataFrame", commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write letters to a file, as they will be sent; raises `RowsRefused`."""
        letters = rows.toArrow()
        texts = pc.cast(letters["raw"], pa.binary())
        columns = {LONE: pc.coalesce(letters["value"], texts), "_key": letters["key"]}
        if "headers" in letters.column_names:
            columns["_headers"] = _headers(letters["headers"])
        return self._sink.stage(pa.table(columns), commit_id, input_bytes)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Send the letters of a batch in one transaction, unless they were."""
        self._sink.publish(manifest, commit_id, sequence)

    def discard(self, commit_id: CommitId) -> None:
        """Remove what was staged for a batch."""
        self._sink.discard(commit_id)

    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove what a task has staged under a token and older ones."""
        self._sink.sweep(resource, token)

    def close(self) -> None:
        """Let go of the connections."""
        self._sink.close()


def dead_letter_topic(
    context: Context, config: Mapping[str, str], place: LetterTopic
) -> DeadLetterTopic:
    """Make what writes a task's dead letters; raises `ConfigInvalid`."""
    for key, path in locations(place.end, config).items():
        context.check_path(key, path)
    client = client_settings(place.end, config, keys.PRODUCER)
    cluster = KafkaCluster(client, SinkAway)
    sink = KafkaSink(
        RecordEncoder(place.topic, "", (), _BYTES, _BYTES),
        StagingFolder(staging_root(context, place.staging) / _OWN),
        cluster,
        Publisher(client, cluster, f"fairlead.{context.resource}.{_OWN}"),
        MarkRules(_RETENTION_MS, "publish"),
        context.cluster_id,
    )
    return DeadLetterTopic(sink, cluster, place)


def _headers(told: pa.ChunkedArray) -> pa.Array:
    pairs = [
        [{"key": key, "value": value.encode()} for key, value in each] for each in told.to_pylist()
    ]
    return pa.array(pairs, RECORD.field("headers").type)
