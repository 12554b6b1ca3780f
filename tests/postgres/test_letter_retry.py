"""Dead letters of a folder are retried into a table, each once, although a worker is killed."""

from pathlib import Path

import pytest

from fairlead_tests.cluster.remains import without_remains
from fairlead_tests.connectors.late_letters import NUMBERS, LateLetters
from fairlead_tests.monitoring.watched_node import WatchedNode
from fairlead_tests.postgres_pipes import sink_config
from fairlead_tests.postgres_server import Database


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_letters_of_a_folder_arrive_in_a_table_once_although_their_worker_is_killed(
    database: Database, tmp_path: Path
) -> None:
    database.run("CREATE TABLE t (n int)")
    sink = sink_config(database, insert_mode="insert")
    more = {key: each for key, each in sink.items() if key.startswith("sink.")}
    with without_remains() as nodes:
        home = WatchedNode(tmp_path / "home", nodes, ("workers=2",))
        home.up()
        late = LateLetters(home, more | {"errors.deadletterqueue.path": str(home.folder / "bad")})
        late.refuse()
        late.retry()
        late.kill_worker()
        late.end()
    assert [n for (n,) in database.run("SELECT n FROM t ORDER BY n")] == NUMBERS
