"""A consumer of confluent-kafka, which prints events line by line.

`python -m fairlead_tests.kafka_clients.confluent_reader CONFIG TOPIC`, the first as JSON. It ends,
and leaves, when its input does.
"""
# pyright: basic

import json
import sys
from typing import Any

from confluent_kafka import Consumer

from fairlead_tests.kafka_clients.telling import (
    POLL_SECONDS,
    has_to_leave,
    numbers,
    tell,
    tell_start,
)


def committed(error: Any, partitions: list[Any]) -> None:
    """Print committed offsets."""
    done = {str(each.partition): each.offset for each in partitions if each.error is None}
    if error is None and done:
        tell("committed", offsets=done)


def main(config: dict[str, Any], topic: str) -> None:
    """Read until the input ends."""
    tell_start()
    consumer: Any = Consumer({**config, "on_commit": committed})
    consumer.subscribe(
        [topic],
        on_assign=lambda _, given: tell("given", partitions=numbers(given)),
        on_revoke=lambda _, taken: tell("taken", partitions=numbers(taken)),
        on_lost=lambda _, lost: tell("taken", partitions=numbers(lost)),
    )
    while not has_to_leave():
        message = consumer.poll(POLL_SECONDS)
        if message is not None and not message.error():
            tell("read", partition=message.partition(), offset=message.offset())
    consumer.close()
    tell("left")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
