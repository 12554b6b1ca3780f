# pyright: basic, reportAttributeAccessIssue=false
"""The dead letter topic: a record's value is the text of the bad row, headers have the context.

As in Connect's queue, bad records from Kafka keep the bytes of their key and value, and the topic
is created if it does not exist. With the context they keep their headers and their time, and say
how they are read again (`source.letters`).

It is a Kafka sink with its own mark group, transactional id and staging folder, since the task's
sink may use the same cluster.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ......events.commits import CommitId, Manifest
from ......events.model import Resource, Token
from ....spi.config import ConfigInvalid
from ....spi.context import Context, ExternalAccess
from ....spi.errors import SinkAway
from ....spi.sink import Sink, TaskOwnership
from .. import keys
from ..cluster import KafkaCluster
from ..connection import LOOK_S, client_settings, locations
from ..source.letters.mark import letter_headers
from .encoding import LONE, Converter, RecordEncoder
from .letter_records import LetterRecords
from .publishing import Publisher
from .sink import KafkaSink, MarkRules
from .sink_type import staging_root
from .staging import StagingFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OWN: Final = "dead-letters"
"""The suffix for the dead letters of a task; names of tasks end with a number."""
_BYTES: Final = Converter("bytes")
_RETENTION_MS: Final = 7 * 24 * 3600 * 1000
"""The brokers' default of `offsets.retention.minutes`."""


class LetterTopic(NamedTuple):
    """The topic of dead letters, and how to reach and create it."""

    end: str
    """The prefix of the connection keys of its cluster."""
    topic: str
    replicas: int
    """The replication factor if the topic is created."""
    staging: str
    """The staging folder; empty: the node's own."""


class DeadLetterTopic(Sink["DataFrame"]):
    """Writes the dead letters of one task."""

    def __init__(self, sink: KafkaSink, cluster: KafkaCluster, place: LetterTopic) -> None:
        """Start with a sink of texts, and the topic."""
        self._sink = sink
        self._cluster = cluster
        self._place = place

    def acquire(self, ownership: TaskOwnership) -> None:
        """Create the topic if it does not exist, and check the mark against the log."""
        topic = self._place.topic
        if topic not in self._cluster.facts([topic]):
            self._cluster.create(topic, self._place.replicas)
        self._sink.acquire(ownership)

    def stage(self, rows: "DataFrame", commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write letters to a staging file as records; raises `RowsRefused`."""
        letters = rows.toArrow()
        texts = pc.cast(letters["raw"], pa.binary())
        columns = {LONE: pc.coalesce(letters["value"], texts), "_key": letters["key"]}
        if "headers" in letters.column_names:
            columns["_headers"] = letter_headers(letters)
        return self._sink.stage(pa.table(columns), commit_id, input_bytes)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Send the letters of a batch in one transaction, unless they were sent."""
        self._sink.publish(manifest, commit_id, sequence)

    def discard(self, commit_id: CommitId) -> None:
        """Remove the staged letters of a batch."""
        self._sink.discard(commit_id)

    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove all that a task staged under this token and older ones."""
        self._sink.sweep(resource, token)

    def close(self) -> None:
        """Close the connections."""
        self._sink.close()


def dead_letter_topic(
    context: Context, config: Mapping[str, str], place: LetterTopic
) -> DeadLetterTopic:
    """Make the sink of a task's dead letters; raises `ConfigInvalid`."""
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


def letter_records(
    outside: ExternalAccess, config: Mapping[str, str], end: str, topic: str
) -> LetterRecords:
    """Make the reader of a connector's dead letters; raises `ConfigInvalid`."""
    for key, path in locations(end, config).items():
        if flaw := outside.reach.flaw_in_path(path):
            raise ConfigInvalid(f"{key}: {flaw}")
    client = client_settings(end, config, keys.PRODUCER)
    return LetterRecords(client, KafkaCluster(client, SinkAway, LOOK_S), topic)
