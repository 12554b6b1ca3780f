# pyright: basic
"""How many records a second one task takes from Kafka into files, and from rows into Kafka.

`python tests/benchmarks/bench_kafka.py` prints JSON lines. The peers are the loops that one would
write by hand with the same client, and plain Spark with its package for Kafka, in the same run:
they promise nothing about a crash.
"""

import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
import pyarrow as pa
import pyarrow.parquet as papq
from confluent_kafka import Consumer, Producer, TopicPartition

from fairlead.events.model import Resource, Token
from fairlead.projections.launches import Launch
from fairlead.runtime.pipeline.connectors.plugins import find_plugins
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.settings import known_settings
from fairlead.runtime.pipeline.tasks.reports import TaskConfigsChanged
from fairlead.runtime.pipeline.tasks.runner import Runner
from fairlead_tests.benchmarks.figures import tell
from fairlead_tests.connectors.pipes import sink_of
from fairlead_tests.connectors.publish_once import FIRST, SinkLog
from fairlead_tests.java_peer import NoPeer
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.pipes import sink_config, source_config
from fairlead_tests.kafka.plain_spark import seconds_of_spark
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.tasks.memory_ledger import MemoryLedger
from fairlead_tests.tasks.numbers import Reports

RECORDS: Final = 1_500_000
ROWS: Final = 200_000
PARTITIONS: Final = 4
JSON: Final = {"value_converter": "json", "value_converter_schemas_enable": "false"}
SCHEMA: Final = "id BIGINT, name STRING, amount DOUBLE, filler STRING"


