# pyright: basic
"""Topics as a sink: what records are made of rows, and what is refused before it counts."""

import json
import os
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fairlead.events.commits import CommitId
from fairlead.events.model import Resource
from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.connector import Delivery
from fairlead.runtime.pipeline.spi.context import ExternalAccess
from fairlead.runtime.pipeline.spi.errors import (
    BadInput,
    RowsRefused,
    SchemaRefused,
    SinkAway,
    SinkBroken,
    SinkFull,
)
from fairlead.runtime.pipeline.spi.sink import Sink, TaskOwnership
from fairlead.runtime.pipeline.spi.types import WrittenColumns
from fairlead.runtime.pipeline.stores.kafka.sink.staging import StagingFolder
from fairlead_tests.connectors.pipes import CLUSTER, sink_of
from fairlead_tests.connectors.publish_once import FIRST, SECOND, SinkLog
from fairlead_tests.kafka.pipes import sink_config
from fairlead_tests.kafka.topics import Topics

KIND = keys.SINK_TYPES.find("kafka")
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def log(topic: str) -> SinkLog:
    return SinkLog(Resource(topic, 0))


@pytest.fixture
def sink(topics: Topics, tmp_path: Path, log: SinkLog) -> Any:
    """Make a sink as a config says, which has begun."""
    made: list[Sink[Any]] = []

    def sink(**given: str) -> Sink[Any]:
        config = sink_config(topics.bootstrap, tmp_path / "staging", **given)
        made.append(sink_of(config, log.task))
        log.acquire(made[-1], FIRST)
        return made[-1]

    yield sink
    for each in made:
        each.close()


def test_records_have_values_keys_times_and_headers_of_their_rows(
    topics: Topics, topic: str, sink: Any, log: SinkLog
) -> None:
    rows = pa.table(
        {
            "n": [1, None],
            "at": [datetime(2024, 2, 29, tzinfo=UTC), None],
            "d": pa.array([Decimal("1.25"), None], pa.decimal128(5, 2)),
            "_key": ["k", "gone"],
            "_timestamp": pa.array([1_700_000_000_123_000] * 2, pa.timestamp("us", tz="UTC")),
            "_headers": [[{"key": "h", "value": b"\xff"}], None],
            "_offset": [7, 8],
        }
    )
    log.write(sink(topic=topic), rows)
    first, second = topics.read(topic)
    assert json.loads(first.value()) == {"n": 1, "at": "2024-02-29T00:00:00Z", "d": 1.25}
    assert (first.key(), first.timestamp()[1]) == (b"k", 1_700_000_000_123)
    assert first.headers() == [("h", b"\xff")]
    assert (second.key(), second.value()) == (b"gone", None)


def test_a_time_of_1970_is_no_time_of_now_and_one_before_it_is_refused(
    topics: Topics, topic: str, sink: Any, log: SinkLog
) -> None:
    made = sink(topic=topic)
    times = pa.array([0, 999, 1_000, None], pa.timestamp("us", tz="UTC"))
    log.write(made, pa.table({"n": range(4), "_timestamp": times}))
    *past, now = [each.timestamp()[1] for each in topics.read(topic)]
    assert past == [1, 1, 1]
    assert now > 1_700_000_000_000
    before = pa.array([0, -1_000], pa.timestamp("us", tz="UTC"))
    with pytest.raises(BadInput, match="a _timestamp before 1970"):
        log.stage(made, pa.table({"n": [1, 2], "_timestamp": before}))


def test_a_key_of_columns_and_a_topic_of_a_column(
    topics: Topics, topic: str, sink: Any, log: SinkLog
) -> None:
    other = topics.make(f"{topic}.2")
    rows = pa.table({"to": [topic, other], "a": [1, 2], "b": ["x", "y"]})
    given = {"key_columns": "a,b", "key_converter": "json"}
    log.write(sink(topic_column="to", **given), rows)
    log.write(sink(topic_column="to", **given), rows)
    found = [(each.topic(), each.key(), each.value()) for each in topics.read(topic, other)]
    one, two = b'{"a":1,"b":"x"}', b'{"a":2,"b":"y"}'
    assert sorted(found) == sorted([(topic, one, one), (other, two, two)] * 2)


