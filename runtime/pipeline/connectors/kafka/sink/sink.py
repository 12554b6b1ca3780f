# pyright: basic, reportAttributeAccessIssue=false
"""Topics as a sink: a batch is staged in a file, and published in one transaction."""

import time
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ......events.commits import CommitId, Document, Manifest
from ......events.model import Resource, Token
from ....spi.errors import RowsRefused, SinkBroken
from ....spi.sink import Sink, Tenure
from ...marks import PublishedBatch, refuse_other_log
from ..cluster import KafkaCluster
from .encoding import RecordEncoder
from .marks import BatchMark
from .publishing import Publisher
from .sending import BATCH_BYTES, RecordSender
from .staging import HELD_ROWS, StagingFolder, read

_BATCH_BYTES: Final = "batch.bytes"
"""In manifests: how many bytes records may be grouped up to, so that all their topics take them."""
_KAFKA: Final = "kafka.cluster"
"""In manifests: the id of the cluster that a batch was staged for."""
_FRAME: Final = 200
"""How many bytes Kafka's own framing of one record may take."""
_HEADER: Final = 10
"""How many bytes the framing of one header may take."""


class MarkRules(NamedTuple):
    """What to make of a batch that waits without a mark, which may have expired."""

    retention_ms: int
    unmarked: str
    """`fail`, `publish` or `skip`."""


