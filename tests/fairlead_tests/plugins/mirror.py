"""Kafka's own source of topics: its plugin, its config, and what it has copied."""
# pyright: basic

import shutil
from pathlib import Path
from typing import Any

from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.installed import fetched

_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"


def write_mirror_plugin(folder: Path) -> None:
    """Write a folder with its jars, but for those that Connect has itself."""
    folder.mkdir(parents=True)
    names = ("connect-mirror", "connect-mirror-client")
    for jar in fetched(*(f"org.apache.kafka:{each}:4.3.0" for each in names)):
        shutil.copy(jar, folder)


def mirroring(bootstrap: str, topic: str, **more: str) -> dict[str, str]:
    """Return the config of a source of one topic, whose copy is `there.<topic>`, without its sink.

    It needs to be told where its target is: it creates the copy itself, with as many partitions.
    """
    return {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "there",
        "target.cluster.alias": "here",
        "source.cluster.bootstrap.servers": bootstrap,
        "target.cluster.bootstrap.servers": bootstrap,
        "topics": topic,
        "tasks.max": "2",
        "replication.factor": "1",
        "emit.offset-syncs.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "refresh.topics.interval.seconds": "1",
        "consumer.isolation.level": "read_committed",
        "consumer.poll.timeout.ms": "100",
        "exactly.once.support": "required",
        "key.converter": _BYTES,
        "value.converter": _BYTES,
        "header.converter": _BYTES,
        **more,
    }


def copied(topics: Topics, topic: str) -> list[tuple[Any, ...]]:
    """Return all that records have, in the order of each partition; none if there is no topic."""
    if topic not in topics.admin.list_topics(timeout=60).topics:
        return []
    found = [
        (each.partition(), each.key(), each.value(), each.headers(), each.timestamp())
        for each in topics.read(topic)
    ]
    return sorted(found, key=lambda each: each[0])
