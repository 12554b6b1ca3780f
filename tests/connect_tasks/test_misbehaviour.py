"""Tasks of plugins that misbehave: each is told with the line of its code, and neighbours go on."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.bad_tasks import SINK, SOURCE
from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.xdist_group("connect_tasks"),
    pytest.mark.soak,
    pytest.mark.timeout(600),
]
TOPIC = "misbehaviour"
AT = r"bad\.Doing\.\w+\(Doing\.java:\d+\)"


@pytest.fixture(scope="module", autouse=True)
def one_worker(node: ConnectNode) -> Generator[None]:
    """Have one worker have all."""
    until(lambda: node.rest.put("/workers/w2/drain").is_success, "w2 drains")
    yield
    until(lambda: node.rest.put("/workers/w2/uncordon").is_success, "w2 is free")


@pytest.fixture
def cause(tmp_path: Path) -> Path:
    """The file as long as which tasks misbehave."""
    path = tmp_path / "cause"
    path.touch()
    return path


def _put(node: ConnectNode, name: str, does: str, cause: Path, kind: str = SOURCE) -> None:
    config = {"connector.class": kind, "does": does, "while": str(cause)}
    where = {"topics": TOPIC} if kind == SINK else {"topic": TOPIC, **ONE_REPLICA}
    answer = node.rest.put(f"/connectors/{name}/config", json={**config, **where})
    assert answer.is_success, answer.text


def _reason(node: ConnectNode, name: str) -> str:
    tasks = node.status(name)["tasks"]
    return tasks[0].get("reason") or "" if tasks else ""


def _trace(node: ConnectNode, name: str) -> str:
    return str(node.status(name)["tasks"][0].get("trace"))


def _wait_told(node: ConnectNode, name: str, words: str) -> None:
    try:
        until(lambda: re.search(words, _reason(node, name)), f"{name} says {words}")
    except AssertionError:
        raise AssertionError(node.status(name)) from None


@contextmanager
def _neighbour(node: ConnectNode, topics: Topics, tmp_path: Path) -> Generator[None]:
    """Have a source that goes on, whatever others do."""
    source = tmp_path / "neighbour.txt"
    source.write_text("0\n")
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "neighbour"}
    node.create("neighbour", {**config, **ONE_REPLICA})
    yield
    with source.open("a") as file:
        file.write(f"{tmp_path}\n")
    until(lambda: f"{tmp_path}" in topics.values("neighbour"), "the neighbour goes on")
    node.runs("neighbour")
    assert "autoRestart" not in node.status("neighbour")["tasks"][0], "it has not failed itself"
    node.delete("neighbour")


def test_what_does_not_come_back_is_told_with_its_line_and_not_a_poll(
    node: ConnectNode, topics: Topics, tmp_path: Path, cause: Path
) -> None:
    with _neighbour(node, topics, tmp_path):
        _put(node, "starts", "start blocks", cause)
        _put(node, "polls", "poll blocks", cause)
        _put(node, "spins", "start spins", cause)
        _put(node, "feeds", "", cause)
        _put(node, "puts", "put blocks", cause, SINK)
        since = r"has not come back since \d\d:\d\d:\d\d: it is at"
        _wait_told(node, "starts", f"its start {since} {AT}")
        _wait_told(node, "spins", f"its start {since} ")
        _wait_told(node, "puts", f"its put {since} {AT}")
        node.runs("polls")
        cause.unlink()
        for name in ("starts", "spins", "puts", "feeds"):
            node.runs(name)
        node.delete("starts", "polls", "spins", "feeds", "puts")


def test_what_a_task_throws_prints_or_leaks_hurts_nobody_else(
    node: ConnectNode, topics: Topics, tmp_path: Path, cause: Path
) -> None:
    with _neighbour(node, topics, tmp_path):
        (host,) = node.hosts()
        _put(node, "throws", "poll throws", cause)
        _put(node, "later", "poll throws later", cause)
        _put(node, "breaks", "start throws", cause)
        _put(node, "splits", "taskConfigs throws", cause)
        _put(node, "prints", "poll prints", cause)
        _put(node, "leaks", "start leaks", cause)
        _wait_told(node, "throws", "no such luck")
        _wait_told(node, "later", "out of luck")
        _wait_told(node, "breaks", "no such luck")
        node.runs("prints")
        node.runs("leaks")
        until(lambda: "no such luck" in str(node.status("splits")["connector"]), "it is told")
        log = node.data_dir / "logs/connector-leaks.log"
        assert "a thread that was left behind" in log.read_text()
        until(lambda: "bad.Doing.in(" in _trace(node, "throws"), "the trace names the line")
        assert [each.pid for each in node.hosts()] == [host.pid]
        cause.unlink()
        node.runs("splits")
        node.delete("throws", "later", "breaks", "splits", "prints", "leaks")


def test_a_task_that_does_not_stop_costs_its_neighbours_a_new_host(
    node: ConnectNode, topics: Topics, tmp_path: Path, cause: Path
) -> None:
    with _neighbour(node, topics, tmp_path):
        _put(node, "stays", "stop blocks", cause)
        node.runs("stays")
        (host,) = node.hosts()
        node.turn("stays", "stop")
        until(lambda: not host.is_running(), "its host is ended")
        node.runs("neighbour")
        node.delete("stays")


def test_a_connector_that_ends_its_host_as_it_splits_its_work_is_named(
    node: ConnectNode, topics: Topics, tmp_path: Path, cause: Path
) -> None:
    name = "exits-splitting"
    with _neighbour(node, topics, tmp_path):
        _put(node, name, "taskConfigs exits", cause)
        log = f"{name} has a plugin host of its own from now on"
        until(lambda: log in node.logs(), "it gets a host of its own")
        assert re.search(f"called at {AT} by question-thread-{name}", node.logs())
        cause.unlink()
        node.runs(name)
        node.delete(name)


@pytest.mark.parametrize(
    ("does", "words"),
    [
        pytest.param(
            "exits", f"System.exit was called at {AT} by task-thread-exits-its-host-0", id="exits"
        ),
        pytest.param("halts", "ended with exit code 8", id="halts"),
        pytest.param("fills", "its heap was full", id="fills"),
    ],
)
def test_a_task_that_ends_its_host_again_and_again_has_one_of_its_own(
    node: ConnectNode, topics: Topics, tmp_path: Path, cause: Path, does: str, words: str
) -> None:
    name = f"{does}-its-host"
    with _neighbour(node, topics, tmp_path):
        _put(node, name, f"poll {does}", cause)
        _wait_told(node, name, words)
        log = f"{name} has a plugin host of its own from now on"
        until(lambda: log in node.logs(), "it gets a host of its own")
        _wait_told(node, name, words)
        cause.unlink()
        node.runs(name)
        node.runs("neighbour")
        assert len(node.hosts()) > 1
        node.delete(name)
