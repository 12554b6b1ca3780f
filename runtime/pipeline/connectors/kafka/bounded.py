"""Limits of our own for calls of librdkafka that have none, or may pass theirs.

To begin a transaction waits for the client's main thread, and to end a client for all its threads;
while a broker is away neither need come back (librdkafka's issue 4420, confluent-kafka-python's
1667). Such a call is left behind with its client: it holds no lock of ours, and whoever begins
anew under the same name shuts the old one out.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from .cluster import LATE


def call_within(seconds: float, call: Callable[..., object], *given: object) -> None:
    """Call; raises what it raises, or `KafkaException` if it has not come back in that time."""
    done = Future[None]()
    _start(_told_to(done, call), *given)
    try:
        done.result(seconds)
    except TimeoutError:
        raise KafkaException(KafkaError(LATE)) from None


def let_go(end: Callable[..., object]) -> None:
    """Have a client end by itself, however long that takes: nobody waits for it."""
    _start(_told_to(Future(), end))


def _start(work: Callable[..., None], *given: object) -> None:
    Thread(target=work, args=given, name="kafka-call", daemon=True).start()


def _told_to(done: "Future[None]", call: Callable[..., object]) -> Callable[..., None]:
    def work(*given: Any) -> None:  # noqa: ANN401  # whatever the call takes
        try:
            call(*given)
        except BaseException as error:  # noqa: BLE001  # it is raised where it is waited for
            done.set_exception(error)
        else:
            done.set_result(None)

    return work
