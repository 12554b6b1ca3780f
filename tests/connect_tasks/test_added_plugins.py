"""Plugins that come, change and go while hosts run."""

import shutil
from collections.abc import Generator
from pathlib import Path

import psutil
import pytest

from fairlead_tests.plugins.bad_tasks import write_bad_tasks
from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.xdist_group("connect_tasks"),
    pytest.mark.soak,
]


def _starts(node: ConnectNode, name: str) -> int:
    log = node.data_dir / f"logs/connector-{name}.log"
    return log.read_text().count("Source task finished initialization and start")


def _hosts(node: ConnectNode) -> list[psutil.Process]:
    worker = node.worker("w1")
    return [each for each in node.hosts() if each.ppid() == worker.pid]


@pytest.fixture
def one_worker(node: ConnectNode) -> Generator[None]:
    """Have one worker have all."""
    until(lambda: node.rest.put("/workers/w2/drain").is_success, "w2 drains")
    yield
    until(lambda: node.rest.put("/workers/w2/uncordon").is_success, "w2 is free")


@pytest.mark.usefixtures("one_worker")
def test_a_plugin_is_used_that_comes_while_a_host_runs_and_what_runs_stays_there(
    node: ConnectNode, tmp_path: Path
) -> None:
    source = tmp_path / "in.txt"
    source.write_text("a\n")
    reads = {"connector.class": "FileStreamSource", "file": str(source), "topic": "stays"}
    node.create("stays", {**reads, **ONE_REPLICA})
    (host,) = _hosts(node)
    folder = node.data_dir.parent / "plugins/later"
    write_bad_tasks(folder, "later")
    until(lambda: "later.BadSource" in node.rest.get("/connector-plugins").text, "it is known")
    config = {"connector.class": "later.BadSource", "while": str(tmp_path / "never")}
    node.create("comes", {**config, "topic": "comes", **ONE_REPLICA})
    assert host.is_running()
    assert len(_hosts(node)) == 2
    assert _starts(node, "stays") == 1
    assert node.rest.post("/connectors/stays/restart?includeTasks=true").is_success
    until(lambda: not host.is_running(), "the former host ends with what was in it")
    node.runs("stays")
    shutil.rmtree(folder)
    gone = "its plugin was removed"
    until(lambda: gone in str(node.status("comes")["tasks"]), "it is told, while it runs")
    assert node.rest.post("/connectors/comes/restart?includeTasks=true").is_success
    until(lambda: node.status("comes")["connector"]["state"] == "FAILED", "it cannot start")
    assert "name matches later.BadSource" in str(node.status("comes")["connector"])
    node.delete("comes", "stays")
