# pyright: basic
"""A broker that hangs keeps its connections and answers nobody: it is waited for as if away."""

import time
from itertools import count
from pathlib import Path

import pytest

from fairlead.events.model import Resource, RunState, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.spi.errors import SourceAway
from fairlead.runtime.pipeline.spi.offsets import SeekEnd
from fairlead.runtime.pipeline.stores.kafka.cluster import KafkaCluster, TopicPlace
from fairlead.runtime.pipeline.stores.kafka.source import source
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.pipes import Reading, sink_config, source_config, until
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import LocalEngine, Reports

HANGS_S = 20.0
"""Longer than any limit that a call has."""


def test_a_source_that_hears_nothing_asks_whether_the_broker_answers_at_all(
    broker: Broker, topics: Topics, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_LOOK_S", 0.0)
    topics.write(topic, ["a"])
    reading = Reading(source_config(broker.bootstrap, topics=topic))
    reading.read(1)
    assert reading.looks_in_vain(3)
    with broker.hanging(), pytest.raises(SourceAway, match="imed out"):
        reading.looks_in_vain(3)  # what was answered before may still be on its way
    reading.again()
    topics.write(topic, ["b"])
    assert reading.read(1)["_value"].to_pylist() == ["b"]
    reading.source.close()


@pytest.mark.soak  # each run kills a broker under all pairs: tests/chaos/test_matrix.py
def test_a_client_that_outlives_a_leader_asks_the_next_one(
    broker: Broker, topics: Topics, topic: str
) -> None:
    topics.write(topic, ["a"])
    cluster = KafkaCluster({"bootstrap.servers": broker.bootstrap, "log_level": 0}, SourceAway)
    place = TopicPlace(topic, 0)
    assert cluster.offsets([place], SeekEnd.LATEST) == {place: 1}
    broker.kill()
    broker.up()

    def latest() -> object:
        try:
            return cluster.offsets([place], SeekEnd.LATEST)
        except SourceAway as away:  # it need not have heard yet that the broker is back
            told.append(str(away))
            return None

    told: list[str] = []
    assert until(latest, bool) == {place: 1}
    assert not [each for each in told if "epoch" in each]


@pytest.mark.soak
def test_a_broker_that_hangs_under_both_ends_gets_each_row_once_when_it_goes_on(
    broker: Broker, topics: Topics, topic: str, tmp_path: Path
) -> None:
    out, numbers = topics.make(f"{topic}.out"), count()
    config = source_config(broker.bootstrap, topics=topic, value_converter="string")
    ends = sink_config(broker.bootstrap, tmp_path / "staging", topic=out, value_converter="string")
    config = {**ends, **config, "sink.value.column": "_value", "batch.max.rows": "200"}
    config |= {key: each for key, each in ends.items() if key.startswith("sink.")}
    reports, ledger, token = Reports(), MemoryLedger(), Token(1, 0)
    runner = Runner(LocalEngine(), ledger, find_plugins(), reports)

    def write() -> None:
        topics.write(topic, [str(next(numbers)) for _ in range(5_000)])

    write()
    runner.start(Launch(Resource("k"), token, config, config))
    made = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
    assert isinstance(made, TaskConfigsChanged)
    runner.start(Launch(Resource("k", 0), token, config, made.configs[0]))
    reports.wait_batches(3)
    with broker.hanging():
        since = time.monotonic()
        waits = reports.wait_status("waiting for the s")
        assert waits.state is RunState.RUNNING
        print(f"told after {time.monotonic() - since:.1f} s: {waits.reason}")
        time.sleep(HANGS_S)
    write()
    wanted = [*range(10_000)]
    until(lambda: len(topics.values(out)), lambda rows: rows >= len(wanted))
    assert runner.close(60) == frozenset()
    assert sorted(map(int, topics.values(out))) == wanted
    assert ledger.to_publish == []
