"""A consumer of kafka-python: `python -m fairlead_tests.kafka_clients.kafka_python_reader …`."""
# pyright: basic

import json
import sys
from typing import Any

from kafka.consumer.group import KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import KafkaConnectionError

from fairlead_tests.kafka_clients.telling import has_to_leave, numbers, tell, tell_start

POLL_MS = 250
"""With a shorter timeout it may miss its SyncGroup response, and never send heartbeats again."""
COOPERATIVE = {"partition_assignment_strategy": [CooperativeStickyAssignor]}


class Telling(ConsumerRebalanceListener):
    """Prints assigned and revoked partitions."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Print assigned partitions."""
        tell("given", partitions=numbers(assigned))

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Print revoked partitions."""
        tell("taken", partitions=numbers(revoked))


def committed(offsets: Any, answer: Any) -> None:
    """Print committed offsets."""
    if not isinstance(answer, Exception):
        done = {str(each.partition): told.offset for each, told in offsets.items()}
        tell("committed", offsets=done)


def main(config: dict[str, Any], topic: str) -> None:
    """Read until the input ends."""
    tell_start()
    if config.pop("is_cooperative", False):
        config |= COOPERATIVE
    consumer: Any = KafkaConsumer(**config, default_offset_commit_callback=committed)
    consumer.subscribe([topic], listener=Telling())
    while not has_to_leave():
        try:
            polled = consumer.poll(POLL_MS)
        except KafkaConnectionError as error:  # it says so where no node at all takes connections
            tell("failed", error=repr(error))
            continue
        for records in polled.values():
            for each in records:
                tell("read", partition=each.partition, offset=each.offset)
    consumer.close()
    tell("left")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2])
