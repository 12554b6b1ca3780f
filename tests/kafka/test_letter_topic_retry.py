# pyright: basic
"""Dead letters in a topic are retried: each once, as the row or the record that it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

QUEUE = "errors.deadletterqueue"
Config = dict[str, str]


class Pipe:
    """Runs connectors one after another, with one log of offsets."""

    def __init__(self, engine: Embedded) -> None:
        self.engine = engine
        self.ledger = MemoryLedger()
        self.attempts = 0

    def run(self, config: Config, rows: int) -> None:
        """Run a connector until it has read so many rows more, and published them."""
        self.attempts += 1
        reports, token, name = Reports(), Token(self.attempts, 0), config["name"]
        assert SparkPipeline.validate(config).errors == {}
        runner = Runner(self.engine, self.ledger, find_plugins(), reports)
        runner.start(Launch(Resource(name), token, config, config))
        made = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
        assert isinstance(made, TaskConfigsChanged)
        self.task_config = made.configs[0]
        runner.start(Launch(Resource(name, 0), token, config, made.configs[0]))
        try:
            reports.wait(lambda _: sum(each.rows_in for each in reports.commits) >= rows)
        finally:
            assert runner.close(60) == frozenset()
        assert self.ledger.unpublished(name, 0) == []


def retry_of(config: Config) -> Config:
    return dict(SparkPipeline.retry_config(config, {}, f"{config['name']}-retry"))


def rows(folder: Path) -> list[dict[str, Any]]:
    files = [each for each in folder.rglob("part-*.json") if "_fairlead" not in each.parts]
    found = [json.loads(line) for each in files for line in each.read_text().splitlines()]
    return sorted(found, key=repr)


@pytest.fixture
def base(topics: Topics, topic: str, tmp_path: Path) -> Config:
    """A config with a topic of dead letters, and a folder of rows."""
    (tmp_path / "in").mkdir()
    topics.make(f"{topic}.bad")
    return {
        "name": topic,
        "connector.class": "SparkPipeline",
        "sink.format": "json",
        "sink.path": str(tmp_path / "out"),
        "task.restart.budget": "0",
        "errors.tolerance": "all",
        f"{QUEUE}.topic.name": f"{topic}.bad",
        f"{QUEUE}.topic.replication.factor": "1",
        f"{QUEUE}.context.headers.enable": "true",
        f"{QUEUE}.bootstrap.servers": topics.bootstrap,
        f"{QUEUE}.staging.path": str(tmp_path / "staging"),
    }


@pytest.mark.soak  # each run retries such rows of folders: connectors/test_letter_retry.py
@pytest.mark.spark
def test_rows_of_csv_arrive_once_and_letters_of_others_do_not(
    engine: Embedded, topics: Topics, topic: str, base: Config, tmp_path: Path
) -> None:
    (tmp_path / "in" / "a.csv").write_text('n,s\n1,x\n2 pieces,"y,\n""z"\nnone,""\n3,4,5\n')
    config = {
        **base,
        "source.format": "csv",
        "source.path": str(tmp_path / "in"),
        "source.min.age.ms": "0",
        "source.schema": "n INT, s STRING",
    }
    pipe = Pipe(engine)
    pipe.run(config, 4)
    assert rows(tmp_path / "out") == [{"n": 1, "s": "x"}]
    foreign = [("__connect.errors.connector.name", b"other")]
    topics.write(f"{topic}.bad", ["9,z"], headers=foreign)
    topics.write(f"{topic}.bad", ["8,z"])
    mended = config | {
        "source.schema": "n STRING, s STRING",
        "transforms": "mend",
        "transforms.mend.type": "sql",
        "transforms.mend.query": "SELECT CAST(replace(n, ' pieces', '') AS INT) AS n, s FROM input",
    }
    pipe.run(retry_of(mended), 3)
    expected = [{"n": 1, "s": "x"}, {"n": 2, "s": 'y,\n"z'}]
    assert rows(tmp_path / "out") == expected
    assert sorted(topics.values(f"{topic}.bad-retry")) == ["3,4,5", '{"n": "none", "s": ""}']
    (tmp_path / "in" / "b.csv").write_text("n,s\n7 pieces,new\n")
    pipe.run(config, 1)
    pipe.run(retry_of(mended), 1)
    assert rows(tmp_path / "out") == sorted([*expected, {"n": 7, "s": "new"}], key=repr)
    zero = {"transforms.mend.query": "SELECT if(n = 'none', 0, n) AS n, s FROM input"}
    pipe.run(retry_of(retry_of(mended | zero)), 2)
    assert {"n": 0, "s": ""} in rows(tmp_path / "out")
    assert len(rows(tmp_path / "out")) == 4
    assert topics.values(f"{topic}.bad-retry-retry") == ["3,4,5"]


@pytest.mark.spark
def test_a_record_is_decoded_as_it_would_have_been_with_key_time_and_headers(
    engine: Embedded, topics: Topics, topic: str, base: Config, tmp_path: Path
) -> None:
    header = [("h", b"\x00\xff"), ("h", None)]
    for number, value in enumerate(
        (b'{"n": 1}', b'{"n": "2"}', b'{"n": [3]}', b"\xff", b'{"n":0}')
    ):
        topics.write(topic, [value], key=f"k{number}", headers=header, timestamp=1_000 + number)
    config = {
        **base,
        "source.type": "kafka",
        "source.bootstrap.servers": topics.bootstrap,
        "source.topics": topic,
        "source.value.converter": "json",
        "source.value.converter.schemas.enable": "false",
        "source.schema": "n INT",
        "source.metadata.columns": "key,topic,partition,offset,timestamp,headers",
        "transforms": "e",
        "transforms.e.type": "expect",
        "transforms.e.on.violation": "dead-letter",
        "transforms.e.expect.positive": "n > 0",
    }
    pipe = Pipe(engine)
    pipe.run(config, 5)
    assert [each["n"] for each in rows(tmp_path / "out")] == [1]
    mended = config | {"source.schema": "n STRING", "transforms.e.expect.positive": "true"}
    pipe.run({**mended, "name": f"{topic}.plain", "sink.path": str(tmp_path / "plain")}, 5)
    plain = {each["n"]: each for each in rows(tmp_path / "plain")}
    pipe.run(retry_of(mended), 4)
    retried = {each["n"]: each for each in rows(tmp_path / "out") if each["n"] != 1}
    assert retried == {n: row for n, row in plain.items() if n != "1"}
    assert {each["_key"] for each in retried.values()} == {"k1", "k2", "k4"}
    (again,) = topics.read(f"{topic}.bad-retry")
    assert (again.key(), again.value()) == (b"k3", b"\xff")
    assert again.headers()[:2] == header
    told = dict(again.headers())
    assert json.loads(told["__fairlead.letter"]) == {"format": "json", "sent_ms": 1_003}
    assert told["__connect.errors.connector.name"] == f"{topic}-retry".encode()
    assert told["__connect.errors.offset"] == b"3"
