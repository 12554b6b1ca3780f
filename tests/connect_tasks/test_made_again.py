# pyright: basic
"""A connector that is deleted and made again, beside a worker that still runs the former one."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.bad_tasks import SOURCE
from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]


def _end(topics: Topics, topic: str) -> int:
    asked: Any = topics.admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.latest()})
    (found,) = asked.values()
    return int(found.result().offset)


def _is_taken(node: ConnectNode, name: str, config: dict[str, str]) -> bool:
    answer = node.rest.put(f"/connectors/{name}/config", json=config)
    assert answer.is_success or "is being deleted" in answer.text, answer.text
    return answer.is_success


@pytest.mark.soak  # each run fences former tasks, without Kafka: plugins/test_bodies.py
def test_tasks_of_the_former_one_write_nothing_once_the_new_one_runs(
    node: ConnectNode, topics: Topics, tmp_path: Path
) -> None:
    name, old, new = "made-again", topics.make("former-rows"), topics.make("new-rows")
    config = {"connector.class": SOURCE, "while": str(tmp_path / "never"), **ONE_REPLICA}
    node.create(name, {**config, "topic": old, "tasks.max": "2"}, 2)
    last = node.status(name)["tasks"][1]["worker_id"].rpartition("/")[2]
    frozen = node.worker(last)
    frozen.suspend()  # its host goes on, and nobody ends it
    try:
        node.delete(name)
        before = _end(topics, old)
        until(lambda: _end(topics, old) > before, "its host writes although it is deleted")
        made = {**config, "topic": new}
        until(lambda: _is_taken(node, name, made), "the worker's session is over")
        node.runs(name)
        until(lambda: _end(topics, new) > 0, "the new one writes")
        written = _end(topics, old)
    finally:
        with suppress(psutil.NoSuchProcess):
            frozen.resume()
    until(lambda: not frozen.is_running(), "the worker ends itself")
    until(lambda: len(node.processes("fairlead: worker ")) > 1, "another one is started")
    node.runs(name)
    count = _end(topics, new)
    until(lambda: _end(topics, new) > count, "the new one goes on")
    assert _end(topics, old) == written
    node.delete(name)
    rows = topics.values(new)
    assert rows == [str(each) for each in range(1, len(rows) + 1)]
