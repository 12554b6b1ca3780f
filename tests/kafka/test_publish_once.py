# pyright: basic
"""A batch that counts is in its topic once, wherever its owner died and whoever goes on."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.spi.errors import SinkAway
from fairlead.runtime.pipeline.spi.sink import Sink
from fairlead.runtime.pipeline.stores.kafka.sink.marks import MarkGroup
from fairlead.runtime.pipeline.stores.kafka.sink.publishing import Publisher
from fairlead_tests.connectors.pipes import sink_of
from fairlead_tests.connectors.publish_once import (
    FIRST,
    HALF,
    POINTS,
    SECOND,
    Died,
    Owner,
    SinkLog,
    numbers,
    succeed,
)
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.pipes import sink_config
from fairlead_tests.kafka.topics import Topics


def halve(sink: Any, pause: Callable[[], None]) -> None:
    """Have a sink pause inside its transaction, with the records sent."""
    publisher = sink._publisher
    drain = publisher._drain

    def pausing(*given: Any) -> None:
        drain(*given)
        pause()

    publisher._drain = pausing


@pytest.fixture
def log(topic: str) -> SinkLog:
    return SinkLog(Resource(topic, 0))


@pytest.fixture
def config(topics: Topics, topic: str, tmp_path: Path) -> dict[str, str]:
    return sink_config(topics.bootstrap, tmp_path / "staging", topic=topic)


def owner_of(config: dict[str, str], log: SinkLog, point: str) -> Owner:
    return Owner(sink_of(config, log.task), log, point, halve)


def files_in(folder: Path) -> list[str]:
    return [each.name for each in folder.rglob("*.arrow")]


ONCE = [f'{{"n":{n}}}' for n in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize("point", POINTS)
def test_a_successor_finishes_what_counts_and_no_more_whether_or_not_the_owner_wakes(
    config: dict[str, str], topics: Topics, topic: str, log: SinkLog, point: str
) -> None:
    owner = owner_of(config, log, point)
    successor = succeed(sink_of(config, log.task), log)
    staging = Path(config["sink.staging.path"])
    assert (topics.values(topic), files_in(staging)) == (ONCE, [])
    owner.wake()
    woken: list[type] = [Died, Died, type(None), SinkAway, type(None)]
    expected = woken[POINTS.index(point)]
    assert isinstance(owner.error, expected), owner.error
    successor.sweep(log.task, SECOND)
    log.write(successor, numbers(6))
    assert (topics.values(topic), files_in(staging)) == ([*ONCE, '{"n":6}'], [])
    owner.end()
    successor.close()


def test_a_batch_that_an_earlier_release_staged_is_published(
    config: dict[str, str], topics: Topics, topic: str, log: SinkLog
) -> None:
    sink = sink_of(config, log.task)
    log.acquire(sink, FIRST)
    log.count(log.stage(sink, numbers(1)))
    (file,) = Path(config["sink.staging.path"]).rglob("*.arrow")
    records = pa.ipc.open_file(file).read_all()
    assert records.column_names[-1] == "partition"
    former = records.drop_columns(["partition"])
    with pa.ipc.new_file(str(file), former.schema) as writer:
        writer.write_table(former)
    log.publish(sink)
    sink.close()
    assert topics.values(topic) == ONCE[:1]


def test_without_its_mark_a_batch_comes_twice(
    config: dict[str, str],
    topics: Topics,
    topic: str,
    log: SinkLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Publisher, "mark", lambda _: None)
    monkeypatch.setattr("pathlib.Path.unlink", lambda *_: None)  # nor by its file's being gone
    owner = owner_of(config, log, POINTS[4])
    successor = succeed(sink_of(config, log.task), log)
    assert topics.values(topic) == [*ONCE[:4], *ONCE[2:]]
    owner.end()
    successor.close()


def test_a_task_that_goes_on_asks_for_no_mark_but_its_own(
    config: dict[str, str],
    topics: Topics,
    topic: str,
    log: SinkLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, ask = [], MarkGroup.last

    def last(group: MarkGroup) -> Any:
        asked.append(group)
        return ask(group)

    monkeypatch.setattr(MarkGroup, "last", last)
    first, second = (sink_of(config, log.task) for _ in range(2))
    log.acquire(first, FIRST)
    for n in (1, 2, 3):
        log.write(first, numbers(n))
    assert len(asked) == 2  # before it shut others out, and after
    commit_id, manifest = log.stage(first, numbers(4))
    monkeypatch.setattr("pathlib.Path.unlink", lambda *_: None)  # or the file would be missed
    second.publish(manifest, commit_id, 4)
    with pytest.raises(SinkAway, match="another process publishes"):
        first.publish(manifest, commit_id, 4)
    first.publish(manifest, commit_id, 4)
    assert topics.values(topic) == ONCE[:4]
    for each in (first, second):
        each.close()


@pytest.mark.soak  # each run kills a broker under all pairs: tests/chaos/test_matrix.py
def test_a_broker_that_dies_while_a_batch_is_published_has_it_once(
    broker: Broker, config: dict[str, str], topics: Topics, topic: str, log: SinkLog
) -> None:
    owner = owner_of(config, log, HALF)
    broker.kill()
    owner.end()
    assert isinstance(owner.error, SinkAway), owner.error
    broker.up()
    succeed(sink_of(config, log.task), log).close()
    assert topics.values(topic) == ONCE


def test_two_that_publish_at_once_have_it_once(
    config: dict[str, str], topics: Topics, topic: str, log: SinkLog
) -> None:
    sink = sink_of(config, log.task)
    log.acquire(sink, FIRST)
    staged = log.stage(sink, numbers(*range(2000)))
    commit_id, manifest = staged

    def publish(sink: Sink[Any]) -> None:
        for _ in range(20):
            try:
                return sink.publish(manifest, commit_id, 1)
            except SinkAway:
                continue
        raise AssertionError

    others = [sink_of(config, log.task) for _ in range(2)]
    threads = [threading.Thread(target=publish, args=(each,)) for each in (sink, *others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(topics.values(topic)) == 2000
    for each in (sink, *others):
        each.close()
