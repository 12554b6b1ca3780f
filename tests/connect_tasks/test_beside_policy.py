"""A worker that lets no connector set its clients, in a real worker of Connect and in a node.

Sources do not write exactly once here.
"""
# pyright: basic

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.plugins.beside import Beside, Side, worker_beside
from fairlead_tests.plugins.connect_node import ONE_REPLICA, connect_node

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.soak,
    pytest.mark.xdist_group("connect_tasks"),
]

STRICT = {"connector.client.config.override.policy": "None", "workers": "1"}


@pytest.fixture(scope="module")
def strict(
    broker: Broker, scripted: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Beside]:
    """A node and a worker with this policy."""
    folder = tmp_path_factory.mktemp("strict")
    with (
        connect_node(folder / "node", broker.bootstrap, scripted, STRICT) as node,
        worker_beside(node, broker.bootstrap, scripted, folder, STRICT) as beside,
    ):
        yield beside


@pytest.mark.parametrize(
    "key",
    [
        "consumer.override.max.poll.records",
        "consumer.override.group.instance.id",
        "consumer.override.auto.offset.reset",
    ],
)
def test_an_override_is_refused_with_the_same_words(strict: Beside, key: str) -> None:
    def act(side: Side) -> tuple[int, str]:
        config = {"connector.class": "FileStreamSink", "topics": side.own("set"), key: "7"}
        status, body = side.create("set", config)
        return status, side.plain(body["message"])

    status, message = strict.both(act)
    assert status == 400
    assert "None" in message


def test_a_sink_of_a_node_is_a_static_member_all_the_same(strict: Beside) -> None:
    def act(side: Side) -> tuple[list[str], list[str | None]]:
        topic = side.topics.make(side.own("static"))
        side.topics.write(topic, ["line"])
        own = {"topics": topic, "file": side.file("static")}
        with side.having("static", {"connector.class": "FileStreamSink", **own}):
            lines = side.lines("static", 1)
            group = f"connect-{side.own('static')}"
            asked = side.topics.admin.describe_consumer_groups([group])[group].result(60)
        return lines, [each.group_instance_id for each in asked.members]

    assert act(strict.connect) == (["line"], [None])
    assert act(strict.fairlead) == (["line"], ["ours-static-0"])


def test_a_source_that_does_not_write_exactly_once_writes_without_transactions(
    strict: Beside,
) -> None:
    def act(side: Side) -> list[tuple[str, int]]:
        config = {
            "connector.class": "FileStreamSource",
            "file": side.file("plain.txt", "one", "two"),
            "topic": side.own("plain"),
            **ONE_REPLICA,
        }
        with side.having("plain", config):
            found = side.read("plain", 2)
        return [(each.value().decode(), each.offset()) for each in found]

    assert strict.both(act) == [("one", 0), ("two", 1)]
