# pyright: basic
"""A Kafka producer; its errors are raised as the exceptions of sinks."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from ....spi.errors import SinkAway, SinkBroken
from ....spi.source import PlacedRun
from ..call_timeout import call_within, end_in_background
from ..cluster import FENCED, LATE, LastError, make_client
from ..connection import REQUEST_S, SERVERS, Settings
from .places import DeliveredPlaces, Heard

BATCH_BYTES: Final = 128 << 10
"""The producer's `batch.size`, in bytes."""
_DEFAULTS: Final[Settings] = {
    "partitioner": "murmur2_random",  # a key goes where Java's producers send it
    "linger.ms": 5,
    "socket.timeout.ms": int(REQUEST_S * 1000),  # the only timeout for a transaction's offsets
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 256 << 10,
    "message.max.bytes": 1_000_000_000,  # records were checked against their topic's own limit
}
_REFUSED: Final[Mapping[int, tuple[str, str]]] = {
    KafkaError.MSG_SIZE_TOO_LARGE: (
        "is too large for its topic",
        "raise max.message.bytes of the topic",
    ),
    KafkaError.INVALID_TIMESTAMP: (
        "has a _timestamp that is too old, or too far ahead, for its topic",
        "raise message.timestamp.before.max.ms or message.timestamp.after.max.ms of the topic",
    ),
    KafkaError.INVALID_RECORD: (
        "is refused by its topic, as one without a key by a compacted topic",
        "change the cleanup.policy of the topic",
    ),
    KafkaError.POLICY_VIOLATION: (
        "violates a policy of the brokers",
        "change that policy",
    ),
}
"""What topics never accept, however long it waits: why, and what people can do."""
_PURGED: Final = KafkaError._PURGE_QUEUE  # noqa: SLF001  # a local error code
_POLL_S: Final = 0.2
_PATIENCE_S: Final = 2 * REQUEST_S
"""The limit of each call, beside its own timeout."""