def test_values_as_text_as_bytes_and_in_connects_envelope(
    topics: Topics, topic: str, sink: Any, log: SinkLog
) -> None:
    log.write(sink(topic=topic, value_converter="string"), pa.table({"n": [1]}))
    log.write(sink(topic=topic, value_converter="bytes"), pa.table({"_value": [b"\xff"]}))
    rows = pa.table({"day": [date(1970, 1, 2)], "s": [{"t": datetime(1970, 1, 1, 0, 0, 1)}]})  # noqa: DTZ001
    log.write(sink(topic=topic, value_converter_schemas_enable="true"), rows)
    text, plain, envelope = (each.value() for each in topics.read(topic))
    assert (text, plain) == (b"1", b"\xff")
    told = json.loads(envelope)
    assert told["payload"] == {"day": 1, "s": {"t": 1000}}
    day, inner = told["schema"]["fields"]
    assert (day["type"], day["name"]) == ("int32", "org.apache.kafka.connect.data.Date")
    (time,) = inner["fields"]
    assert (time["type"], time["name"]) == ("int64", "org.apache.kafka.connect.data.Timestamp")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"key_columns": "x"}, "there is no column x; there are n, s"),
        ({"value_converter": "string"}, "a value as string is made of one column, not of n, s"),
        ({"value_converter": "bytes", "key_columns": "n", "key_converter": "bytes"}, "as bytes"),
    ],
)
def test_rows_that_cannot_be_written_are_refused_beforehand(
    tmp_path: Path, given: dict[str, str], why: str
) -> None:
    sink = sink_of(sink_config(NOWHERE, tmp_path, topic="t", **given))
    with pytest.raises(SchemaRefused, match=why):
        sink.prepare(pa.schema([("n", pa.int64()), ("s", pa.string())]))


def test_a_row_that_is_too_large_for_its_topic_is_refused_before_it_counts(
    topics: Topics, topic: str, sink: Any, log: SinkLog
) -> None:
    small = topics.make(f"{topic}.small", max_message_bytes="1000")
    with pytest.raises(
        BadInput, match=r"a record of \d+ bytes, but topic .* accepts at most 1000: raise"
    ):
        log.stage(sink(topic=small), pa.table({"s": ["x" * 2000]}))
    log.write(sink(topic=small), pa.table({"s": ["x" * 300] * 200}))
    assert len(topics.values(small)) == 200


def test_rows_that_a_topic_never_accepts_are_refused_before_they_count(
    topics: Topics, topic: str, sink: Any, log: SinkLog
) -> None:
    compacted = topics.make(f"{topic}.compacted", cleanup_policy="compact,delete")
    keyed = {"k": [1, 2], "n": [1, 2]}
    with pytest.raises(RowsRefused, match=r"without a key, but topic .*compacted is compacted"):
        log.stage(sink(topic=compacted), pa.table(keyed))
    with pytest.raises(RowsRefused, match="without a key"):
        log.stage(sink(topic=compacted), pa.table({"_key": ["a", None], "n": [1, 2]}))
    log.write(sink(topic=compacted, key_columns="k"), pa.table(keyed))
    assert len(topics.values(compacted)) == 2
    kind, now = pa.timestamp("us", "UTC"), datetime.now(UTC)
    day = timedelta(days=1)
    young = topics.make(f"{topic}.young", message_timestamp_before_max_ms="3600000")
    for name, time, why in ((topic, now + day, "in the future"), (young, now - day, "is too old")):
        rows = {"n": [1, 2], "_timestamp": pa.array([now, time], kind)}
        with pytest.raises(RowsRefused, match=f"a _timestamp .*{why}"):
            log.stage(sink(topic=name), pa.table(rows))
        log.write(sink(topic=name), pa.table({"n": [1], "_timestamp": pa.array([now], kind)}))
    stamped = topics.make(f"{topic}.stamped", message_timestamp_type="LogAppendTime")
    log.write(sink(topic=stamped), pa.table(rows))
    assert len(topics.values(stamped)) == 2
    with pytest.raises(RowsRefused, match="'no topic' in column t, which is no topic's name"):
        log.stage(sink(topic_column="t"), pa.table({"n": [1], "t": ["no topic"]}))


def test_a_topic_that_is_not_there_is_waited_for(sink: Any, log: SinkLog) -> None:
    with pytest.raises(SinkAway, match="topic none"):
        log.stage(sink(topic="none"), pa.table({"n": [1]}))


