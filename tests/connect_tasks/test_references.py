"""References in configs of Kafka's own connectors, which Connect's providers resolve."""

from pathlib import Path

import pytest

from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ConnectNode, until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.xdist_group("connect_tasks")]
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SECRET = "Kx7-hidden-folder-Qz"  # of this test


def _secrets(node: ConnectNode) -> Path:
    file = node.data_dir.parent / "secrets" / "own.properties"
    file.write_text(f"folder={SECRET}\n")
    return file


def test_what_a_provider_resolves_is_shown_and_written_nowhere(
    node: ConnectNode, topics: Topics
) -> None:
    reference, name = f"${{props:{_secrets(node)}:folder}}", "refers"
    topic = topics.make("refers")
    path = f"/nowhere/{reference}/out.txt"
    answer = node.rest.put(
        f"/connectors/{name}/config", json={"connector.class": SINK, "file": path, "topics": topic}
    )
    assert answer.is_success, answer.text
    assert answer.json()["config"]["file"] == path

    def trace() -> str:
        status = node.rest.get(f"/connectors/{name}/status").json()
        return "".join(each.get("trace", "") for each in status["tasks"])

    until(trace, "the folder is not there")
    told = next(filter(None, iter(trace, None)))  # while it starts again there is none
    assert told.startswith("org.apache.kafka.connect.errors.ConnectException: ")
    assert path in told
    (task,) = node.rest.get(f"/connectors/{name}/tasks").json()
    assert task["config"]["file"] == path
    asked = "/metrics", "/connectors?expand=info&expand=status"
    replies = [told, *(node.rest.get(each).text for each in asked)]
    kind = f"/connector-plugins/{SINK}/config/validate"
    replies.append(node.rest.put(kind, json={"connector.class": SINK, "file": path}).text)
    assert not [each for each in replies if SECRET in each]
    files = [each for each in node.data_dir.rglob("*") if each.is_file()]
    assert [each for each in files if SECRET.encode() in each.read_bytes()] == []
    node.delete(name)


def test_a_reference_that_leads_to_nothing_is_named(node: ConnectNode, topics: Topics) -> None:
    reference, name = f"${{props:{_secrets(node)}:missing}}", "refers-to-nothing"
    config = {"connector.class": SINK, "file": reference, "topics": topics.make(name)}
    node.rest.put(f"/connectors/{name}/config", json=config)
    until(lambda: node.status(name)["connector"]["state"] == "FAILED", "it fails")
    told = node.status(name)["connector"]
    assert f"file: {reference} cannot be resolved" in told["reason"] + told["trace"]
    node.delete(name)


def test_a_connector_starts_again_when_the_time_of_a_value_is_over(
    node: ConnectNode, topics: Topics, tmp_path: Path
) -> None:
    lease, name = tmp_path / "lease", "leased"
    lease.write_text(f"file={tmp_path}/first.txt\nttl=3000\n")
    topics.write(topics.make(name), ["a"])
    file = f"${{leased:{lease}:file}}"
    node.create(name, {"connector.class": SINK, "file": file, "topics": name})
    until((tmp_path / "first.txt").exists, "the first value is used")
    lease.write_text(f"file={tmp_path}/second.txt\n")
    until((tmp_path / "second.txt").exists, "the next value is used")
    topics.write(name, ["b"])
    until(lambda: "b" in (tmp_path / "second.txt").read_text(), "it goes on")
    node.delete(name)
