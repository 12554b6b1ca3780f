"""The thread that asks plugin hosts for their metrics, with hosts that a test scripts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from fairlead.events.log.process import ProcessId
from fairlead.events.model import Resource
from fairlead.runtime.cluster.node_files import (
    PluginsFile,
    plugins_file,
    read_plugins,
    write_plugins,
)
from fairlead.runtime.pipeline.plugins.host import HostSlow, PluginHost
from fairlead.runtime.pipeline.plugins.running.figures import Bean, TaskFigures
from fairlead.runtime.pipeline.plugins.running.meters import MeteredHost, Meters

TASK = Resource("c", 0)
LABELS = {"connector": "c", "task": "0"}
CLIENT = Bean("kafka.producer", "producer-metrics", {"client-id": "p"}, {"record-send-total": 1.0})


def source_bean(rows: int) -> Bean:
    return Bean("kafka.connect", "source-task-metrics", LABELS, {"source-record-poll-total": rows})


class Run:
    """A task that hears its figures."""

    in_host = TASK

    def __init__(self) -> None:
        self.heard = list[TaskFigures]()

    def note_figures(self, figures: TaskFigures) -> None:
        self.heard.append(figures)


class Host:
    """A host that answers, unless it is slow."""

    def __init__(self) -> None:
        self.rows = 0
        self.is_slow = False
        self.asked = list[str]()
        self.more = list[Bean]()
        self.levels: Mapping[str, str] = {}

    def ask(self, question: str, _: float, **given: Any) -> object:
        if self.is_slow:
            raise HostSlow("no answer for 2 s")
        self.asked.append(f"{question} whole" if given.get("all") else question)
        if question == "levels":
            self.levels = given["levels"]
        if question == "loggers":
            return {"root": "INFO", **self.levels}
        clients = [CLIENT] if given.get("all") else []
        return [each._asdict() for each in (source_bean(self.rows), *self.more, *clients)]


class World:
    """Two hosts of a worker, and what it publishes."""

    def __init__(self) -> None:
        self.hosts = [Host(), Host()]
        self.runs = [Run(), Run()]
        self.levels = dict[str, str]()
        self.published = list[tuple[Sequence[Bean], Mapping[str, str]]]()
        self.meters = Meters(
            lambda: [
                MeteredHost(cast("PluginHost", host), [run])
                for host, run in zip(self.hosts, self.runs, strict=False)
            ],
            lambda beans, loggers: self.published.append((beans, loggers)),
            lambda: dict(self.levels),
        )

    def beat(self) -> tuple[Sequence[Bean], Mapping[str, str]]:
        self.meters.look()
        return self.published[-1]


def test_a_host_that_does_not_answer_has_no_metrics_and_takes_none_from_others() -> None:
    world = World()
    world.beat()
    world.hosts[0].is_slow, world.hosts[1].rows = True, 7
    beans, _ = world.beat()
    assert beans == [source_bean(7), CLIENT]
    assert [[each.rows_in for each in run.heard] for run in world.runs] == [[0], [0, 7]]


def test_the_sink_of_a_connector_with_two_plugins_has_a_label() -> None:
    world = World()
    labels = {**LABELS, "connector": "c\tsink"}
    bean = source_bean(3)._replace(labels=labels)
    world.hosts[0].more = [bean]
    beans, _ = world.beat()
    assert bean._replace(labels={**LABELS, "part": "sink"}) in beans


def test_clients_are_asked_for_less_often_than_tasks() -> None:
    world = World()
    for _ in range(6):
        assert CLIENT in world.beat()[0]
    asked = [each for each in world.hosts[0].asked if each.startswith("metrics")]
    assert (len(asked), asked.count("metrics whole")) == (6, 2)


def test_levels_are_told_once_to_each_host_and_again_when_they_change() -> None:
    world = World()
    world.beat()
    assert "levels" not in world.hosts[0].asked
    world.levels = {"io.debezium": "DEBUG"}
    world.beat()
    _, loggers = world.beat()
    assert loggers == {"root": "INFO", "io.debezium": "DEBUG"}
    world.levels = {}
    _, loggers = world.beat()
    assert (loggers, world.hosts[0].asked.count("levels")) == ({"root": "INFO"}, 2)


def test_what_was_published_is_taken_back_once_when_no_host_is_left() -> None:
    world = World()
    world.beat()
    world.hosts.clear()
    assert world.beat() == ([], {})
    world.beat()
    assert len(world.published) == 2


def test_the_file_of_a_worker_that_has_ended_says_nothing(tmp_path: Path) -> None:
    own = PluginsFile([CLIENT], {"root": "INFO"})
    write_plugins(plugins_file(tmp_path, "a/b"), own)
    assert read_plugins(tmp_path) == {"a/b": own}
    path = plugins_file(tmp_path, "gone")
    path.write_text(json.dumps({"owner": ProcessId(1, "never"), "beans": [], "loggers": {}}))
    plugins_file(tmp_path, "half").write_text('{"owner": [')
    assert [*read_plugins(tmp_path)] == ["a/b"]
