# pyright: basic, reportAttributeAccessIssue=false
"""The Kafka sink: a batch is staged in a file, and published in one transaction."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ......events.commits import CommitId, Document, Manifest
from ......events.model import Resource, Token
from ....spi.errors import RowsRefused, SinkAway, SinkBroken
from ....spi.sink import Sink, TaskOwnership
from ....spi.source import Source
from ...marks import PublishedBatch, refuse_other_log
from ..cluster import KafkaCluster, TopicLimits
from ..keys import SINK_KEY_COLUMNS
from .encoding import RecordEncoder
from .finished_records import FinishedRecords
from .marks import BatchMark
from .publishing import Publisher
from .sending import BATCH_BYTES, RecordSender
from .staging import HELD_ROWS, StagedFile, StagingFolder, read

_BATCH_BYTES: Final = "batch.bytes"
"""Key in manifest notes: a `batch.size` that all topics of the batch accept."""
_KAFKA: Final = "kafka.cluster"
"""Key in manifest notes: the id of the cluster that the batch was staged for."""
_FRAME: Final = 200
"""The most bytes of Kafka's framing of one record."""
_HEADER: Final = 10
"""The most bytes of the framing of one header."""


class MarkRules(NamedTuple):
    """How to handle a committed batch without a mark, which may have expired."""

    retention_ms: int
    unmarked: str
    """`fail`, `publish` or `skip`."""