class KafkaSink(Sink["pa.Table"]):
    """Writes the batches of one task."""

    takes_arrow = True

    def __init__(
        self,
        encoder: RecordEncoder,
        staging: StagingFolder,
        cluster: KafkaCluster,
        publisher: Publisher,
        rules: MarkRules,
        cluster_id: str,
    ) -> None:
        """Take what it is made of; nothing is asked of the brokers yet."""
        self.at_once: RecordSender | None = None
        """Sends batches before they count, if it is content with at least once."""
        self._encoder = encoder
        self._staging = staging
        self._cluster = cluster
        self._publisher = publisher
        self._rules = rules
        self._cluster_id = cluster_id
        self._limits: dict[str, int] = {}
        """How large a record may be, in bytes, by topic."""

    def acquire(self, tenure: Tenure) -> None:
        """Hold the mark against the log, and shut former owners out.

        It is asked for before, so that nobody is shut out by whom the mark refuses, and after: a
        transaction of a former owner changes it until then, and may stay open for a minute.
        """
        if self.at_once is not None:
            return  # what a former owner still sends comes twice
        self._refuse_strange(self._publisher.mark_so_far(), tenure)
        self._publisher.begin()
        self._refuse_strange(self._publisher.mark(), tenure)

    def prepare(self, schema: pa.Schema) -> None:
        """Refuse rows that cannot be written; topics are not made."""
        self._encoder.check(schema)

    def stage(self, rows: pa.Table, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch of records to a file; raises `RowsRefused` for one that no topic takes."""
        del input_bytes
        records = self._encoder.encode(rows)
        limit = self._refuse_large(records)
        size = self._staging.write(commit_id, records)
        name = self._staging.name_of(commit_id)
        note: Document = {_BATCH_BYTES: limit, _KAFKA: self._cluster.id()}
        return Manifest(str(self._staging.root), name, rows.num_rows, size, 1, note=note)

    @property
    def writes_at_once(self) -> bool:
        """Whether batches are sent before they count."""
        return self.at_once is not None

    def write(self, rows: pa.Table, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Send a batch at once; after an error all of it is sent again."""
        del commit_id, input_bytes
        if self.at_once is None:
            raise RuntimeError("it stages")
        records = self._encoder.encode(rows)
        self.at_once.begin(self._refuse_large(records))
        self.at_once.send(records.to_batches(HELD_ROWS))
        return Manifest(self._cluster.id(), "", rows.num_rows, records.nbytes, 0)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Send a batch in one transaction, unless its mark says that it was."""
        mark = BatchMark(self._cluster_id, PublishedBatch.of(commit_id))
        self._publisher.begin(int(str(manifest.note[_BATCH_BYTES])))
        path = Path(manifest.root, manifest.staging)
        last = self._publisher.own_mark if path.exists() else None  # else another has published it
        last = last or self._publisher.mark()
        if last is not None:
            self._refuse_other_cluster(last)
        if last is None or last.batch < mark.batch:
            meant = str(manifest.note.get(_KAFKA, ""))
            if meant in {"", self._cluster.id()} or not self._is_left_there(mark, meant):
                self._send(path, mark, sequence, is_marked=last is not None)
        StagingFolder(Path(manifest.root)).discard(manifest.staging)

    def discard(self, commit_id: CommitId) -> None:
        """Remove what was staged for a batch."""
        self._staging.discard(self._staging.name_of(commit_id))

    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove what a task has staged under a token and older ones."""
        self._staging.sweep(resource, token)

    def close(self) -> None:
        """Let go of the connections."""
        self._publisher.close()
        if self.at_once is not None:
            self.at_once.close()

    def _send(self, path: Path, mark: BatchMark, sequence: int, *, is_marked: bool) -> None:
        try:
            batches, staged_ms = read(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise SinkBroken(
                f"{mark.batch} counts, and its file {path} cannot be read here: {error}. It is "
                "published once the file is back; if workers run on several hosts, set "
                "sink.staging.path to a folder that all of them see"
            ) from None
        age_ms = time.time_ns() // 1_000_000 - staged_ms
        if not is_marked and age_ms > self._rules.retention_ms and self._is_left_out(mark):
            return
        self._publisher.publish(batches, mark, sequence)

    def _is_left_there(self, mark: BatchMark, meant: str) -> bool:
        """Tell what is to become of a batch that waits for the cluster of an earlier config."""
        if self._rules.unmarked == "fail":
            raise SinkBroken(
                f"{mark.batch} counts, and waits for the Kafka cluster {meant}, to which the sink "
                f"led when it was staged; it leads to {self._cluster.id()} by now. Nothing was "
                "lost: set the former sink.bootstrap.servers until the batch is published, or, if "
                "that cluster is gone, sink.unmarked.batch=publish (here) or skip"
            )
        return self._rules.unmarked == "skip"

    def _is_left_out(self, mark: BatchMark) -> bool:
        """Tell what is to become of a batch of which nobody knows whether it was published."""
        if self._rules.unmarked == "fail":
            raise SinkBroken(
                f"{mark.batch} counts, was staged longer ago than brokers keep offsets, and group "
                f"{self._publisher.group} has no mark: nobody can tell whether it was published. "
                "Look for its records, and set sink.unmarked.batch=publish or skip"
            )
        return self._rules.unmarked == "skip"

    def _refuse_large(self, records: pa.Table) -> int:
        """Refuse a record that its topic would not take: once it counts it is too late.

        Returns how many bytes of records all topics take at once.
        """
        least = BATCH_BYTES
        sizes = pc.add(
            pc.add(_lengths(records["value"]), _lengths(records["key"])),
            _lengths_of_headers(records["headers"].combine_chunks()),
        )
        largest = records.select(["topic"]).append_column("size", sizes).group_by("topic")
        for row in largest.aggregate([("size", "max")]).to_pylist():
            topic, size = row["topic"], row["size_max"] + _FRAME
            if topic not in self._limits:
                self._limits.update(self._cluster.largest_records([topic]))
            if size > self._limits[topic]:
                raise RowsRefused(
                    f"a row would be a record of {size} bytes, and topic {topic} takes "
                    f"{self._limits[topic]}: raise its max.message.bytes. Nothing of the batch "
                    "was written"
                )
            least = min(least, self._limits[topic])
        return least

    @property
    def _remedy(self) -> str:
        """How a person makes a task's mark be forgotten."""
        return f"delete the group {self._publisher.group} in Kafka"

    def _refuse_strange(self, mark: BatchMark | None, tenure: Tenure) -> None:
        if mark is not None:
            self._refuse_other_cluster(mark)
            refuse_other_log(tenure, mark.batch, "Kafka", self._remedy)

    def _refuse_other_cluster(self, mark: BatchMark) -> None:
        if mark.cluster != self._cluster_id:
            raise SinkBroken(
                f"another cluster ({mark.cluster}) writes as {self._publisher.group}: rename this "
                f"connector. Nothing was written. To go on without the mark, {self._remedy}"
            )


def _lengths(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.cast(pc.fill_null(pc.binary_length(texts), 0), pa.int64())


def _lengths_of_headers(headers: pa.Array) -> pa.Array:
    """Return how many bytes the headers of each record have, their framing included."""
    names, values = headers.flatten().flatten()
    sizes = pc.add(pc.add(_lengths(names), _lengths(values)), _HEADER)
    sums = pa.concat_arrays([pa.array([0]), pc.cumulative_sum(sizes)])
    counts = pc.fill_null(pc.list_value_length(headers), 0)
    ends = pc.cumulative_sum(counts)
    return pc.subtract(sums.take(ends), sums.take(pc.subtract(ends, counts)))
