"""Where the transactions of a source begin and end, in a real worker of Connect and in a node.

The ends of transactions are read from the broker's own files.
"""
# pyright: basic

import pytest

from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.log_segments import batches
from fairlead_tests.plugins.beside import Beside, Side
from fairlead_tests.plugins.connect_node import ONE_REPLICA
from fairlead_tests.plugins.scripted_plugin import SOURCE

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.spark,
    pytest.mark.soak,
    pytest.mark.xdist_group("connect_tasks"),
]


def source(side: Side, name: str, script: str, **more: str) -> dict[str, str]:
    """Return the config of a source that writes a script to the topic of its name."""
    given = {key.replace("_", "."): each for key, each in more.items()}
    required = {"exactly.once.support": "required", **ONE_REPLICA}
    own = {"topic": side.own(name), "script": script}
    return {"connector.class": SOURCE, **own, **required, **given}


def transactions(broker: Broker, topic: str) -> int:
    """Return how many transactions have ended in the first partition of a topic."""
    found = [*batches(broker.data, topic)]
    assert all(each.is_transactional for each in found)
    return sum(each.is_control for each in found)


def test_each_poll_is_a_transaction_unless_the_config_says_otherwise(
    beside: Beside, broker: Broker
) -> None:
    def act(side: Side) -> tuple[list[str], int]:
        with side.having("by-poll", source(side, "by-poll", "a b ; c ; d e f")):
            values = side.values("by-poll", 6)
            return values, transactions(broker, side.own("by-poll"))

    assert beside.both(act) == (["a", "b", "c", "d", "e", "f"], 3)


def test_a_transaction_of_an_interval_is_not_seen_before_its_end(
    beside: Beside, broker: Broker
) -> None:
    def act(side: Side) -> tuple[list[str], list[str], list[str]]:
        config = source(
            side,
            "by-time",
            "a b ; c ; d e f",
            transaction_boundary="interval",
            transaction_boundary_interval_ms="8000",
        )
        with side.having("by-time", config):
            written = side.values("by-time", 6, isolation="read_uncommitted")
            seen = side.topics.values(side.own("by-time"))
            committed = side.values("by-time", 6)
            assert transactions(broker, side.own("by-time")) < 3
            return written, [*seen], committed

    words = ["a", "b", "c", "d", "e", "f"]
    assert beside.both(act) == (words, [], words)


def test_a_plugin_that_sets_the_boundaries_commits_and_aborts(beside: Beside) -> None:
    def act(side: Side) -> list[str]:
        config = source(
            side,
            "by-plugin",
            "a b ; c commit d ; e abort ; f ; g commit ; h",
            transaction_boundary="connector",
        )
        with side.having("by-plugin", config):
            return side.values("by-plugin", 5)

    assert beside.both(act) == ["a", "b", "c", "f", "g"]


def test_a_boundary_that_a_plugin_cannot_set_is_refused_with_the_same_words(
    beside: Beside,
) -> None:
    def act(side: Side) -> tuple[int, str]:
        config = {
            "connector.class": "FileStreamSource",
            "file": side.file("refused.txt", "one"),
            "topic": side.own("refused"),
            "transaction.boundary": "connector",
        }
        status, body = side.create("refused", config)
        return status, side.plain(body["message"])

    status, message = beside.both(act)
    assert status == 400
    assert "transaction" in message
