"""MirrorSource writes which offsets belong together, though fairlead's sink writes its records."""
# pyright: basic

from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ConnectNode, until
from fairlead_tests.plugins.mirror import mirroring

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]

GROUP = "sailors"
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


def commit(topics: Topics, place: TopicPartition) -> None:
    """Have a group read up to a place."""
    consumer = Consumer({"bootstrap.servers": topics.bootstrap, "group.id": GROUP})
    consumer.commit(offsets=[place], asynchronous=False)
    consumer.close()


def committed(topics: Topics, topic: str) -> int:
    """Return how far the group has read the first partition of a topic."""
    consumer = Consumer({"bootstrap.servers": topics.bootstrap, "group.id": GROUP})
    (found,) = consumer.committed([TopicPartition(topic, 0)], 60)
    consumer.close()
    return int(found.offset)


def test_offset_syncs_lead_from_each_record_to_its_copy_and_move_groups(
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
    commit(topics, TopicPartition("gulfs", 0, 30))
    checkpointing = {
        **mirroring(topics.bootstrap, "gulfs"),
        "connector.class": "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
        "tasks.max": "1",
        "groups": GROUP,
        "emit.offset-syncs.enabled": "true",
        "checkpoints.topic.replication.factor": "1",
        "emit.checkpoints.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
    }
    del checkpointing["exactly.once.support"]  # it promises nothing
    node.create("moving", checkpointing)  # as in Connect
    until(lambda: committed(topics, "there.gulfs") > 0, "the group is moved")
    moved = committed(topics, "there.gulfs")
    copied = {at for partition, at in copy if partition == 0}
    assert copied == {at for at in copied if at < moved}, "it has read all of the copy as well"
    node.delete("syncing", "moving")
