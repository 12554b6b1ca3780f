"""Clients of all kinds in one group, which is converted under them, over every crash."""
# pyright: basic

from dataclasses import replace
from pathlib import Path

import pytest

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients import clients
from fairlead_tests.kafka_listener.live import PARTITIONS, Admin, Writer, reading, served

# Each run has a conversion and a stock worker: test_listener.py, test_listener_connect.py.
pytestmark = [pytest.mark.usefixtures("jars"), pytest.mark.soak]

JAVA_ROUND_ROBIN = replace(
    clients.JAVA,
    config={
        **clients.JAVA.config,
        "--assignment-strategy": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    },
)
"""All others offer it as well."""


def test_clients_of_all_kinds_share_one_group_over_crashes_and_a_conversion(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.make("listener.mixed", PARTITIONS)
    with served(tmp_path, broker) as node, reading(node, topic, tmp_path) as readers:
        writer, admin = Writer(node, topic), Admin(node)
        for client in (clients.AIOKAFKA, clients.KAFKA_PYTHON, JAVA_ROUND_ROBIN):
            readers.add(client)
        writer.writes()
        readers.until(readers.share(*readers.all), "three kinds share the partitions")
        aio, pure, java = readers.all
        with readers.joining(clients.JAVA_MODERN, aio) as modern:
            readers.until(lambda: admin.described()[1] == 4, "one more joins, and waits")
            for process in ("fairlead: shard", "fairlead: kafka"):
                node.kill(process)
        writer.writes()
        readers.until(readers.share(*readers.all), "four share the partitions")
        for each in (aio, pure, java):
            each.leave()
            writer.writes()
        readers.until(readers.share(modern), "the last has all")
        readers.until(lambda: readers.read() >= writer.written, "all is read")
        total = len(writer.written)
        readers.until(lambda: sum(admin.committed().values()) == total, "all is committed")
        assert readers.twice_owned() == []