def main() -> None:
    """Measure the source, then the sink."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "broker").mkdir()
        try:
            broker = Broker(root / "broker")
            broker.up()
        except NoPeer as reason:
            print(f"Kafka cannot be had: {reason}", file=sys.stderr)
            return
        try:
            measure(Topics(broker.bootstrap), root)
        finally:
            broker.kill()


def measure(topics: Topics, root: Path) -> None:
    size = fill(topics)
    conditions = f"{RECORDS} records of {size} bytes, {PARTITIONS} partitions, one task, one broker"
    peer = RECORDS / by_hand(topics, root / "by-hand")
    engine = Embedded(root / "engine", cores=2)
    engine.open()
    assert engine.wait_warm(120), engine.detail
    plain = {"topics": "bench", "metadata_columns": "key,partition,offset,timestamp"}
    kinds: Mapping[str, Mapping[str, str]] = {
        "text": {},
        "json": {**JSON, "schema": SCHEMA},
    }
    for kind, given in kinds.items():
        config = source_config(topics.bootstrap, **plain, **given)
        config["sink.path"] = str(root / kind)
        before = cpu_seconds()
        seconds = piped(engine, config)
        cost = (cpu_seconds() - before) / RECORDS * 1e6
        name, told = f"kafka_to_parquet_{kind}", f"{conditions}, {cost:.1f} µs of a core for each"
        peers = {"confluent-kafka consumer loop into parquet, values as text": peer}
        peers |= plain_spark(topics, root / f"spark-{kind}", given.get("schema", ""))
        for of, value in peers.items():
            rate = RECORDS / seconds
            tell(name, rate, "records/s", peer=of, peer_value=value, conditions=told)
    engine.close(30)
    sink(topics, root)


def plain_spark(topics: Topics, out: Path, schema: str) -> Mapping[str, float]:
    """Return how fast Spark is alone, by what it is called; nothing where it cannot be had."""
    try:
        seconds = seconds_of_spark(topics.bootstrap, "bench", out, schema)
    except NoPeer as reason:
        print(reason, file=sys.stderr)
        return {}
    return {"plain Spark with spark-sql-kafka 4.2.0, one batch on two cores": RECORDS / seconds}


def cpu_seconds() -> float:
    """Return what this process and the engine's have used of cores, the broker's left out."""
    mine = psutil.Process()
    beside = [each for each in mine.children() if "kafka.Kafka" not in each.cmdline()]
    return sum(sum(each.cpu_times()[:2]) for each in (mine, *beside))


def fill(topics: Topics) -> int:
    """Write the records; return how many bytes a value has."""
    topics.make("bench", PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": topics.bootstrap,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 0,
        }
    )
    value = b""
    for number in range(RECORDS):
        value = b'{"id": %d, "name": "n%d", "amount": %d.5, "filler": "%s"}' % (
            number,
            number % 1000,
            number,
            b"x" * 40,
        )
        while True:
            try:
                producer.produce("bench", value, key=b"k%d" % number, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0
    return len(value)


def by_hand(topics: Topics, out: Path) -> float:
    """Return how long a loop takes that consumes and writes parquet."""
    out.mkdir()
    consumer = Consumer(
        {
            "bootstrap.servers": topics.bootstrap,
            "group.id": "by-hand",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    began, seen, files = time.perf_counter(), 0, 0
    consumer.assign([TopicPartition("bench", number, 0) for number in range(PARTITIONS)])
    while seen < RECORDS:
        batch: list[Any] = []
        while len(batch) < 400_000 and seen + len(batch) < RECORDS:
            batch += consumer.consume(10_000, 1)
        table = pa.table(
            {
                "_value": pa.array([each.value() for each in batch], pa.string()),
                "_key": pa.array([each.key() for each in batch], pa.string()),
                "_partition": pa.array([each.partition() for each in batch], pa.int32()),
                "_offset": pa.array([each.offset() for each in batch], pa.int64()),
                "_timestamp": pa.array([each.timestamp()[1] for each in batch], pa.int64()),
            }
        )
        papq.write_table(table, out / f"{files}.parquet")
        seen, files = seen + len(batch), files + 1
    consumer.close()
    return time.perf_counter() - began


def piped(engine: Embedded, config: Mapping[str, str]) -> float:
    """Return how long a task takes from its start to the last batch being published."""
    reports, ledger, token, name = Reports(), MemoryLedger(), Token(1, 0), config["name"]
    runner = Runner(engine, ledger, find_plugins(), reports, spark_settings=known_settings({}))
    runner.start(Launch(Resource(name), token, config, config))
    made = reports.wait(lambda each: isinstance(each, TaskConfigsChanged))
    assert isinstance(made, TaskConfigsChanged)
    began = time.perf_counter()
    runner.start(Launch(Resource(name, 0), token, config, made.configs[0]))
    while sum(each.manifest.rows for each in reports.commits) < RECORDS:
        time.sleep(0.02)
    taken = time.perf_counter() - began
    assert runner.close(60) == frozenset()
    return taken


def sink(topics: Topics, root: Path) -> None:
    """Tell how fast rows are staged and published, beside a producer without a transaction."""
    topics.make("out", PARTITIONS)
    numbers = range(ROWS)
    rows = pa.table({"id": numbers, "name": [f"n{n}" for n in numbers], "amount": [0.5] * ROWS})
    log = SinkLog(Resource("bench", 0))
    made = sink_of(sink_config(topics.bootstrap, root / "staging", topic="out"), log.task)
    log.acquire(made, FIRST)
    log.write(made, rows.slice(0, 1000))
    began = time.perf_counter()
    log.write(made, rows)
    ours = time.perf_counter() - began
    made.close()
    tell(
        "rows_to_kafka_json",
        ROWS / ours,
        "rows/s",
        peer="confluent-kafka producer loop without a transaction, values by msgspec",
        peer_value=ROWS / produced(topics, rows),
        conditions=f"one batch of {ROWS} rows, staged, fsynced and published",
    )


def produced(topics: Topics, rows: pa.Table) -> float:
    """Return how long a loop takes that produces the same rows."""
    settings = {"bootstrap.servers": topics.bootstrap, "queue.buffering.max.messages": ROWS + 1}
    producer, encode = Producer(settings), msgspec.json.Encoder().encode
    producer.list_topics("out", 10)
    began = time.perf_counter()
    for row in rows.to_pylist():
        producer.produce("out", encode(row))
    assert producer.flush(60) == 0
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
