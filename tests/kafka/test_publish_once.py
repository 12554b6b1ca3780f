# pyright: basic
"""A batch that counts is in its topic once, wherever its owner died and whoever goes on."""

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors.kafka.sink.publishing import Publisher
from fairlead.runtime.pipeline.spi.errors import SinkAway
from fairlead.runtime.pipeline.spi.sink import Sink
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.pipes import FIRST, PATIENCE_S, SECOND, SinkLog, sink_config, sink_of
from fairlead_tests.kafka.topics import Topics

POINTS = ("before it is staged", "staged", "committed", "while it is published", "not yet told")


class Died(Exception):  # noqa: N818  # what is the case
    """An owner was stopped at its point."""


class Owner:
    """A task's owner that writes two batches, and stops at a point of the second for good.

    `wake` has it go on, as a process does that was stopped and is continued.
    """

    def __init__(self, config: dict[str, str], log: SinkLog, point: str) -> None:
        self.sink = sink_of(config, log.task)
        self._log = log
        self._point = point
        self.stopped, self._go_on = threading.Event(), threading.Event()
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.stopped.wait(PATIENCE_S), self.error

    def wake(self) -> None:
        self._go_on.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001
            self.error = error

    def _work(self) -> None:
        log, sink = self._log, self.sink
        log.acquire(sink, FIRST)
        log.write(sink, pa.table({"n": [1, 2]}))
        self._pause(0)
        staged = log.stage(sink, pa.table({"n": [3, 4]}))
        self._pause(1)
        if log.token != FIRST:
            raise Died  # the log does not take it: the token is not current
        log.count(staged)
        self._pause(2)
        if self._point == POINTS[3]:
            self._halve(sink)
        commit_id, manifest = staged
        sink.publish(manifest, commit_id, 1)
        self._pause(4)
        if log.waiting:
            log.told()

    def _pause(self, point: int) -> None:
        if self._point == POINTS[point]:
            self.stopped.set()
            assert self._go_on.wait(PATIENCE_S)

    def _halve(self, sink: Any) -> None:
        """Have it stop inside its transaction, with the records sent."""
        publisher = sink._publisher
        drain = publisher._drain

        def stopping(*given: Any) -> None:
            drain(*given)
            self._pause(3)

        publisher._drain = stopping


@pytest.fixture
def log(topic: str) -> SinkLog:
    return SinkLog(Resource(topic, 0))


@pytest.fixture
def config(topics: Topics, topic: str, tmp_path: Path) -> dict[str, str]:
    return sink_config(topics.bootstrap, tmp_path / "staging", topic=topic)


def succeed(config: dict[str, str], log: SinkLog) -> Sink[Any]:
    """Take the task over: finish what counts, read again what does not, and go on."""
    sink = sink_of(config, log.task)
    was_counted = log.last is not None and log.last.batch == 1
    log.acquire(sink, SECOND)
    if not was_counted:
        log.write(sink, pa.table({"n": [3, 4]}))
    log.write(sink, pa.table({"n": [5]}))
    return sink


def files_in(folder: Path) -> list[str]:
    return [each.name for each in folder.rglob("*.arrow")]


ONCE = [f'{{"n":{n}}}' for n in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize("wakes", [False, True], ids=["lost", "zombie"])
@pytest.mark.parametrize("point", POINTS)
def test_a_successor_finishes_what_counts_and_no_more(
    config: dict[str, str], topics: Topics, topic: str, log: SinkLog, point: str, wakes: bool
) -> None:
    owner = Owner(config, log, point)
    successor = succeed(config, log)
    if wakes:
        owner.wake()
        woken: list[type] = [Died, Died, type(None), SinkAway, type(None)]
        expected = woken[POINTS.index(point)]
        assert isinstance(owner.error, expected), owner.error
        successor.sweep(log.task, SECOND)
        log.write(successor, pa.table({"n": [6]}))
    more = ['{"n":6}'] if wakes else []
    assert topics.values(topic) == [*ONCE, *more]
    assert files_in(Path(config["sink.staging.path"])) == []
    owner.wake()
    owner.sink.close()
    successor.close()


def test_without_its_mark_a_batch_comes_twice(
    config: dict[str, str],
    topics: Topics,
    topic: str,
    log: SinkLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Publisher, "mark", lambda _: None)
    monkeypatch.setattr("pathlib.Path.unlink", lambda *_: None)  # nor by its file's being gone
    owner = Owner(config, log, POINTS[4])
    successor = succeed(config, log)
    assert topics.values(topic) == [*ONCE[:4], *ONCE[2:]]
    owner.wake()
    owner.sink.close()
    successor.close()


def test_a_broker_that_dies_while_a_batch_is_published_has_it_once(
    broker: Broker, config: dict[str, str], topics: Topics, topic: str, log: SinkLog
) -> None:
    owner = Owner(config, log, POINTS[3])
    broker.kill()
    owner.wake()
    assert isinstance(owner.error, SinkAway), owner.error
    owner.sink.close()
    broker.up()
    succeed(config, log).close()
    assert topics.values(topic) == ONCE


def test_two_that_publish_at_once_have_it_once(
    config: dict[str, str], topics: Topics, topic: str, log: SinkLog
) -> None:
    sink = sink_of(config, log.task)
    log.acquire(sink, FIRST)
    staged = log.stage(sink, pa.table({"n": [*range(2000)]}))
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
