# pyright: basic
"""Bad rows of any source become records of a topic, each once, with Connect's headers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fairlead.events.commits import CommitId, Manifest
from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.dead_letter_queue import queue_sink
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.context import Context, ExternalAccess
from fairlead.runtime.pipeline.spi.errors import LettersRefused, RowsRefused, SinkAway, SinkBroken
from fairlead.runtime.pipeline.spi.rows import DeadLetter, LetterQuery
from fairlead.runtime.pipeline.stores.kafka.sink import letter_records
from fairlead.runtime.pipeline.stores.kafka.source.reader import HEADERS
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.connectors.pipes import CLUSTER
from fairlead_tests.connectors.publish_once import HALF, POINTS, Owner, SinkLog, succeed
from fairlead_tests.kafka.pipes import source_config
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

QUEUE = "errors.deadletterqueue"
TASK = Resource("letters", 0)
SPI = "fairlead.runtime.pipeline.spi"


@pytest.fixture
def letters(topics: Topics, topic: str, tmp_path: Path) -> dict[str, str]:
    """What a config says of a topic of dead letters that is still to be made."""
    return {
        "errors.tolerance": "all",
        f"{QUEUE}.topic.name": f"{topic}.bad",
        f"{QUEUE}.topic.replication.factor": "1",
        f"{QUEUE}.bootstrap.servers": topics.bootstrap,
        f"{QUEUE}.staging.path": str(tmp_path / "staging"),
    }


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A config from files into files."""
    (tmp_path / "in").mkdir()
    return {
        "name": "letters",
        "connector.class": "SparkPipeline",
        "source.path": str(tmp_path / "in"),
        "source.format": "csv",
        "source.min.age.ms": "0",
        "source.schema": "n INT",
        "sink.format": "parquet",
        "sink.path": str(tmp_path / "out"),
        "task.restart.budget": "0",
    }


def run(engine: Embedded, config: dict[str, str], rows: int) -> None:
    """Run a connector until it has published batches of so many rows, bad ones among them."""
    reports, ledger, token, name = Reports(), MemoryLedger(), Token(1, 0), config["name"]
    runner = Runner(engine, ledger, find_plugins(), reports)
    runner.start(Launch(Resource(name), token, config, config))
    made = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
    assert isinstance(made, TaskConfigsChanged)
    runner.start(Launch(Resource(name, 0), token, config, made.configs[0]))
    try:
        reports.wait(lambda _: sum(each.rows_in for each in reports.commits) >= rows)
    finally:
        assert runner.close(60) == frozenset()
    assert ledger.unpublished(name, 0) == []


def told(record: Any) -> dict[str, str]:
    """Return the headers of a record without what all of them begin with."""
    return {
        name.removeprefix("__connect.errors."): each.decode()
        for name, each in record.headers()
        if name != "__fairlead.letter"
    }


@pytest.mark.spark
def test_a_bad_row_of_a_file_is_a_record_of_a_topic_that_is_made_for_it(
    engine: Embedded,
    topics: Topics,
    topic: str,
    files: dict[str, str],
    letters: dict[str, str],
    tmp_path: Path,
) -> None:
    (tmp_path / "in" / "a.csv").write_text("n\n1\nfoo\n")
    run(engine, {**files, **letters, f"{QUEUE}.context.headers.enable": "true"}, 2)
    (record,) = topics.read(f"{topic}.bad")
    assert (record.key(), record.value()) == (None, b"foo")
    reason = 'column `n` (INT): For input string: "foo"'
    assert told(record) == {
        "connector.name": "letters",
        "task.id": "0",
        "stage": "VALUE_CONVERTER",
        "class.name": f"{SPI}.source.Source",
        "exception.class.name": f"{SPI}.errors.BadInput",
        "exception.message": reason,
        "exception.stacktrace": f"{SPI}.errors.BadInput: {reason}",
        "file": str(tmp_path / "in" / "a.csv"),
    }


