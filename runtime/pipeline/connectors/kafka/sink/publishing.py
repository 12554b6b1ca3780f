# pyright: basic
"""One transaction for each batch: its records, and the mark that says that they are there.

The mark is the metadata of an offset that the task's own group has: Kafka commits it with the
records or not at all. Whoever may write for the task is who last began with its transactional id
(`init_transactions`), which ends what a former owner holds open and lets nothing of it in again.
So between that and the end of a transaction nobody else can move the mark.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from ....spi.errors import SinkAway, SinkBroken
from ..bounded import call_within, let_go
from ..cluster import FENCED, LATE, KafkaCluster, Trouble, made
from ..connection import REQUEST_S, SERVERS, Settings
from .marks import BatchMark, MarkGroup

BATCH_BYTES: Final = 128 << 10
"""How large a batch of records on its way to a partition may grow, in bytes."""
_DEFAULTS: Final[Settings] = {
    "partitioner": "murmur2_random",  # a key goes where Java's producers send it
    "linger.ms": 5,
    "socket.timeout.ms": int(REQUEST_S * 1000),  # offsets of a transaction go by no other
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 256 << 10,
    "transaction.timeout.ms": 60_000,
    "message.max.bytes": 1_000_000_000,  # the topic's own limit was held against each record
}
_PURGED: Final = KafkaError._PURGE_QUEUE  # noqa: SLF001  # its codes of its own begin so
_POLL_S: Final = 0.2
_PATIENCE_S: Final = 2 * REQUEST_S
"""How long a call may take whatever limit it was given itself."""


class Publisher:
    """Sends the batches of one task; every method is called from one thread."""

    def __init__(self, settings: Settings, cluster: KafkaCluster, group: str) -> None:
        """Take the name that the task goes by: its group, and its transactional id."""
        self._settings = settings
        self.group = group
        self._marks = MarkGroup(settings, cluster, group)
        self._trouble = Trouble()
        self._producer: Producer | None = None
        self._batch_bytes = 0
        """What the producer was begun with."""
        self.own_mark: BatchMark | None = None
        """The mark that this producer set last; while it may send, nobody else sets one."""
        self._failed: list[KafkaError] = []
        """Why records of the transaction were not taken."""

    def begin(self, batch_bytes: int = BATCH_BYTES) -> None:
        """End what another holds, and shut it out, unless that is done; raises `SinkAway`.

        A mark that is read after this is the last one, for as long as batches can be sent. Records
        on their way to a partition are grouped up to so many bytes, which its topic has to take.
        """
        if self._producer is not None and self._batch_bytes <= batch_bytes:
            return
        self._drop()
        self._batch_bytes = batch_bytes
        own = {"transactional.id": self.group, "on_delivery": self._delivered}
        sizes: Settings = {"batch.size": batch_bytes}
        given = {**_DEFAULTS, **self._settings, **sizes, "delivery.report.only.error": True}
        producer = made(Producer, given, self._trouble, **own)
        self._producer = producer
        self._waiting(producer.init_transactions, REQUEST_S)

    def mark(self) -> BatchMark | None:
        """Ask for the last mark; None: there is none, or none any more."""
        return self._marks.last()

    def mark_so_far(self) -> BatchMark | None:
        """Ask for the mark that stands now, whatever a former owner has under way."""
        return self._marks.so_far()

    def send(self, batches: Iterator[pa.RecordBatch], mark: BatchMark, sequence: int) -> None:
        """Send a batch with its mark; raises `SinkAway`, or `SinkBroken` for what is not taken."""
        producer = self._producer
        if producer is None:
            raise RuntimeError("begin first")
        self._failed.clear()
        self._waiting(producer.begin_transaction)
        topic = ""
        for batch in batches:
            topic = topic or batch["topic"][0].as_py()
            self._produce(producer, batch)
        self._drain(producer, 0)
        place = TopicPartition(topic, 0, sequence, metadata=mark.text)
        known = self._marks.metadata()
        self._waiting(producer.send_offsets_to_transaction, [place], known, REQUEST_S)
        self._waiting(producer.commit_transaction, REQUEST_S)
        self.own_mark = mark

    def close(self) -> None:
        """Let go of the connections; a transaction that is open is ended by whoever is next."""
        self._marks.close()
        self._drop()

    def _drop(self) -> None:
        producer, self._producer, self.own_mark = self._producer, None, None
        if producer is not None:
            let_go(producer.purge)  # and with that its last reference

    def _produce(self, producer: Producer, batch: pa.RecordBatch) -> None:
        columns = [each.to_pylist() for each in batch.columns]
        for topic, key, value, time_ms, headers in zip(*columns, strict=True):
            given: dict[str, Any] = {} if time_ms is None else {"timestamp": time_ms}
            if headers:
                given["headers"] = [(each["key"], each["value"]) for each in headers]
            while True:
                try:
                    producer.produce(topic, value, key, **given)
                    break
                except BufferError:
                    self._drain(producer, len(producer) * 3 // 4)
                except KafkaException as error:
                    raise self._told(error.args[0]) from None
        self._calling(producer.poll, 0)

    def _drain(self, producer: Producer, most: int) -> None:
        """Wait until no more than so many records are on their way, as long as they get fewer."""
        least, since = len(producer), time.monotonic()
        while len(producer) > most and not self._failed:
            self._calling(producer.flush, _POLL_S)
            if len(producer) < least:
                least, since = len(producer), time.monotonic()
            elif time.monotonic() - since > REQUEST_S:
                raise self._told(KafkaError(LATE))
        if self._failed:
            raise self._told(self._failed[0])

    def _delivered(self, error: KafkaError | None, record: object) -> None:
        del record
        if error is not None and error.code() != _PURGED:  # so are all behind the one that failed
            self._failed.append(error)

    def _waiting(self, call: Callable[..., object], *given: object) -> None:
        self._calling(call_within, _PATIENCE_S, call, *given)

    def _calling(self, call: Callable[..., object], *given: object) -> None:
        try:
            call(*given)
        except KafkaException as error:
            raise self._told(self._failed[0] if self._failed else error.args[0]) from None

    def _told(self, error: KafkaError) -> Exception:
        """Return what an error means to the task; the next attempt begins anew."""
        self.close()
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return SinkBroken(
                f"a record is larger than its topic takes ({error.str()}). The batch is kept; "
                "raise max.message.bytes of the topic, and it is published"
            )
        if error.code() in FENCED:
            return SinkAway(f"another process publishes as {self.group}: {error.str()}")
        return self._trouble.reason(error, self._settings[SERVERS], SinkAway)
