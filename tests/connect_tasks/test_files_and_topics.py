"""Kafka's own file connectors between a file, a topic and another file, and deaths amid them."""

from collections.abc import Collection
from pathlib import Path

import pytest

from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]


def _write(path: Path, first: int, count: int) -> list[str]:
    lines = [str(each) for each in range(first, first + count)]
    with path.open("a") as file:
        file.writelines(f"{each}\n" for each in lines)
    return lines


def _lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def _wait_for(path: Path, lines: Collection[str]) -> None:
    until(lambda: set(lines).issubset(_lines(path)), f"all lines are in {path.name}")


def test_no_line_is_lost_or_doubled_over_the_death_of_hosts(
    node: ConnectNode, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    lines = _write(source, 0, 500)
    read = {"connector.class": "FileStreamSource", "file": str(source), "topic": "deaths"}
    write = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "file": str(target),
        "topics": "deaths",
        "consumer.override.isolation.level": "read_committed",
    }
    node.create("deaths-in", {**read, **ONE_REPLICA})
    node.create("deaths-out", write)
    _wait_for(target, lines)
    for host in node.hosts():
        host.kill()
    lines += _write(source, 500, 500)
    _wait_for(target, lines)
    assert node.status("deaths-in")["tasks"][0]["state"] == "RUNNING"
    # What a sink that is killed has written and not committed, it writes again.
    assert [*dict.fromkeys(_lines(target))] == lines
    node.delete("deaths-in", "deaths-out")
