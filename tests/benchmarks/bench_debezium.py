# pyright: basic
"""Debezium's connector for PostgreSQL, here and in a real worker of Connect beside it.

`python tests/benchmarks/bench_debezium.py` prints JSON lines. Both have the same jars, broker,
database and options of the JVM, and one worker. The connector copies a table that is there, and
then what is inserted: to a topic as in Connect, and into parquet files and another database by
fairlead's sinks. A batch of these is what a poll returns, or what comes in an interval. The peer of
all is Connect, with its broker. A row counts when the broker has it, when its file is published, or
when the table has it.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import httpx
import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition

from fairlead_tests.benchmarks.figures import median, tell
from fairlead_tests.java_peer import QUICK, NoPeer
from fairlead_tests.kafka.broker import broker_at
from fairlead_tests.plugins.connect_node import ONE_BROKER, ONE_REPLICA, connect_node, until
from fairlead_tests.plugins.installed import DEBEZIUM, WORKER, installation, plugin_path
from fairlead_tests.plugins.real_worker import real_worker, topics_of
from fairlead_tests.postgres_server import PASSWORD, Database, NoServer, PostgresServer, started

ROWS: Final = 200_000
"""The rows that are there, and as many again that are inserted."""
TRANSACTION: Final = 1_000
"""The rows of a transaction."""
TIMES: Final = 3
PATIENCE_S: Final = 300.0
LOOK_S: Final = 0.02
UNWRAP: Final = "io.debezium.transforms.ExtractNewRecordState"
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
OPEN_PAGES: Final = 64
"""The pages at a table's end that may not be full."""
NO_PAGE: Final = 2**32 - 1
NEW_ROWS: Final = """
    SELECT coalesce(max((ctid::text::point)[0]::bigint), 0), count(*) FROM items
    WHERE ctid >= %s::tid AND ctid < %s::tid
"""
WAYS: Final = ("theirs", "topic", "parquet", "parquet_interval", "postgres")
INTERVAL_MS: Final = 500


def main() -> None:
    """Measure all ways, in turns; the first of each warms the JVMs up."""
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder, ExitStack() as stack:
        root = Path(folder)
        try:
            broker = stack.enter_context(broker_at(root / "broker"))
            server = stack.enter_context(started())
        except (NoPeer, NoServer) as reason:
            print(f"there is nothing to measure: {reason}", file=sys.stderr)
            return
        path = plugin_path(root / "plugins", DEBEZIUM)
        options = {"plugin.host.java.options": " ".join(QUICK), "workers": 1}
        node = stack.enter_context(connect_node(root / "node", broker.bootstrap, path, options))
        properties = {**WORKER, **ONE_BROKER, **topics_of("bench"), "plugin.path": str(path)}
        properties["bootstrap.servers"] = broker.bootstrap
        theirs, _ = stack.enter_context(real_worker(installation(), properties, root))
        rates: dict[str, list[tuple[float, float]]] = {each: [] for each in WAYS}
        for turn in range(TIMES + 1):
            for way in WAYS:
                rest = theirs if way == "theirs" else node.rest
                run = Run(way, f"{way}{turn}", rest, server, broker.bootstrap, root)
                rates[way].append(run.measure())
                print(f"{way} {turn}: {rates[way][-1]}", file=sys.stderr)
    report(rates)