def test_brokers_that_are_away_are_waited_for(tmp_path: Path) -> None:
    sink = sink_of(sink_config(NOWHERE, tmp_path, topic="t"))
    with pytest.raises(SinkAway, match="Connection refused"):
        sink.acquire(TaskOwnership(Resource("c", 0), FIRST, None))


def test_what_never_counted_is_removed_with_its_token_and_older_ones(tmp_path: Path) -> None:
    folder = StagingFolder(tmp_path / "deep" / "staging")
    task, other = Resource("a/b", 0), Resource("a/b", 1)
    records = pa.table({"topic": ["t"]})
    for each, token in ((task, FIRST), (task, SECOND), (other, FIRST)):
        folder.write(CommitId(*each, token, 0), records)
    (folder.root / "a%2Fb-0" / "of somebody else").touch()
    folder.sweep(task, FIRST)
    left = sorted(str(each.relative_to(folder.root)) for each in folder.root.rglob("*.arrow"))
    assert left == ["a%2Fb-0/2-0/0.arrow", "a%2Fb-1/1-0/0.arrow"]
    assert folder.write(CommitId("é" * 99, 0, FIRST, 0), records)


def test_a_batch_that_found_no_room_to_be_staged_is_staged_once_there_is_some(
    topics: Topics, topic: str, sink: Any, log: SinkLog, tmp_path: Path
) -> None:
    opened, rows = sink(topic=topic), pa.table({"n": [1]})
    commit_id = CommitId(*log.task, FIRST, 0)
    file = tmp_path / "staging" / StagingFolder(tmp_path).name_of(commit_id)
    file.parent.mkdir(parents=True)
    file.symlink_to("/dev/full")
    with pytest.raises(SinkFull, match=rf"^{file}: no space left on device$"):
        log.stage(opened, rows)
    opened.discard(commit_id)
    log.batch = 0
    log.write(opened, rows)
    assert topics.values(topic) == ['{"n":1}']


def test_a_staged_file_that_is_not_on_this_host_is_told(
    topic: str, sink: Any, log: SinkLog, tmp_path: Path
) -> None:
    mine = sink(topic=topic)
    log.count(log.stage(mine, pa.table({"n": [1]})))
    for each in tmp_path.rglob("*.arrow"):
        each.unlink()
    with pytest.raises(SinkBroken, match=r"set sink\.staging\.path to a folder that all"):
        log.publish(mine)


def test_a_staged_batch_that_its_topic_has_become_too_strict_for_is_told_and_kept(
    topics: Topics, topic: str, sink: Any, log: SinkLog
) -> None:
    at = pa.array([datetime.now(UTC) - timedelta(hours=1)], pa.timestamp("us", "UTC"))
    mine = sink(topic=topic)
    log.count(log.stage(mine, pa.table({"n": [1], "_timestamp": at})))
    topics.configure(topic, message_timestamp_before_max_ms="1000")
    with pytest.raises(SinkBroken, match=r"too old.*kept: raise message\.timestamp\.before\.max"):
        log.publish(mine)
    topics.configure(topic, message_timestamp_before_max_ms="86400000")
    log.publish(mine)
    assert topics.values(topic) == ['{"n":1}']


@pytest.mark.parametrize("rule", ["fail", "publish", "skip"])
def test_a_batch_that_waited_for_longer_than_marks_stand_is_not_published_by_itself(
    topics: Topics, topic: str, sink: Any, log: SinkLog, rule: str
) -> None:
    mine = sink(topic=topic, offsets_retention_ms="1", unmarked_batch=rule)
    log.count(log.stage(mine, pa.table({"n": [1]})))
    if rule == "fail":
        with pytest.raises(SinkBroken, match="it is unknown whether the batch was published"):
            log.publish(mine)
    else:
        log.publish(mine)
    assert topics.values(topic) == (['{"n":1}'] if rule == "publish" else [])


