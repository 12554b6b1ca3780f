"""Timeouts for calls of librdkafka that have none, or may exceed theirs.

Beginning a transaction waits for the client's main thread, and closing a client for all its
threads. While a broker is unreachable, neither may return (librdkafka issue 4420,
confluent-kafka-python issue 1667). Such a call is abandoned with its client: it holds no lock of
this process, and the next producer with the same transactional id fences the old one.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from .cluster import LATE


def call_within(seconds: float, call: Callable[..., object], *given: object) -> None:
    """Call in a thread; raises `KafkaException` if the call takes longer, else as the call does."""
    done = Future[None]()
    _start(_reporting_to(done, call), *given)
    try:
        done.result(seconds)
    except TimeoutError:
        raise KafkaException(KafkaError(LATE)) from None


def end_in_background(end: Callable[..., object]) -> None:
    """Close a client in a thread, without waiting for it."""
    _start(_reporting_to(Future(), end))


def _start(work: Callable[..., None], *given: object) -> None:
    Thread(target=work, args=given, name="kafka-call", daemon=True).start()


def _reporting_to(done: "Future[None]", call: Callable[..., object]) -> Callable[..., None]:
    def work(*given: Any) -> None:  # noqa: ANN401  # the arguments of the call
        try:
            call(*given)
        except BaseException as error:  # noqa: BLE001  # raised by `done.result()`
            done.set_exception(error)
        else:
            done.set_result(None)

    return work
