from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any, cast

import pytest

from fairlead.runtime.pipeline.plugins.catalogue import answers as module
from fairlead.runtime.pipeline.plugins.catalogue.answers import PluginAnswers
from fairlead.runtime.pipeline.plugins.catalogue.catalogue import Catalogue, ConnectPlugin
from fairlead.runtime.pipeline.plugins.catalogue.installing.refusals import PluginFlaw
from fairlead.runtime.pipeline.plugins.catalogue.settings import PluginSettings
from fairlead.runtime.pipeline.plugins.host import (
    OVERDUE,
    HostDied,
    HostSlow,
    PluginFailed,
    PluginHost,
)

PATIENCE = 60.0


class Host:
    """Stands for a host: it tells what it was asked, and blocks where it is told to."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths
        self.is_alive = True
        self.closed = Event()
        self.may_answer = Event()
        self.asked = Event()
        self.failure: Exception | None = None
        """What it answers with."""
        self.at_failure: Callable[[], None] = lambda: None

    def ask(self, question: str, seconds: float, **given: object) -> object:
        self.asked.set()
        if self.failure is not None:
            self.at_failure()
            raise self.failure
        if given.get("config") == {"blocks": "yes"}:
            assert self.may_answer.wait(PATIENCE)
        return {"question": question, "seconds": seconds, **given}

    def close(self) -> None:
        self.is_alive = False
        self.closed.set()


class Scene:
    """A node's plugins, and the hosts that were started for them."""

    def __init__(self, allow: Sequence[str] = ("*",), idle_seconds: float = PATIENCE) -> None:
        self.hosts: list[Host] = []
        self.paths = ["/plugins/a"]
        self.flaws: tuple[PluginFlaw, ...] = ()
        self.reads = 0
        self.answers = PluginAnswers(
            PluginSettings(Path("/data"), allow=allow), self.read, self.start, idle_seconds
        )

    def read(self) -> Catalogue:
        self.reads += 1
        plugins = tuple(
            ConnectPlugin("source", f"org.{name}Source", "1", Path("/p"), Path("/p"), (name,))
            for name in ("A", "B")
        )
        return Catalogue(plugins, tuple(map(Path, self.paths)), self.flaws)

    def start(self, paths: Sequence[str]) -> PluginHost:
        self.hosts.append(Host(paths))
        return cast(PluginHost, self.hosts[-1])


def in_background(question: Callable[[], Any]) -> Thread:
    thread = Thread(target=question)
    thread.start()
    return thread


BLOCKS: Mapping[str, str] = {"blocks": "yes"}


def test_a_host_is_started_by_the_first_question_and_serves_the_next() -> None:
    scene = Scene()
    assert scene.answers.find("A")
    assert not scene.hosts
    scene.answers.keys("A", "latest")
    assert scene.answers.validate({"a": None}, 2.0) == {
        "question": "validate",
        "seconds": 7.0,
        "config": {"a": None},
        "ms": 2_000,
        "batches": False,
    }
    assert [each.paths for each in scene.hosts] == [["/plugins/a"]]
    scene.answers.close()
    assert scene.hosts[0].closed.is_set()


def test_the_catalogue_is_read_once_for_questions_that_come_together() -> None:
    scene = Scene()
    assert [each.class_name for each in scene.answers.listed()] == ["org.ASource", "org.BSource"]
    assert scene.answers.find("org.BSource")
    assert scene.answers.find("C") is None
    assert scene.reads == 1


def test_what_the_node_does_not_allow_is_not_found() -> None:
    scene = Scene(allow=("org.B*",))
    assert scene.answers.find("A") is None
    assert [each.class_name for each in scene.answers.listed()] == ["org.BSource"]


def test_a_host_that_has_died_is_replaced() -> None:
    scene = Scene()
    scene.answers.keys("A", "latest")
    scene.hosts[0].is_alive = False
    scene.answers.keys("A", "latest")
    assert len(scene.hosts) == 2


def test_other_plugins_have_another_host_and_the_former_ends_with_its_last_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_FRESH_SECONDS", -1.0)
    scene = Scene()
    asking = in_background(lambda: scene.answers.validate(BLOCKS))
    while not scene.hosts:
        assert asking.is_alive()
    former = scene.hosts[0]
    assert former.asked.wait(PATIENCE)
    scene.paths.append("/plugins/b")
    scene.answers.keys("B", "latest")
    assert [each.paths for each in scene.hosts] == [["/plugins/a"], ["/plugins/a", "/plugins/b"]]
    assert not former.closed.is_set()
    former.may_answer.set()
    asking.join(PATIENCE)
    assert former.closed.is_set()
    assert not scene.hosts[1].closed.is_set()
    scene.answers.close()


def test_a_host_ends_when_nothing_was_asked_for_a_while_but_not_amid_a_question() -> None:
    scene = Scene(idle_seconds=0.01)
    scene.answers.keys("A", "latest")
    assert scene.hosts[0].closed.wait(PATIENCE)
    asking = in_background(lambda: scene.answers.validate(BLOCKS))
    while len(scene.hosts) < 2:
        assert asking.is_alive()
    host = scene.hosts[1]
    assert host.asked.wait(PATIENCE)
    scene.answers.keys("A", "latest")  # its end starts the clock again
    assert not host.closed.wait(0.1)
    host.may_answer.set()
    asking.join(PATIENCE)
    assert host.closed.wait(PATIENCE)


def test_a_host_that_does_not_start_is_tried_again_with_the_next_question() -> None:
    scene = Scene()

    def fail(_: Sequence[str]) -> PluginHost:
        raise HostDied("no memory")

    failing = PluginAnswers(PluginSettings(Path("/data")), scene.read, fail, PATIENCE)
    for _ in range(2):
        with pytest.raises(HostDied, match="no memory"):
            failing.keys("A", "latest")
    failing.close()


@pytest.mark.parametrize(
    "failure", [HostSlow("no answer"), PluginFailed(OVERDUE, "Request timed out", 500)]
)
def test_a_host_in_which_a_plugin_does_not_come_back_is_replaced(failure: Exception) -> None:
    scene = Scene()
    scene.answers.keys("A", "latest")
    scene.hosts[0].failure = failure
    with pytest.raises(type(failure)):
        scene.answers.keys("A", "latest")
    assert scene.hosts[0].closed.is_set()
    scene.answers.keys("A", "latest")
    assert len(scene.hosts) == 2
    scene.answers.close()


BROKEN = PluginFailed("java.lang.NoClassDefFoundError", "a/B", None)


def test_what_fails_while_its_jars_are_replaced_is_asked_again_of_another_host() -> None:
    scene = Scene()
    scene.answers.keys("A", "latest")
    scene.hosts[0].failure = BROKEN
    scene.hosts[0].at_failure = lambda: scene.paths.append("/plugins/b")
    assert scene.answers.keys("A", "latest")
    assert [each.paths for each in scene.hosts] == [["/plugins/a"], ["/plugins/a", "/plugins/b"]]
    scene.hosts[1].failure = BROKEN
    with pytest.raises(PluginFailed, match="a/B"):
        scene.answers.keys("A", "latest")
    assert len(scene.hosts) == 2
    scene.answers.close()


def test_a_catalogue_with_flaws_is_not_read_for_each_question() -> None:
    scene = Scene()
    scene.flaws = (PluginFlaw(Path("/p"), "it could not be scanned"),)
    for _ in range(3):
        scene.answers.keys("A", "latest")
    assert scene.reads == 1
    scene.answers.close()
