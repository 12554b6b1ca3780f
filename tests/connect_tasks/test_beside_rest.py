"""A real worker of Connect and a node are asked the same of connectors, and answer word for word.

What each side calls its own (connectors, topics, files, workers) is left out of the comparison. The
recorded conversations of the conformance folder are played with one of Connect's classes as well.
"""
# pyright: basic

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from fairlead_tests.conformance.chosen import conformance_dir
from fairlead_tests.conformance.rest_player import Step, play_all, play_alone, read_player
from fairlead_tests.plugins.beside import FAILED, RUNNING, Beside, Side
from fairlead_tests.plugins.connect_node import ONE_REPLICA

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.soak,
    pytest.mark.xdist_group("connect_tasks"),
]

PAUSED, STOPPED = "PAUSED", "STOPPED"
STAYS_S = 1.5
"""So long a state has to be there: an order has not begun, or is amid its work, before."""


class Talk:
    """What one side is asked about one connector, and all that it has answered."""

    def __init__(self, side: Side, name: str) -> None:
        self._side = side
        self._name = name
        self.told: list[tuple[str, int, Any]] = []

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request about the connector, and note the answer without what is a side's own."""
        url = f"/connectors/{self._side.own(self._name)}{path}"
        answer = self._side.rest.request(method, url, json=body)
        found = plain(self._side, answer.text)
        self.told.append((f"{method} {path}", answer.status_code, found))
        return found

    def see(self, connector: str, *tasks: str) -> None:
        """Wait until states are there to stay, and note what is told of them."""
        since = time.monotonic()
        while time.monotonic() < since + STAYS_S:
            before = self._side.status(self._name)
            self._side.wait_for(self._name, connector, tasks)
            if self._side.status(self._name) != before:
                since = time.monotonic()
        for path in ("/status", "/tasks/0/status", "", "/config", "/tasks"):
            self.ask("GET", path)


def plain(side: Side, text: str) -> Any:
    """Return a JSON body without what is a side's own."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: "" if key == "worker_id" else without(each) for key, each in value.items()}
        return [without(each) for each in value] if isinstance(value, list) else value

    return without(json.loads(side.plain(text))) if text else ""


def source(side: Side, name: str) -> dict[str, str]:
    """Return the config of a source of two lines."""
    own = {"topic": side.own(name), "file": side.file(f"{name}.txt", "one", "two")}
    return {"connector.class": "FileStreamSource", **own, **ONE_REPLICA}


def test_the_life_of_a_source_is_told_in_the_same_words(beside: Beside) -> None:
    def act(side: Side) -> list[tuple[str, int, Any]]:
        talk, config = Talk(side, "life"), source(side, "life")
        status, body = side.create("life", config)
        created = plain(side, json.dumps(body))
        talk.see(RUNNING, RUNNING)
        talk.told.append(("create", status, {**created, "tasks": []}))
        assert side.values("life", 2) == ["one", "two"]
        talk.ask("POST", "/tasks/0/restart")
        talk.see(RUNNING, RUNNING)
        for order, states in (
            ("pause", (PAUSED, PAUSED)),
            ("resume", (RUNNING, RUNNING)),
            ("stop", (STOPPED,)),
            ("resume", (RUNNING, RUNNING)),
        ):
            talk.ask("PUT", f"/{order}")
            talk.see(*states)
        talk.ask("POST", "/restart")
        talk.see(RUNNING, RUNNING)
        talk.ask("PUT", "/config", {**config, "batch.size": "7"})
        talk.see(RUNNING, RUNNING)
        talk.ask("PATCH", "/config", {"batch.size": None})
        talk.see(RUNNING, RUNNING)
        talk.ask("PUT", "/config", {**config, "batch.size": "no number"})
        talk.ask("PUT", "/config", {"connector.class": "FileStreamSource"})
        talk.ask("DELETE", "")
        talk.ask("DELETE", "")
        talk.ask("GET", "/status")
        return talk.told

    beside.both(act)


def test_a_task_that_cannot_start_is_told_in_the_same_words(beside: Beside) -> None:
    def act(side: Side) -> list[tuple[str, int, Any]]:
        talk = Talk(side, "broken")
        topic = side.topics.make(side.own("broken"))
        config = {"connector.class": "FileStreamSink", "topics": topic, "file": "/none/such/file"}
        side.create("broken", config)
        talk.see(RUNNING, FAILED)
        talk.ask("PUT", "/pause")
        talk.see(PAUSED, FAILED)
        talk.ask("PUT", "/resume")
        talk.ask("PUT", "/config", {**config, "file": side.file("broken.out")})
        talk.see(RUNNING, RUNNING)
        talk.ask("DELETE", "")
        return talk.told

    beside.both(act)


def test_a_connector_that_cannot_start_is_told_in_the_same_words(beside: Beside) -> None:
    def act(side: Side) -> list[tuple[str, int, Any]]:
        talk = Talk(side, "wrong")
        config = {
            "connector.class": "FileStreamSink",
            "topics": side.own("wrong"),
            "tasks.max": "x",
        }
        talk.told.append(("create", *side.create("wrong", config)))
        return talk.told

    beside.both(act)


DIFFERS = {
    *(Step("root", number) for number in (1, 2, 10)),
    *(Step("name-long", number) for number in (4, 5, 6)),
}
"""What is answered otherwise, whatever the class is: docs/from-kafka-connect.md."""
CLASS = "FileStreamSource"
AT_ONCE = 3
ONE_BY_ONE = ("loggers", "loggers-root", "health")


@pytest.mark.timeout(900)
def test_recorded_conversations_are_held_with_a_class_of_connects(
    beside: Beside, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    folder = conformance_dir(pytestconfig)
    if not (folder / "rest.yaml").exists():
        pytest.skip(f"{folder} holds no rest.yaml; set --conformance-dir")
    make_names: Callable[[Any], dict[str, Any]]
    with (
        read_player(folder, str(beside.fairlead.rest.base_url), tmp_path / "told", CLASS) as player,
        ThreadPoolExecutor(AT_ONCE) as threads,
    ):
        make_names = player.names_for

        def names_for(scenario: Any) -> dict[str, Any]:
            names = make_names(scenario)
            beside.fairlead.topics.make(f"conformance-{names['RUN']}")  # as its broker made topics
            return names

        player.names_for = names_for
        found = play_all(player, threads, ONE_BY_ONE)
        # What others make and delete moves work meanwhile.
        again = play_alone(
            player, {each.step.scenario for each in found if each.step not in DIFFERS}
        )
    wrong = [each for each in again if each.step not in DIFFERS]
    assert not wrong, "\n".join(map(str, wrong))