class Run:
    """One connector that copies one table, there and back to nothing."""

    def __init__(
        self,
        way: str,
        name: str,
        rest: httpx.Client,
        server: PostgresServer,
        bootstrap: str,
        root: Path,
    ) -> None:
        self._way, self._name, self._rest = way, name, rest
        self._source = server.empty(name)
        self._target = server.empty(f"{name}_copy") if way == "postgres" else None
        self._folder = root / name
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
        self._counted = dict[Path, int]()
        """The rows of each file that is there."""
        self._pages = (0, 0)
        """The pages of the target's table that are full, and their rows."""

    def measure(self) -> tuple[float, float]:
        """Return the rows/s of the table, and of what is inserted then."""
        self._source.run(
            "CREATE TABLE items (id bigserial PRIMARY KEY, price numeric(8,2), t text)"
        )
        self._insert(ROWS)
        answer = self._rest.put(f"/connectors/{self._name}/config", json=self._config())
        assert answer.is_success, answer.text
        wait(lambda: self._count() > 0)
        begun, before = time.perf_counter(), self._count()
        wait(lambda: self._count() >= ROWS)
        snapshot = (ROWS - before) / (time.perf_counter() - begun)
        until(self._slot, "it reads the log")
        begun = time.perf_counter()
        for _ in range(ROWS // TRANSACTION):
            self._insert(TRANSACTION)
        wait(lambda: self._count() >= 2 * ROWS)
        stream = ROWS / (time.perf_counter() - begun)
        self._rest.delete(f"/connectors/{self._name}")
        until(self._drops_slot, "nobody reads the log")
        return snapshot, stream

    def _insert(self, rows: int) -> None:
        insert = "INSERT INTO items (price, t) SELECT n %% 1000, md5(n::text) FROM"
        self._source.run(f"{insert} generate_series(1, %s) n", rows)

    def _slot(self) -> bool:
        query = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
        found = self._source.run(query, self._name)
        return bool(found) and bool(found[0][0])

    def _drops_slot(self) -> bool:
        if self._slot():
            return False
        self._source.run("SELECT pg_drop_replication_slot(%s)", self._name)
        return True

    def _count(self) -> int:
        if self._way.startswith("parquet"):
            for each in self._folder.glob("*.parquet"):
                if each not in self._counted:
                    self._counted[each] = pq.read_metadata(each).num_rows
            return sum(self._counted.values())
        if self._target is not None:
            if not self._target.run("SELECT to_regclass('items')")[0][0]:
                return 0
            return self._rows_of(self._target)
        topic = f"{self._name}.public.items"
        if topic not in self._consumer.list_topics(timeout=60).topics:
            return 0
        return int(self._consumer.get_watermark_offsets(TopicPartition(topic, 0), 60)[1])

    def _rows_of(self, target: Database) -> int:
        """Count the rows of a table that only grows, each full page once.

        A count of the whole table at each look takes a core, of two, from what is measured.
        """
        full, rows = self._pages
        newest, more = target.run(NEW_ROWS, f"({full},0)", f"({NO_PAGE},0)")[0]
        if (fuller := newest - OPEN_PAGES) > full:
            between = target.run(NEW_ROWS, f"({full},0)", f"({fuller},0)")[0][1]
            self._pages = (fuller, rows + between)
        return int(rows + more)

    def _config(self) -> Mapping[str, str]:
        server = self._source.server
        config = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": "postgres",
            "database.password": PASSWORD,
            "database.dbname": self._source.name,
            "topic.prefix": self._name,
            "slot.name": self._name,
            "publication.name": self._name,
            "table.include.list": "public.items",
            "plugin.name": "pgoutput",
            "decimal.handling.mode": "double",
            "transforms": "unwrap",
            "transforms.unwrap.type": UNWRAP,
        }
        if self._way == "parquet_interval":
            config["transaction.boundary"] = "interval"
            config["transaction.boundary.interval.ms"] = str(INTERVAL_MS)
        if self._way.startswith("parquet"):
            files = {"sink.type": "files", "sink.format": "parquet"}
            return {**config, **files, "sink.path": str(self._folder)}
        if self._target is not None:
            return {**config, **_into(self._target)}
        plain = {f"{each}.converter.schemas.enable": "false" for each in ("key", "value")}
        return {**config, **plain, "key.converter": JSON, "value.converter": JSON, **ONE_REPLICA}


def _into(target: Database) -> Mapping[str, str]:
    return {
        "sink.type": "postgres",
        "sink.connection.url": f"postgresql://127.0.0.1:{target.server.port}/{target.name}",
        "sink.connection.user": "postgres",
        "sink.connection.password": PASSWORD,
        "sink.table.name.format": "items",
        "sink.auto.create": "true",
    }


def wait(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds, looking often."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "nothing comes any more"
        time.sleep(LOOK_S)


def report(rates: Mapping[str, list[tuple[float, float]]]) -> None:
    """Print the medians, each beside Connect's."""
    for at, what in enumerate(("snapshot", "stream")):
        found = {
            way: median(sorted(each[at] for each in turns[1:])) for way, turns in rates.items()
        }
        how = f"{ROWS} rows, median of {TIMES}; Connect's to its topic"
        for way in WAYS[1:]:
            tell(
                f"Debezium {what} to {way}",
                found[way],
                "rows/s",
                peer="Connect worker",
                peer_value=found["theirs"],
                conditions=how,
            )


if __name__ == "__main__":
    main()
