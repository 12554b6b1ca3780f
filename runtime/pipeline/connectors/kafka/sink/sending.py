# pyright: basic
"""A producer that records are sent by: what fails is told as what it means to the task."""

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer

from ....spi.errors import SinkAway, SinkBroken
from ..bounded import call_within, let_go
from ..cluster import FENCED, LATE, Trouble, made
from ..connection import REQUEST_S, SERVERS, Settings

BATCH_BYTES: Final = 128 << 10
"""How large a batch of records on its way to a partition may grow, in bytes."""
_DEFAULTS: Final[Settings] = {
    "partitioner": "murmur2_random",  # a key goes where Java's producers send it
    "linger.ms": 5,
    "socket.timeout.ms": int(REQUEST_S * 1000),  # offsets of a transaction go by no other
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 256 << 10,
    "message.max.bytes": 1_000_000_000,  # the topic's own limit was held against each record
}
_PURGED: Final = KafkaError._PURGE_QUEUE  # noqa: SLF001  # its codes of its own begin so
_POLL_S: Final = 0.2
_PATIENCE_S: Final = 2 * REQUEST_S
"""How long a call may take whatever limit it was given itself."""


class RecordSender:
    """Sends records; every method is called from one thread."""

    def __init__(self, settings: Settings, own: Settings) -> None:
        """Take the settings that a user gives, and those that no user changes."""
        self._settings = settings
        self._own = own
        self._trouble = Trouble()
        self._producer: Producer | None = None
        self._batch_bytes = 0
        """What the producer was begun with."""
        self._failed: list[KafkaError] = []
        """Why records were not taken since the last `send`."""

    def begin(self, batch_bytes: int = BATCH_BYTES) -> bool:
        """Make a producer that groups records up to so many bytes, unless there is one.

        Their topics have to take such groups. Tells whether one was made; raises `SinkAway`.
        """
        if self._producer is not None and self._batch_bytes <= batch_bytes:
            return False
        self._drop()
        self._batch_bytes = batch_bytes
        sizes: Settings = {"batch.size": batch_bytes, "delivery.report.only.error": True}
        given = {**_DEFAULTS, **self._settings, **sizes}
        own: dict[str, Any] = {**self._own, "on_delivery": self._delivered}
        self._producer = made(Producer, given, self._trouble, **own)
        return True

    def send(self, batches: Iterable[pa.RecordBatch]) -> str:
        """Send records, and wait until all are taken; return the topic of the first one.

        Raises `SinkAway`, or `SinkBroken` for what is not taken.
        """
        producer = self.producer
        self._failed.clear()
        topic = ""
        for batch in batches:
            topic = topic or batch["topic"][0].as_py()
            self._produce(producer, batch)
        self._drain(producer, 0)
        return topic

    def close(self) -> None:
        """Let go of the connections."""
        self._drop()

    @property
    def producer(self) -> Producer:
        """The producer that was begun."""
        if self._producer is None:
            raise RuntimeError("begin first")
        return self._producer

    def waiting(self, call: Callable[..., object], *given: object) -> None:
        """Call what waits for the brokers; raises what its failure means to the task."""
        self._calling(call_within, _PATIENCE_S, call, *given)

    def _drop(self) -> None:
        producer, self._producer = self._producer, None
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
            who = self._own.get("transactional.id", "this task")
            return SinkAway(f"another process publishes as {who}: {error.str()}")
        return self._trouble.reason(error, self._settings[SERVERS], SinkAway)
