# pyright: basic
"""Each source with each sink on a Spark Connect server: SQL, a transform of Connect's, a bad row.

What came of the rows is asked of the files, the database and the broker themselves.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fairlead.events.model import RunState
from fairlead.runtime.pipeline.engines.connect.engine import ConnectEngine
from fairlead.runtime.pipeline.engines.engine import EngineState
from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.matrix.ends import Room, SinkEnd, SourceEnd, Tally
from fairlead_tests.matrix.files import FilesSink, FilesSource
from fairlead_tests.matrix.kafka import KafkaSink, KafkaSource
from fairlead_tests.matrix.postgres import PostgresLogSource, PostgresSink, PostgresSource
from fairlead_tests.postgres_server import NoServer, started
from fairlead_tests.spark_engine.connect_server import ConnectServerProcess
from fairlead_tests.spark_engine.runs import has_failed, has_read, run
from fairlead_tests.tasks.numbers import Reports

pytestmark = [pytest.mark.soak, pytest.mark.spark]

SEED = 7
WRITES = 6
KINDS = ("files", "postgres", "kafka")
PAIRS = [(source, sink) for source in (*KINDS, "log") for sink in KINDS]
STAMP = {
    "type": "org.apache.kafka.connect.transforms.InsertField$Value",
    "static.field": "origin",
    "static.value": "sea",
}


class Ends(NamedTuple):
    """All sources and sinks, by their kinds."""

    sources: Mapping[str, SourceEnd]
    sinks: Mapping[str, SinkEnd]


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """The folder that the engine shares with the server: the database's user has to come there."""
    with tempfile.TemporaryDirectory(prefix="fairlead-pairs-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="module")
def ends(shared: Path) -> Iterator[Ends]:
    room = Room(shared / "sinks", shared / "others")
    for place in (*room, shared / "broker"):
        place.mkdir()
    with ExitStack() as stack:
        try:
            database = stack.enter_context(started())
            broker = Broker(shared / "broker")
            stack.callback(broker.kill)
            broker.up()
        except (NoServer, NoPeer) as reason:
            pytest.skip(f"there are no servers to read and to write: {reason}")
        sources = [
            FilesSource(room, SEED, 0),
            PostgresSource(database, SEED, 0),
            PostgresLogSource(database, SEED, 0),
            KafkaSource(broker, SEED, 0),
        ]
        sinks = [FilesSink(room), PostgresSink(database, room), KafkaSink(broker, room)]
        for each in sources:
            for _ in range(WRITES):
                each.write()
            each.settle()
        yield Ends({each.kind: each for each in sources}, {each.kind: each for each in sinks})


def config_of(ends: Ends, source: str, sink: str, name: str, query: str) -> dict[str, str]:
    """Return the config of a connector that sets aside what the query fails for."""
    transforms = {"transforms": "t,stamp", "transforms.t.type": "sql", "transforms.t.query": query}
    return {
        "name": name,
        "connector.class": "SparkPipeline",
        "task.restart.budget": "0",
        "errors.tolerance": "all",
        **ends.sources[source].config(name),
        **ends.sinks[sink].config(name),
        **transforms,
        **{f"transforms.stamp.{key}": value for key, value in STAMP.items()},
    }


def letters(folder: Path) -> list[dict[str, Any]]:
    files = [each for each in folder.rglob("part-*.json") if "_fairlead" not in each.parts]
    return [json.loads(line) for each in files for line in each.read_text().splitlines()]


@pytest.mark.parametrize(("source", "sink"), PAIRS, ids=str)
def test_each_row_comes_once_and_the_bad_one_becomes_a_dead_letter(
    on_server: ConnectEngine, shared: Path, ends: Ends, source: str, sink: str
) -> None:
    name, rows = f"{source}-{sink}", dict(ends.sources[source].rows())
    bad = sorted(rows)[len(rows) // 2]
    query = f"SELECT id, amount + CAST(IF(id = {bad}, 'much', '0') AS BIGINT) AS amount FROM input"
    config = config_of(ends, source, sink, name, query)
    config["errors.deadletterqueue.path"] = str(shared / "bad" / name)
    reports = run(on_server, config, has_read(len(rows)))
    assert not has_failed(reports), reports.statuses
    (letter,) = letters(shared / "bad" / name)
    assert letter["reason"].startswith("[CAST_INVALID_INPUT] The value 'much' of the type")
    assert json.loads(letter["raw"])["id"] == bad
    del rows[bad]
    assert ends.sinks[sink].tally(name) == Tally.of(rows)
    assert ends.sinks[sink].ids(name) == Counter(rows.keys())


@pytest.mark.parametrize(("source", "sink"), PAIRS, ids=str)
def test_a_server_that_is_killed_in_a_batch_and_started_again_loses_and_doubles_no_row(
    server: ConnectServerProcess, on_server: ConnectEngine, ends: Ends, source: str, sink: str
) -> None:
    name, rows = f"killed-{source}-{sink}", ends.sources[source].rows()
    # All rows together take some seconds: long enough for the server to be killed amid a batch.
    steps = 60_000_000 // len(rows)
    slow = f"aggregate(sequence(1, {steps}), 0L, (sum, each) -> sum + each) * 0"
    config = config_of(ends, source, sink, name, f"SELECT id, amount + {slow} AS amount FROM input")
    several = {"batch.max.rows": str(max(40, len(rows) // 10))}
    kills = 0

    def until(reports: Reports) -> bool:
        nonlocal kills
        if on_server._runs and kills <= min(len(reports.batches), 1):
            server.kill()
            kills += 1
            server.start()
        if on_server.state is EngineState.DOWN:  # as a worker does
            on_server.open()
        return sum(each.commit.rows_in for each in reports.batches) >= len(rows)

    reports = run(on_server, config | several, until)
    assert kills
    assert any("the engine is down" in each.reason for each in reports.statuses)
    assert [each for each in reports.statuses if each.state is RunState.FAILED] == []
    assert ends.sinks[sink].tally(name) == Tally.of(rows)
    assert server.token not in f"{reports.told}{on_server.detail}"
