"""A consumer in a process of its own, which tells line by line what becomes of it.

`python -m fairlead_tests.kafka_listener.reader CONFIG TOPIC`, the first as JSON. It ends, and
leaves, when its input does.
"""
# pyright: basic

import json
import select
import sys
import time
from typing import Any

from confluent_kafka import Consumer

POLL_SECONDS = 0.02


def tell(what: str, **told: Any) -> None:
    """Write one event, with the time by the clock that all processes have in common."""
    print(json.dumps({"what": what, "at": time.monotonic(), **told}), flush=True)


def numbers(partitions: list[Any]) -> list[int]:
    """Return the numbers of partitions."""
    return [each.partition for each in partitions]


def committed(error: Any, partitions: list[Any]) -> None:
    """Tell what was acknowledged."""
    done = {str(each.partition): each.offset for each in partitions if each.error is None}
    if error is None and done:
        tell("committed", offsets=done)


def main(config: dict[str, Any], topic: str) -> None:
    """Read until the input ends."""
    consumer: Any = Consumer({**config, "on_commit": committed})
    consumer.subscribe(
        [topic],
        on_assign=lambda _, given: tell("given", partitions=numbers(given)),
        on_revoke=lambda _, taken: tell("taken", partitions=numbers(taken)),
        on_lost=lambda _, lost: tell("taken", partitions=numbers(lost)),
    )
    while not select.select([sys.stdin], [], [], 0)[0]:
        message = consumer.poll(POLL_SECONDS)
        if message is not None and not message.error():
            tell("read", partition=message.partition(), offset=message.offset())
    consumer.close()
    tell("left")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
