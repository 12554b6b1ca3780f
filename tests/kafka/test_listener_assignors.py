"""A consumer names a server assignor of users', which the node has installed."""
# pyright: basic

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients.connect import until
from fairlead_tests.kafka_listener.live import PARTITIONS, served
from fairlead_tests.local_assignors.packages import install

SOURCE = """
class First:
    def __init__(self, conf):
        pass
    def assign(self, group):
        first = min(group.members, key=lambda each: group.members[each].instance_id or "")
        return Assignment({first: group.configured})
"""


@pytest.mark.soak  # each run: shards/test_user_assignors.py, and a node's in cluster
def test_the_partitions_go_where_the_assignor_that_the_consumers_name_says(
    broker: Broker, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, topic = tmp_path / "site", topics.make("listener.assignors", PARTITIONS)
    install(site, SOURCE, "first = shop_rules:First", group="fairlead.server_assignors")
    monkeypatch.setenv("PYTHONPATH", str(site))
    with served(tmp_path, broker) as node:
        config = {
            "bootstrap.servers": node.bootstrap,
            "group.id": "assigned",
            "group.protocol": "consumer",
            "group.remote.assignor": "first",
        }
        members: list[Any] = [
            Consumer({**config, "group.instance.id": name}) for name in ("b", "a")
        ]
        try:
            for each in members:
                each.subscribe([topic])

            def shares() -> list[int]:
                for each in members:
                    each.poll(0.05)
                return [len(each.assignment()) for each in members]

            until(lambda: shares() == [0, PARTITIONS], "the first has all")
            assert node.group("assigned").target.assignor == "first"
        finally:
            for each in members:
                each.close()
