"""Loggers of Java in /admin/loggers, as in Kafka Connect (KIP-495)."""

from pathlib import Path

import pytest

from fairlead_tests.plugins.connect_node import ONE_REPLICA, ConnectNode, until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]
LOGGER = "org.apache.kafka.connect.file.FileStreamSourceTask"
PATH = f"/admin/loggers/{LOGGER}"
CLIENTS = "org.apache.kafka.clients"
LINE = "] TRACE [loud|task-0] Read "


def _read(node: ConnectNode) -> int:
    path = node.data_dir / "logs" / "connector-loud.log"
    return path.read_text().count(LINE) if path.exists() else 0


@pytest.mark.soak  # each run has levels told to each host: plugins/test_meters.py
def test_a_level_of_a_plugins_logger_counts_at_once_and_until_it_is_put_back(
    node: ConnectNode, tmp_path: Path
) -> None:
    source = tmp_path / "in.txt"
    source.write_text("a\n")
    config = {"connector.class": "FileStreamSource", "file": str(source), "topic": "loud"}
    node.create("loud", {**config, **ONE_REPLICA})

    def add_line() -> None:
        with source.open("a") as file:
            file.write("another\n")

    until(lambda: LOGGER in node.rest.get("/admin/loggers").json(), "the logger is known")
    assert node.rest.get(PATH).json() == {"level": "INFO", "last_modified": None}
    isolation = "org.apache.kafka.connect.runtime.isolation.DelegatingClassLoader"
    assert node.rest.get(f"/admin/loggers/{isolation}").json()["level"] == "WARN"
    assert LOGGER in node.rest.put(PATH, json={"level": "trace"}).json()
    found = node.rest.get(PATH).json()
    assert (found["level"], type(found["last_modified"])) == ("TRACE", int)

    def is_loud() -> bool:
        add_line()
        return _read(node) > 0

    until(is_loud, "lines of that level come")
    for host in node.hosts():
        host.kill()
    before = _read(node)

    def is_loud_again() -> bool:
        add_line()
        return _read(node) > before

    until(is_loud_again, "so they do from the host that starts later")
    assert node.rest.put(f"{PATH}?scope=cluster", json={"level": "INFO"}).status_code == 204

    def is_quiet() -> bool:
        size, seen = source.stat().st_size, _read(node)
        add_line()
        until(lambda: _position(node) > size, "the new line is read")
        return _read(node) == seen

    until(is_quiet, "none comes any more")
    until(
        lambda: node.rest.get(f"/admin/loggers/{isolation}").json().get("level") == "WARN",
        "the loggers of the host that started later are known, with their first levels",
    )
    node.delete("loud")


def _position(node: ConnectNode) -> int:
    found = node.rest.get("/connectors/loud/offsets").json()["offsets"]
    return int(found[0]["offset"]["position"]) if found else 0