@pytest.mark.spark
def test_a_bad_record_keeps_its_key_and_its_value_in_the_cluster_that_it_was_read_from(
    engine: Embedded, topics: Topics, topic: str, letters: dict[str, str], tmp_path: Path
) -> None:
    topics.write(topic, ['{"n": 1}'], key="good")
    topics.write(topic, [b"none \xfe"], key=b"\xffk")
    plain = {"value_converter": "json", "value_converter_schemas_enable": "false"}
    config = source_config(topics.bootstrap, topics=topic, **plain, schema="n INT")
    del letters[f"{QUEUE}.bootstrap.servers"]
    config |= {**letters, "name": topic, "sink.path": str(tmp_path / "out")}
    run(engine, {**config, f"{QUEUE}.context.headers.enable": "true"}, 2)
    (record,) = topics.read(f"{topic}.bad")
    place = {name: told(record)[name] for name in ("topic", "partition", "offset")}
    assert (record.key(), record.value()) == (b"\xffk", b"none \xfe")
    assert place == {"topic": topic, "partition": "0", "offset": "1"}


@pytest.mark.spark
def test_rows_of_records_that_a_rule_or_a_table_refuses_keep_the_key_of_their_column(
    engine: Embedded, topics: Topics, topic: str, letters: dict[str, str], tmp_path: Path
) -> None:
    for key, value in (("a", '{"n": 1}'), ("b", '{"n": -1}'), ("c", '{"n": 0}')):
        topics.write(topic, [value], key=key)
    plain = {"value_converter": "json", "value_converter_schemas_enable": "false"}
    config = source_config(
        topics.bootstrap, topics=topic, **plain, schema="n INT", metadata_columns="key"
    )
    config |= {**letters, "name": topic, "sink.path": str(tmp_path / "out"), "transforms": "q,x"}
    config |= {
        "transforms.q.type": "expect",
        "transforms.q.expect.positive": "n >= 0",
        "transforms.q.on.violation": "dead-letter",
        "transforms.x.type": "sql",
        "transforms.x.query": "SELECT _key, n, CAST(if(n = 0, 'x', '1') AS INT) AS m FROM input",
    }
    run(engine, config, 3)
    bad = {each.key(): each.value() for each in topics.read(f"{topic}.bad")}
    assert bad.keys() == {b"b", b"c"}
    assert json.loads(bad[b"b"]) == {"n": -1, "_key": "b"}


class Frame:
    """Letters as the engine has them, as far as a queue looks at them."""

    def __init__(self, texts: list[str], headers: dict[str, str] | None = None) -> None:
        types = {"key": pa.binary(), "value": pa.binary(), "sent_ms": pa.int64()}
        types |= {"format": pa.string(), "columns": pa.list_(pa.string())}
        more = {name: pa.nulls(len(texts), kind) for name, kind in types.items()}
        more["record_headers"] = pa.nulls(len(texts), HEADERS)
        self._columns: dict[str, pa.Array] = {"raw": pa.array(texts), **more}
        if headers is not None:
            kind = pa.map_(pa.string(), pa.string())
            self._columns["headers"] = pa.array([list(headers.items())] * len(texts), kind)

    def toArrow(self) -> pa.Table:  # noqa: N802  # Spark's name
        return pa.table(self._columns)


class Letters:
    """A queue that is given numbers to write as letters."""

    def __init__(self, queue: Any) -> None:
        self.queue = queue

    def __getattr__(self, name: str) -> Any:
        return getattr(self.queue, name)

    def stage(self, rows: pa.Table, commit_id: CommitId, input_bytes: int) -> Manifest:
        texts = rows["n"].cast(pa.string()).to_pylist()
        staged: Manifest = self.queue.stage(Frame(texts), commit_id, input_bytes)
        return staged


def read_all(config: dict[str, str], limit: int) -> list[DeadLetter]:
    """Read the letters of a topic page by page, at most a few at a time."""
    letters, cursor = list[DeadLetter](), ""
    while True:
        page = SparkPipeline.read_letters(config, ExternalAccess(), LetterQuery(limit, cursor))
        assert len(page.letters) <= limit
        letters += page.letters
        if page.next is None:
            return letters
        cursor = page.next


