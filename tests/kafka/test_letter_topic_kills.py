"""A topic of dead letters is retried, each once, although a worker and then the node is killed."""

from pathlib import Path

import pyarrow.parquet as papq
import pytest

from fairlead_tests.cluster.remains import without_remains
from fairlead_tests.connectors.late_letters import LETTERS, NUMBERS, LateLetters
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.monitoring.watched_node import WatchedNode

QUEUE = "errors.deadletterqueue"


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_letters_of_a_topic_arrive_once_although_worker_and_node_are_killed(
    topics: Topics, topic: str, tmp_path: Path
) -> None:
    topics.make(f"{topic}.bad")
    folder = tmp_path / "home"
    more = {
        "sink.format": "parquet",
        "sink.path": str(folder / "out"),
        f"{QUEUE}.topic.name": f"{topic}.bad",
        f"{QUEUE}.topic.replication.factor": "1",
        f"{QUEUE}.context.headers.enable": "true",
        f"{QUEUE}.bootstrap.servers": topics.bootstrap,
        f"{QUEUE}.staging.path": str(folder / "staging"),
    }
    with without_remains() as nodes:
        home = WatchedNode(folder, nodes, ("workers=2",))
        home.up()
        late = LateLetters(home, more)
        late.refuse()
        assert len(topics.values(f"{topic}.bad")) == LETTERS
        late.retry()
        late.kill_worker()
        late.kill_node()
        late.end()
    assert sorted(papq.read_table(folder / "out")["n"].to_pylist()) == NUMBERS
    assert topics.values(f"{topic}.bad-retry") == []
