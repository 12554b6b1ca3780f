"""A connector that is deleted leaves nothing outside, whatever is away meanwhile."""

from pathlib import Path

import httpx
import pytest

from fairlead.runtime.pipeline.stores.postgres.source.log.server.slot import own_name
from fairlead_tests.chaos.crew import Crew, crew
from fairlead_tests.postgres_server import PASSWORD, Database, NoServer, PostgresServer, started

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(400)]


def put(node: Crew, database: Database, name: str) -> None:
    """Create a connector from the log to files, and wait until it has read."""
    config = {
        "connector.class": "SparkPipeline",
        "source.type": "postgres",
        "source.connection.url": database.url,
        "source.connection.password": PASSWORD,
        "source.table.include.list": r"public\.orders",
        "source.mode": "log",
        "sink.path": str(node.folder / name),
        "sink.format": "json",
    }
    node.put(name, config)
    node.eventually(lambda: any((node.folder / name).glob("part-*")), "it has read")


def slots(database: Database) -> set[str]:
    return {name for (name,) in database.run("SELECT slot_name FROM pg_replication_slots")}


def test_a_slot_goes_though_the_server_was_away_when_its_connector_and_then_its_node_went(
    tmp_path: Path,
) -> None:
    try:
        with crew(tmp_path / "node", workers=1) as node, started() as server:
            play(node, server)
    except NoServer as reason:
        pytest.skip(f"PostgreSQL cannot be had: {reason}")


def play(node: Crew, server: PostgresServer) -> None:
    """Delete connectors while the server is away, and have the node end before it is back."""
    database = server.empty("shop")
    database.run("CREATE TABLE orders (id int PRIMARY KEY)")
    database.run("INSERT INTO orders SELECT generate_series(1, 100)")
    for each in ("gone", "left"):
        put(node, database, each)
    server.stop()
    for each in ("gone", "left"):
        reply = delete(node, each)
        assert (reply.status_code, "replication slot" in reply.text) == (202, True)
    node.crash()
    before = refused(node)
    node.up(1)
    # An order that the slot stays comes too late for a worker that is about to drop it.
    node.eventually(
        lambda: refused(node) >= before + 2, "it has asked the server in vain, for both"
    )
    told = httpx.get(f"{node.rest}/health").text
    assert all(f"{each} is being deleted" in told for each in ("gone", "left"))
    assert delete(node, "left?forget=false").status_code == 204
    node.eventually(lambda: "left" not in node.look().connectors, "it is left there")
    assert "gone" in node.look().connectors
    server.start()
    node.eventually(lambda: "gone" not in node.look().connectors, "it is gone")
    assert slots(database) == {own_name("left")}
    put(node, database, "later")
    reply = delete(node, "later")
    print(reply.status_code, reply.text, reply.elapsed)
    assert (reply.status_code, slots(database)) == (204, {own_name("left")})


def refused(node: Crew) -> int:
    """Return how often a worker could not clean up after a task."""
    return (node.data_dir / "logs" / "actors.log").read_text().count("is retried later")


def delete(node: Crew, name: str) -> httpx.Response:
    return httpx.delete(f"{node.rest}/connectors/{name}", timeout=60)
