"""Kafka's file connectors through the deaths of all that they run in, beside a steady writer.

A reader of committed records finds each line in the topic once. The sink's file has each line, and
some twice only where something was killed, frozen or away: its offsets are Connect's own.
"""

import os
import random
import time
from pathlib import Path

import pytest

from fairlead.runtime.pipeline.tasks.reports import SPLITS_AGAIN
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.bad_tasks import SOURCE
from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, connect_node
from fairlead_tests.plugins.faults import Faults, Pair
from fairlead_tests.plugins.installed import CONNECT_FILE, installation, plugin_path

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]

SEED = 32
FEW = ("kill host", "kill worker", "freeze", "drain", "scale", "restart", "kill broker")
"""A node that is killed takes half a minute: that is a soak's."""
ALL = (*FEW, "kill node")
HANDOVERS = int(os.environ.get("CHAOS_HANDOVERS", "20"))


def _verify(pair: Pair, topics: Topics) -> None:
    pair.stop()
    assert topics.values(pair.topic) == pair.lines, "each line is in the topic once"
    assert [*dict.fromkeys(pair.written())] == pair.lines, "no line is missing in the sink's file"


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_each_line_is_in_the_topic_once_whatever_dies(
    node: ConnectNode, broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    pair = Pair(node, tmp_path, "deaths")
    with pair.running():
        faults = Faults(pair, broker, SEED)
        for event in random.Random(SEED).sample(FEW, len(FEW)):
            faults.inject(event)
        _verify(pair, topics)


@pytest.mark.soak  # each run fences without Kafka: plugins/test_bodies.py
def test_more_tasks_begin_once_the_former_ones_are_fenced(
    node: ConnectNode, tmp_path: Path
) -> None:
    config = {"connector.class": SOURCE, "topic": "splits", "while": str(tmp_path / "never")}
    node.create("splits", {**config, **ONE_REPLICA, "tasks.max": "2"}, 2)
    node.create("splits", {**config, **ONE_REPLICA, "tasks.max": "3"}, 3)
    events = node.rest.get("/groups/connect/events", params={"connector": "splits"}).text
    assert events.count(SPLITS_AGAIN) == 1, "the first tasks have no former ones"
    hosts = "".join(each.read_text() for each in (node.data_dir / "logs").glob("plugin-host-*"))
    assert "connector-worker-adminclient-splits" in hosts, "Kafka has fenced them"
    node.delete("splits")


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_the_same_until_the_tasks_were_handed_over_often_enough(
    broker: Broker, topics: Topics, tmp_path: Path
) -> None:
    installation()
    seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 32)))
    seconds = float(os.environ.get("CHAOS_SECONDS", "600")) / 4
    plugins = plugin_path(tmp_path / "plugins", CONNECT_FILE)
    settings = {"exactly.once.source.support": "enabled", "scheduled.rebalance.max.delay.ms": 0}
    with connect_node(tmp_path / "node", broker.bootstrap, plugins, settings) as node:
        pair = Pair(node, tmp_path, "soak")
        with pair.running():
            faults, dice = Faults(pair, broker, seed), random.Random(seed)
            print(f"seed {seed}")
            by = time.monotonic() + seconds
            while time.monotonic() < by or faults.handovers < HANDOVERS:
                faults.inject(dice.choice(ALL))
            _verify(pair, topics)
