"""A consumer of aiokafka: `python -m fairlead_tests.kafka_clients.aiokafka_reader CONFIG TOPIC`."""
# pyright: basic

import asyncio
import json
import sys
import time
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import KafkaError

from fairlead_tests.kafka_clients.telling import (
    POLL_SECONDS,
    has_to_leave,
    numbers,
    tell,
    tell_start,
)

COMMIT_SECONDS = 0.2


class Telling(ConsumerRebalanceListener):
    """Prints assigned and revoked partitions."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Print assigned partitions."""
        tell("given", partitions=numbers(assigned))

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Print revoked partitions."""
        tell("taken", partitions=numbers(revoked))


async def commit(consumer: Any) -> None:
    """Commit the read offsets; aiokafka also commits itself, but without an event."""
    places = {each: await consumer.position(each) for each in consumer.assignment()}
    if places:
        await consumer.commit(places)
        tell("committed", offsets={str(each.partition): at for each, at in places.items()})


async def main(config: dict[str, Any], topic: str) -> None:
    """Read until the input ends."""
    tell_start()
    consumer: Any = AIOKafkaConsumer(**config, enable_auto_commit=False)
    await consumer.start()
    consumer.subscribe([topic], listener=Telling())
    next_commit = 0.0
    while not has_to_leave():
        for records in (await consumer.getmany(timeout_ms=round(POLL_SECONDS * 1_000))).values():
            for each in records:
                tell("read", partition=each.partition, offset=each.offset)
        if time.monotonic() > next_commit:
            try:
                await commit(consumer)
            except KafkaError as error:  # a round has begun, or the coordinator is away
                tell("failed", error=repr(error))
            next_commit = time.monotonic() + COMMIT_SECONDS
    tell("taken", partitions=numbers(consumer.assignment()))  # it says nothing when it leaves
    await consumer.stop()
    tell("left")


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1]), sys.argv[2]))