def test_letters_in_a_topic_are_read_newest_first_whatever_stands_between_them(
    topics: Topics,
    topic: str,
    files: dict[str, str],
    letters: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, task = files | letters, Resource(topic, 0)
    with pytest.raises(LettersRefused, match=r"\.bad does not exist"):
        read_all(config, 1)
    topics.make(f"{topic}.bad", partitions=2)
    headers = {"connector.name": "letters", "task.id": "2", "stage": "TASK_PUT", "row": "7"}
    queue = queue_of(config, task).queue
    for number in range(5):  # each is a transaction, which ends with a mark
        named = {f"__connect.errors.{name}": each for name, each in headers.items()}
        commit_id = CommitId(*task, Token(1, 0), number)
        frame = Frame([f"{number}a", f"{number}b"], named)
        queue.publish(queue.stage(frame, commit_id, 0), commit_id, number + 1)
    foreign = [("__connect.errors.connector.name", b"other")]
    topics.write(f"{topic}.bad", ["of another one"], headers=foreign)
    topics.write(f"{topic}.bad", [b"\xff" + b"z" * 2_000])
    for most_bytes in (1 << 20, 1_000):
        monkeypatch.setattr(letter_records, "_MOST_BYTES", most_bytes)
        found = read_all(config, 3)
        assert found[0].raw == "\ufffd" + "z" * 2_000
        texts = [f"{number}{letter}" for number in range(5) for letter in "ab"]
        assert sorted(each.raw or "" for each in found[1:]) == texts
        assert {each[2:4] + each[5:] for each in found[1:]} == {("sink", "row 7", 2, None)}
    queue.close()


def test_a_topic_whose_brokers_are_away_is_out_of_reach(
    files: dict[str, str], letters: dict[str, str]
) -> None:
    config = files | letters | {f"{QUEUE}.bootstrap.servers": "127.0.0.1:1"}
    with pytest.raises(SinkAway, match=r"127\.0\.0\.1:1"):
        read_all(config, 1)


def queue_of(config: dict[str, str], task: Resource = TASK) -> Any:
    """Return what writes a task's dead letters as its config describes it."""
    assert SparkPipeline.validate(config).errors == {}
    settings = keys.task_keys_of(config).parse(config)
    return Letters(queue_sink(Context(task, print, cluster_id=CLUSTER), config, settings))


def halve(letters: Any, pause: Callable[[], None]) -> None:
    """Have a queue pause inside its transaction, with the records sent."""
    publisher = letters.queue._topic._sink._publisher
    drain = publisher._drain

    def pausing(*given: Any) -> None:
        drain(*given)
        pause()

    publisher._drain = pausing


@pytest.mark.parametrize("point", POINTS[2:])
def test_letters_that_count_are_in_the_topic_once_wherever_their_owner_died(
    topics: Topics, topic: str, files: dict[str, str], letters: dict[str, str], point: str
) -> None:
    log = SinkLog(Resource(topic, 0))
    config = files | letters
    owner = Owner(queue_of(config, log.task), log, point, halve)
    successor = succeed(queue_of(config, log.task), log)
    owner.wake()
    assert isinstance(owner.error, SinkAway if point == HALF else type(None)), owner.error
    assert topics.values(f"{topic}.bad") == ["1", "2", "3", "4", "5"]
    assert [*Path(config[f"{QUEUE}.staging.path"]).rglob("*.arrow")] == []
    owner.end()
    successor.close()


def test_a_letter_that_the_topic_does_not_take_is_refused_before_its_batch_counts(
    topics: Topics, topic: str, files: dict[str, str], letters: dict[str, str]
) -> None:
    topics.make(f"{topic}.bad", max_message_bytes="2000")
    queue = queue_of(files | letters).queue
    commit_id = CommitId(*TASK, Token(1, 0), 0)
    with pytest.raises(RowsRefused, match=r"accepts at most 2000: raise its max\.message\.bytes"):
        queue.stage(Frame(["x" * 900], {"reason": "y" * 900}), commit_id, 0)
    assert queue.stage(Frame(["x" * 900, "x"], {"reason": "y" * 600}), commit_id, 0).rows == 2
    queue.close()


def test_letters_for_a_topic_that_the_config_no_longer_names_are_kept_and_told(
    topics: Topics, topic: str, files: dict[str, str], letters: dict[str, str]
) -> None:
    task = Resource(topic, 0)
    first = queue_of(files | letters, task).queue
    commit_id = CommitId(*task, Token(1, 0), 0)
    topics.make(f"{topic}.bad")
    manifest = first.stage(Frame(["foo"]), commit_id, 0)
    with pytest.raises(SinkBroken, match=r"set errors\.deadletterqueue\.topic\.name again"):
        queue_of(files, task).publish(manifest, commit_id, 1)
    first.publish(manifest, commit_id, 1)
    assert topics.values(f"{topic}.bad") == ["foo"]
    first.close()