class RecordSender:
    """Sends records; not thread-safe."""

    def __init__(self, settings: Settings, own: Settings) -> None:
        """Start with the user's settings, and those that users cannot override."""
        self._settings = settings
        self._own = own
        self._trouble = LastError()
        self._producer: Producer | None = None
        """The client; None: not connected."""
        self._batch_bytes = 0
        """The `batch.size` of the producer."""
        self._failed: list[KafkaError] = []
        """The errors of records since the last `send`."""
        self._notes_places = False
        """Whether the producer tells where each record is written."""
        self.places: Sequence[PlacedRun] = ()
        """Where the records of the last `send` are, if that was asked for."""

    def begin(self, batch_bytes: int = BATCH_BYTES, *, notes_places: bool = False) -> bool:
        """Create a producer with this `batch.size`, unless there is one with at most this size.

        The topics must accept batches of this size. With `notes_places` the places of records are
        known after they were sent, but of most that fail their transaction alone tells. Returns
        whether a producer was created; raises `SinkAway`.
        """
        is_such = self._producer is not None and self._notes_places == notes_places
        if is_such and self._batch_bytes <= batch_bytes:
            return False
        self._drop()
        self._batch_bytes, self._notes_places = batch_bytes, notes_places
        sizes: Settings = {
            "batch.size": batch_bytes,
            "delivery.report.only.error": not notes_places,
        }
        given = {**_DEFAULTS, **self._settings, **sizes}
        heard = {} if notes_places else {"on_delivery": self._delivered}
        own: dict[str, Any] = {**self._own, **heard}
        self._producer = make_client(Producer, given, self._trouble, **own)
        return True

    def send(self, batches: Iterable[pa.RecordBatch]) -> str:
        """Send records, and wait until all are acknowledged; return the topic of the first one.

        Raises `SinkAway`, or `SinkBroken` for refused records.
        """
        producer = self.producer
        self._failed.clear()
        noted = DeliveredPlaces(self._delivered, self.partitions_of)
        places = noted if self._notes_places else None
        topic = ""
        for batch in batches:
            topic = topic or batch["topic"][0].as_py()
            self._produce(producer, batch, places)
        self._drain(producer, 0)
        self.places = places.runs() if places is not None else ()
        return topic

    def partitions_of(self, topic: str) -> int:
        """Return how many partitions a topic has; 0: it is not known."""
        del topic
        return 0

    def close(self) -> None:
        """Close the connections."""
        self._drop()

    @property
    def producer(self) -> Producer:
        """The producer of `begin`."""
        if self._producer is None:
            raise RuntimeError("begin first")
        return self._producer

    def call(self, method: Callable[..., object], *given: object) -> None:
        """Call a blocking method of the producer, with a timeout; translates its errors."""
        self._translated(call_within, _PATIENCE_S, method, *given)

    def _drop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            end_in_background(producer.purge)  # the thread holds the last reference

    def _produce(
        self, producer: Producer, batch: pa.RecordBatch, places: DeliveredPlaces | None
    ) -> None:
        records: list[Sequence[Any]] = _records_of(batch)
        heard: Mapping[int, Heard] = {}
        if places is not None:
            records[-1], heard = places.expect(records[0], records[-1])
        for row, each in enumerate(zip(*records, strict=True)):
            topic, key, value, time_ms, headers, partition = each
            more = _options(time_ms, headers, partition)
            if row in heard:
                more["on_delivery"] = heard[row]
            while True:
                try:
                    producer.produce(topic, value, key, **more)
                    break
                except BufferError:
                    self._drain(producer, len(producer) * 3 // 4)
                except KafkaException as error:
                    raise self._task_error(error.args[0]) from None
        self._translated(producer.poll, 0)

    def _drain(self, producer: Producer, most: int) -> None:
        """Wait until at most `most` records are in flight; raises if none arrives for long."""
        least, since = len(producer), time.monotonic()
        while len(producer) > most and not self._failed:
            self._translated(producer.flush, _POLL_S)
            if len(producer) < least:
                least, since = len(producer), time.monotonic()
            elif time.monotonic() - since > REQUEST_S:
                raise self._task_error(KafkaError(LATE))
        if self._failed:
            raise self._task_error(self._failed[0])

    def _delivered(self, error: KafkaError | None, record: object) -> None:
        del record
        if error is not None and error.code() != _PURGED:  # records after a failed one are purged
            self._failed.append(error)

    def _translated(self, call: Callable[..., object], *given: object) -> None:
        try:
            call(*given)
        except KafkaException as error:
            raise self._task_error(self._failed[0] if self._failed else error.args[0]) from None

    def _task_error(self, error: KafkaError) -> Exception:
        """Close the producer, and return the exception for the task."""
        self.close()
        if refused := _REFUSED.get(error.code()):
            what, remedy = refused
            told = f"a record {what} ({error.str()}). The batch is kept: {remedy} to publish it"
            return SinkBroken(told)
        if error.code() in FENCED:
            who = self._own.get("transactional.id", "this task")
            return SinkAway(f"another process publishes as {who}: {error.str()}")
        return self._trouble.reason(error, self._settings[SERVERS], SinkAway)


def _options(time_ms: int | None, headers: Any, partition: int | None) -> dict[str, Any]:  # noqa: ANN401  # dicts
    """Return what a record has beside its topic, key and value."""
    found: dict[str, Any] = {} if time_ms is None else {"timestamp": time_ms}
    if partition is not None:
        found["partition"] = partition
    if headers:
        found["headers"] = [(each["key"], each["value"]) for each in headers]
    return found


def _records_of(batch: pa.RecordBatch) -> list[Sequence[Any]]:
    """Return the columns of a staged batch; those of an earlier release have no partitions."""
    columns: list[Sequence[Any]] = [each.to_pylist() for each in batch.columns]
    if "partition" not in batch.schema.names:
        columns.append([None] * batch.num_rows)
    return columns
