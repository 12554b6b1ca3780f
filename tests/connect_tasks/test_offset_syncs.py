"""MirrorSource writes which offsets belong together, though fairlead's sink writes its records."""
# pyright: basic

from functools import partial
from typing import Any

import pytest

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ConnectNode, until
from fairlead_tests.plugins.mirror import mirroring

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]

SYNCS = "mm2-offset-syncs.here.internal"


def syncs(topics: Topics, topic: str) -> list[tuple[int, int, int]]:
    """Return partition, offset in the source and offset in the copy, of each sync of a topic."""
    if SYNCS not in topics.admin.list_topics(timeout=60).topics:
        return []
    found = []
    for each in topics.read(SYNCS):
        key, value = each.key(), each.value()
        size = int.from_bytes(key[:2])
        if key[2 : 2 + size].decode() == topic:
            offsets = int.from_bytes(value[:8]), int.from_bytes(value[8:16])
            found.append((int.from_bytes(key[2 + size :]), *offsets))
    return found


def values_of(topics: Topics, topic: str) -> dict[tuple[int, int], Any]:
    """Return each value by partition and offset; none if there is no topic."""
    if topic not in topics.admin.list_topics(timeout=60).topics:
        return {}
    return {(each.partition(), each.offset()): each.value() for each in topics.read(topic)}


def test_offset_syncs_lead_from_each_record_to_its_copy(
    node: ConnectNode, broker: Broker, topics: Topics
) -> None:
    topics.make("gulfs", partitions=2, cleanup_policy="delete")
    more = {
        "emit.offset-syncs.enabled": "true",
        "offset-syncs.topic.replication.factor": "1",
        "offset.lag.max": "0",
        "sink.type": "kafka",
        "sink.bootstrap.servers": broker.bootstrap,
    }
    node.create("syncing", mirroring(topics.bootstrap, "gulfs", **more), tasks=2)

    def are_copied(count: int) -> bool:
        return len(values_of(topics, "there.gulfs")) == count

    for turn in range(3):  # each is a transaction of its own there, whose end takes an offset
        for partition in range(2):
            values = [f"{turn}-{partition}-{each}" for each in range(10)]
            topics.write("gulfs", values, partition=partition)
        until(partial(are_copied, 20 * (turn + 1)), "they are copied")
    until(lambda: len(syncs(topics, "gulfs")) >= 6, "syncs are written")
    source, copy = values_of(topics, "gulfs"), values_of(topics, "there.gulfs")
    found = syncs(topics, "gulfs")
    assert all(source[at, up] == copy[at, down] for at, up, down in found), found
    assert any(up != down for _, up, down in found), found
    node.delete("syncing")