@pytest.mark.parametrize("rule", ["fail", "publish", "skip"])
def test_a_batch_that_waits_for_the_brokers_of_an_earlier_config_goes_to_others_only_if_told_so(
    topics: Topics, topic: str, sink: Any, log: SinkLog, rule: str
) -> None:
    mine = sink(topic=topic, unmarked_batch=rule)
    commit_id, manifest = log.stage(mine, pa.table({"n": [1]}))
    here = manifest.note["kafka.cluster"]
    log.count((commit_id, replace(manifest, note={**manifest.note, "kafka.cluster": "former"})))
    if rule == "fail":
        with pytest.raises(SinkBroken, match=f"staged for the Kafka cluster former; .* to {here}"):
            log.publish(mine)
    else:
        log.publish(mine)
    assert topics.values(topic) == (['{"n":1}'] if rule == "publish" else [])
    log.waiting.clear()
    log.write(mine, pa.table({"n": [2]}))
    assert topics.values(topic)[-1] == '{"n":2}'


def test_a_mark_of_another_cluster_or_of_a_newer_log_is_not_passed_over(
    topics: Topics, topic: str, sink: Any, log: SinkLog, tmp_path: Path
) -> None:
    log.write(sink(topic=topic), pa.table({"n": [1]}))
    config = sink_config(topics.bootstrap, tmp_path, topic=topic)
    stranger = sink_of(config, log.task, "other")
    with pytest.raises(SinkBroken, match=rf"another cluster \({CLUSTER}\) writes as fairlead"):
        stranger.acquire(TaskOwnership(log.task, FIRST, None))
    older = sink_of(config, log.task)
    with pytest.raises(SinkBroken, match="Kafka is newer than this log"):
        older.acquire(TaskOwnership(log.task, SECOND, None))
    assert log.last is not None
    newer = log.last._replace(batch=9)
    with pytest.raises(SinkBroken, match="Kafka is older than this log"):
        older.acquire(TaskOwnership(log.task, SECOND, newer, newer))


def test_a_config_is_looked_at_with_its_topic_its_columns_and_its_folder(
    topics: Topics, topic: str, tmp_path: Path
) -> None:
    def look(bootstrap: str, **given: str) -> Any:
        return KIND.probe(sink_config(bootstrap, tmp_path, **given), ExternalAccess())

    assert look(topics.bootstrap, topic=topic) == look(topics.bootstrap, topic_column="to")
    (told,) = look(topics.bootstrap, topic="none").warnings
    assert told == "sink.topic: none does not exist: the connector waits for it"
    assert "Connection refused" in look(NOWHERE, topic="t").warnings[0]
    config = sink_config(NOWHERE, tmp_path, topic_column="to", key_columns="a")
    fits = KIND.check_columns(config, WrittenColumns(["a", "b"]))
    assert fits.errors == {"sink.topic.column": "there is no column to; there are a, b"}
    both = sink_config(NOWHERE, tmp_path, topic="t", topic_column="to", key_columns="a,b")
    errors = SparkPipeline.validate(both).errors
    assert errors["sink.topic"] == ("give either sink.topic or sink.topic.column",)
    assert errors["sink.key.converter"] == ("a key of several columns needs json or avro",)
    assert os.listdir(tmp_path) == []  # noqa: PTH208  # a look leaves nothing


def test_a_sink_that_is_at_least_once_sends_at_once_and_publishes_what_waits_from_before(
    topics: Topics, topic: str, tmp_path: Path, sink: Any, log: SinkLog
) -> None:
    before = sink(topic=topic)
    log.count(log.stage(before, pa.table({"n": [1]})))
    config = sink_config(topics.bootstrap, tmp_path / "staging", topic=topic)
    config["delivery.guarantee"] = "at-least-once"
    promise = SparkPipeline.delivery_of(config)
    assert promise.delivery is Delivery.AT_LEAST_ONCE
    hasty = sink_of(config, log.task)
    log.acquire(hasty, SECOND)
    assert hasty.writes_at_once
    rows = pa.table({"n": range(2, 30_000)})
    manifest = hasty.write(rows, CommitId(*log.task, SECOND, 0), rows.nbytes)
    assert (manifest.rows, manifest.is_empty) == (rows.num_rows, True)
    hasty.close()
    assert [json.loads(each)["n"] for each in topics.values(topic)] == list(range(1, 30_000))


def test_a_broker_that_is_away_is_told_by_a_sink_that_sends_at_once(tmp_path: Path) -> None:
    config = sink_config(NOWHERE, tmp_path, topic="t")
    hasty = sink_of({**config, "delivery.guarantee": "at-least-once"}, Resource("c", 0))
    with pytest.raises(SinkAway, match=NOWHERE):
        hasty.write(pa.table({"n": [1]}), CommitId("c", 0, FIRST, 0), 8)
    hasty.close()