class KafkaSink(Sink["pa.Table"]):
    """Writes the batches of one task."""

    takes_arrow = True

    def __init__(
        self,
        encoder: RecordEncoder | FinishedRecords,
        staging: StagingFolder,
        cluster: KafkaCluster,
        publisher: Publisher,
        rules: MarkRules,
        cluster_id: str,
    ) -> None:
        """Start with its parts, without a connection yet."""
        self.at_once: RecordSender | None = None
        """Sends batches without staging, for at-least-once delivery."""
        self._encoder = encoder
        self._staging = staging
        self._cluster = cluster
        self._publisher = publisher
        self._rules = rules
        self._cluster_id = cluster_id
        self._limits: dict[str, TopicLimits] = {}
        """What topics accept."""
        self._partitions: dict[str, int] = {}
        """How many partitions topics had when it was last looked."""
        self._source: Source[Any] | None = None
        """The source of its task; None: it has none yet."""

    def paired(self, source: Source[Any]) -> Source[Any]:
        """Return the source, which may ask where its records are written."""
        self._source = source
        return source

    def acquire(self, ownership: TaskOwnership) -> None:
        """Check the mark against the log, and fence former owners.

        The mark is read before fencing, so that a refused log fences nobody, and again after it: an
        open transaction of a former owner may change it until then, for up to a minute.
        """
        if self.at_once is not None:
            return  # a former owner may cause duplicates
        self._check_mark(self._publisher.mark_so_far(), ownership)
        self._publisher.begin()
        self._check_mark(self._publisher.mark(), ownership)

    def prepare(self, schema: pa.Schema) -> None:
        """Refuse rows that cannot be encoded; topics are not created."""
        self._encoder.check(schema)

    def stage(self, rows: pa.Table, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Write a batch to a file; raises `RowsRefused` for a record that its topic refuses."""
        del input_bytes
        records = self._encoder.encode(rows)
        limit = self._refuse_unfit(records)
        size = self._staging.write(commit_id, records)
        name = self._staging.name_of(commit_id)
        note: Document = {_BATCH_BYTES: limit, _KAFKA: self._cluster.id()}
        return Manifest(str(self._staging.root), name, rows.num_rows, size, 1, note=note)

    @property
    def writes_at_once(self) -> bool:
        """Whether batches are sent before their commit."""
        return self.at_once is not None

    def write(self, rows: pa.Table, commit_id: CommitId, input_bytes: int) -> Manifest:
        """Send a batch without staging; after an error all of it is sent again."""
        del commit_id, input_bytes
        if self.at_once is None:
            raise RuntimeError("this sink stages batches")
        records = self._encoder.encode(rows)
        self.at_once.begin(self._refuse_unfit(records))
        self.at_once.send(records.to_batches(HELD_ROWS))
        return Manifest(self._cluster.id(), "", rows.num_rows, records.nbytes, 0)

    def publish(self, manifest: Manifest, commit_id: CommitId, sequence: int) -> None:
        """Send a batch in one transaction, unless the mark shows that it was sent."""
        mark = BatchMark(self._cluster_id, PublishedBatch.of(commit_id))
        size = int(str(manifest.note[_BATCH_BYTES]))
        self._publisher.begin(size, notes_places=self._wants_places)
        path = Path(manifest.root, manifest.staging)
        # Without the file, another publisher has sent the batch, so the own mark is out of date.
        last = self._publisher.own_mark if path.exists() else None
        last = last or self._publisher.mark()
        if last is not None:
            self._refuse_other_cluster(last)
        if last is None or last.batch < mark.batch:
            meant = str(manifest.note.get(_KAFKA, ""))
            if meant in {"", self._cluster.id()} or not self._skips_moved(mark, meant):
                file = self._opened(path, mark, manifest.rows)
                if last is not None or not self._skips_expired(file, mark):
                    self._publisher.publish(file.batches, mark, sequence)
                    if self._source is not None and self._wants_places:
                        self._source.note_places(self._publisher.places)
        StagingFolder(Path(manifest.root)).discard(manifest.staging)

    @property
    def _wants_places(self) -> bool:
        return self._source is not None and self._source.wants_places

    def discard(self, commit_id: CommitId) -> None:
        """Remove the staged file of a batch."""
        self._staging.discard(self._staging.name_of(commit_id))

    def sweep(self, resource: Resource, token: Token) -> None:
        """Remove all that a task staged under this token and older ones."""
        self._staging.sweep(resource, token)

    def close(self) -> None:
        """Close the connections."""
        self._publisher.close()
        if self.at_once is not None:
            self.at_once.close()

    def _opened(self, path: Path, mark: BatchMark, rows: int) -> StagedFile:
        """Open the staged file of a committed batch; raises `SinkBroken` if it is not whole."""
        try:
            file = read(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise SinkBroken(
                f"{mark.batch} is committed, but its file {path} cannot be read here: {error}. It "
                "is published when the file is back; if workers run on several hosts, set "
                "sink.staging.path to a folder that all of them share"
            ) from None
        if file.rows != rows:
            raise SinkBroken(
                f"{mark.batch} is committed with {rows} records, but its file {path} has "
                f"{file.rows}: nothing of it is sent. It is published when the file is back"
            )
        return file

    def _skips_expired(self, file: StagedFile, mark: BatchMark) -> bool:
        """Return whether to skip a batch whose mark may have expired; may raise."""
        age_ms = time.time_ns() // 1_000_000 - file.staged_ms
        return age_ms > self._rules.retention_ms and self._skips_unmarked(mark)

    def _skips_moved(self, mark: BatchMark, meant: str) -> bool:
        """Return whether to skip a batch for the cluster of an earlier config; may raise."""
        if self._rules.unmarked == "fail":
            raise SinkBroken(
                f"{mark.batch} is committed, and was staged for the Kafka cluster {meant}; the "
                f"sink's keys now lead to {self._cluster.id()}. Nothing was lost: set the former "
                "sink.bootstrap.servers until the batch is published, or, if that cluster is "
                "gone, sink.unmarked.batch=publish (to this cluster) or skip"
            )
        return self._rules.unmarked == "skip"

    def _skips_unmarked(self, mark: BatchMark) -> bool:
        """Return whether to skip a batch whose mark may have expired; may raise."""
        if self._rules.unmarked == "fail":
            raise SinkBroken(
                f"{mark.batch} is committed, but was staged longer ago than brokers keep offsets, "
                f"and group {self._publisher.group} has no mark: it is unknown whether the batch "
                "was published. Look for its records, and set sink.unmarked.batch=publish or skip"
            )
        return self._rules.unmarked == "skip"

    def _refuse_unfit(self, records: pa.Table) -> int:
        """Raise `RowsRefused` for a record that its topic never accepts, before the commit.

        Returns a `batch.size` that all topics accept; raises `SinkAway` while there is no such
        partition as a record names.
        """
        self._await_partitions(records)
        least = BATCH_BYTES
        for topic, size, has_keyless, earliest_ms, latest_ms in _extremes(records):
            if topic not in self._limits:
                self._limits.update(self._cluster.limits([topic]))
            limits, now_ms = self._limits[topic], time.time_ns() // 1_000_000
            why = ""
            if size > limits.record_bytes:
                why = f"of {size} bytes, but topic {topic} accepts at most {limits.record_bytes}: "
                why += "raise its max.message.bytes"
            elif has_keyless and limits.needs_keys:
                why = f"without a key, but topic {topic} is compacted: see {SINK_KEY_COLUMNS}"
            elif _is_over(latest_ms, now_ms, limits.after_ms):
                why = f"of a _timestamp in the future, which topic {topic} refuses "
                why += "(message.timestamp.after.max.ms): change it by a transform"
            elif _is_over(now_ms, earliest_ms, limits.before_ms):
                why = f"of a _timestamp that is too old for topic {topic} "
                why += "(message.timestamp.before.max.ms): change it by a transform"
            if why:
                del self._limits[topic]  # somebody may raise them
                raise RowsRefused(
                    f"a row would be a record {why}. Nothing of the batch was written"
                )
            least = min(least, limits.record_bytes)
        return least

    def _await_partitions(self, records: pa.Table) -> None:
        for topic, last in _last_partitions(records):
            if last >= self._partitions.get(topic, 0):
                found = self._cluster.facts([topic])
                self._partitions |= {name: each.partitions for name, each in found.items()}
            if last >= (there := self._partitions.get(topic, 0)):
                raise SinkAway(
                    f"a record is for partition {last} of topic {topic}, which has {there}"
                    " partitions. Nothing of the batch was written: it is when the topic has more"
                )

    @property
    def _remedy(self) -> str:
        """The instruction for users to remove the task's mark."""
        return f"delete the group {self._publisher.group} in Kafka"

    def _check_mark(self, mark: BatchMark | None, ownership: TaskOwnership) -> None:
        if mark is not None:
            self._refuse_other_cluster(mark)
            refuse_other_log(ownership, mark.batch, "Kafka", self._remedy)

    def _refuse_other_cluster(self, mark: BatchMark) -> None:
        if mark.cluster != self._cluster_id:
            raise SinkBroken(
                f"another cluster ({mark.cluster}) writes as {self._publisher.group}: rename this "
                f"connector. Nothing was written. To continue without the mark, {self._remedy}"
            )


def _is_over(later_ms: int | None, earlier_ms: int | None, most_ms: int | None) -> bool:
    """Return whether two times are further apart than allowed; None: no time, or any distance."""
    if later_ms is None or earlier_ms is None or most_ms is None:
        return False
    return later_ms - earlier_ms > most_ms


def _extremes(records: pa.Table) -> Iterator[tuple[str, int, bool, int | None, int | None]]:
    """Yield each topic with the size of its largest record, whether one has no key, its times."""
    sizes = pc.add(
        pc.add(_lengths(records["value"]), _lengths(records["key"])),
        _lengths_of_headers(records["headers"].combine_chunks()),
    )
    told = records.select(["topic", "timestamp"])
    told = told.append_column("size", sizes).append_column("keyless", pc.is_null(records["key"]))
    wanted = [("size", "max"), ("keyless", "any"), ("timestamp", "min"), ("timestamp", "max")]
    for row in told.group_by("topic").aggregate(wanted).to_pylist():
        size = row["size_max"] + _FRAME
        times = row["timestamp_min"], row["timestamp_max"]
        yield row["topic"], size, row["keyless_any"], *times


def _last_partitions(records: pa.Table) -> Iterator[tuple[str, int]]:
    """Yield each topic of which records name partitions, with the last of these."""
    named = records.select(["topic", "partition"]).filter(pc.is_valid(records["partition"]))
    for row in named.group_by("topic").aggregate([("partition", "max")]).to_pylist():
        yield row["topic"], row["partition_max"]


def _lengths(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return pc.cast(pc.fill_null(pc.binary_length(texts), 0), pa.int64())


def _lengths_of_headers(headers: pa.Array) -> pa.Array:
    """Return the bytes of each record's headers, including their framing."""
    names, values = headers.flatten().flatten()
    sizes = pc.add(pc.add(_lengths(names), _lengths(values)), _HEADER)
    sums = pa.concat_arrays([pa.array([0]), pc.cumulative_sum(sizes)])
    counts = pc.fill_null(pc.list_value_length(headers), 0)
    ends = pc.cumulative_sum(counts)
    return pc.subtract(sums.take(ends), sums.take(pc.subtract(ends, counts)))
