"""A source of Connect's that feeds a sink of fairlead's, both with a writer and a reader.

Each value is a number of eight digits: a line of a file, a record of a topic, or a row of a table,
of which one of Kafka's own transforms leaves that column. A target returns what it has.
"""
# pyright: basic

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import psycopg
import pyarrow.parquet as pq
from confluent_kafka import Producer

from fairlead_tests.kafka.topics import Topics
from fairlead_tests.plugins.connect_node import ONE_REPLICA, STRING, ConnectNode, until
from fairlead_tests.plugins.mirror import mirroring
from fairlead_tests.postgres_server import PASSWORD, PostgresServer

PAUSE_S: Final = 0.02
"""Between two values of the writer."""
DIGITS: Final = 8
PARTITIONS: Final = 3
"""Of a topic that is read; each value goes to the next one."""
REQUIRED: Final = {"exactly.once.support": "required"}


class Lines:
    """The lines of a file."""

    tasks = 1
    """How many tasks read them."""

    def __init__(self, path: Path, topic: str) -> None:
        path.touch()
        source = {"connector.class": "FileStreamSource", "file": str(path), "topic": topic}
        self.config, self.topic = {**source, **REQUIRED}, topic
        self._path = path

    def write(self, value: str) -> None:
        """Write a value, once whatever happens."""
        with self._path.open("a") as file:
            file.write(f"{value}\n")


class Records:
    """The records of a topic."""

    tasks = 2

    def __init__(self, topics: Topics, topic: str) -> None:
        self.config = mirroring(topics.bootstrap, topics.make(topic, PARTITIONS))
        self.topic, self._from = f"there.{topic}", topic
        own = {"enable.idempotence": True, "linger.ms": 0, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": topics.bootstrap, **own})

    def write(self, value: str) -> None:
        """Write a value, once whatever happens."""
        self._producer.produce(self._from, value, partition=int(value) % PARTITIONS)
        self._producer.poll(0)


class Rows:
    """The rows of a table that Debezium captures."""

    tasks = 1

    def __init__(self, server: PostgresServer, name: str) -> None:
        self._database = server.empty(name)
        self._database.run("CREATE TABLE items (id int PRIMARY KEY, word text)")
        self.topic = f"{name}.public.items"
        self.config = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": "postgres",
            "database.password": PASSWORD,
            "database.dbname": name,
            "topic.prefix": name,
            "slot.name": name,
            "publication.name": name,
            "table.include.list": "public.items",
            "plugin.name": "pgoutput",
            "transforms": "unwrap,word",
            "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
            "transforms.word.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
            "transforms.word.field": "word",
            **REQUIRED,
        }

    def write(self, value: str) -> None:
        """Write a value, once whatever happens."""
        while True:
            try:
                self._database.run(
                    "INSERT INTO items VALUES (%s, %s) ON CONFLICT DO NOTHING", int(value), value
                )
            except psycopg.OperationalError:
                Event().wait(PAUSE_S)  # it is tried again, as the server may have it or not
            else:
                return


class Files:
    """Files of parquet."""

    def __init__(self, folder: Path) -> None:
        self.config = {"sink.type": "files", "sink.path": str(folder), "sink.format": "parquet"}
        self._folder = folder

    def read(self) -> list[str]:
        """Return the values that it has."""
        read = (pq.read_table(each, columns=["_value"]) for each in self._folder.glob("*.parquet"))
        return [_text(each) for part in read for each in part["_value"].to_pylist()]


class Table:
    """A table of PostgreSQL."""

    def __init__(self, server: PostgresServer, name: str) -> None:
        self._database = server.empty(f"{name}_copy")
        self.config = {
            "sink.type": "postgres",
            "sink.connection.url": f"postgresql://127.0.0.1:{server.port}/{name}_copy",
            "sink.connection.user": "postgres",
            "sink.connection.password": PASSWORD,
            "sink.table.name.format": "copied",
            "sink.auto.create": "true",
        }

    def read(self) -> list[str]:
        """Return the values that it has."""
        if not self._database.run("SELECT 1 FROM pg_tables WHERE tablename = 'copied'"):
            return []
        return [_text(each) for (each,) in self._database.run("SELECT _value FROM copied")]


class Topic:
    """A topic of Kafka."""

    def __init__(self, topics: Topics, topic: str) -> None:
        self.config = {
            "sink.type": "kafka",
            "sink.bootstrap.servers": topics.bootstrap,
            "key.converter": STRING,
            "value.converter": STRING,
            **ONE_REPLICA,
        }
        self._topics, self._topic = topics, topic

    def read(self) -> list[str]:
        """Return the values that it has."""
        if self._topic not in self._topics.admin.list_topics(timeout=60).topics:
            return []
        return [_text(each.value()) for each in self._topics.read(self._topic)]


Origin = Lines | Records | Rows
Target = Files | Table | Topic


def _text(value: Any) -> str:
    return value if isinstance(value, str) else bytes(value).decode()


class Feed:
    """A connector with both ends, and what has been written."""

    def __init__(self, node: ConnectNode, name: str, origin: Origin, target: Target) -> None:
        self.node, self.names = node, (name,)
        self.values: list[str] = []
        self._origin, self._target = origin, target
        self._stop = Event()

    @contextmanager
    def running(self) -> Generator[None]:
        """Create it, and have a writer write; it is deleted at the end."""
        (name,), origin = self.names, self._origin
        # Converters of the target are those of Kafka's sink; a mirror has its own.
        config = {**self._target.config, **origin.config, "tasks.max": str(origin.tasks)}
        self.node.create(name, config, origin.tasks)
        writer = Thread(target=self._write)
        writer.start()
        try:
            until(self._target.read, "values arrive")
            yield
        finally:
            self._stop.set()
            writer.join()
        self.node.delete(name)

    def settle(self, what: str) -> None:
        """Wait until it runs, and what is written after this begins is in the target.

        That is a value of each partition, so that all tasks have gone on.
        """
        first = len(self.values) + 1
        later = {str(each).zfill(DIGITS) for each in range(first, first + PARTITIONS)}
        self.node.runs(self.names[0], self._origin.tasks)
        until(lambda: later <= {*self._target.read()}, f"values arrive after {what}")

    def stop(self) -> Sequence[str]:
        """Write no more, and return what is in the target, in order, once all is there."""
        self._stop.set()
        until(lambda: {*self.values} <= {*self._target.read()}, "all values are in the target")
        return sorted(self._target.read())

    @property
    def doubled(self) -> int:
        """How many values are in the target once more than once."""
        found = self._target.read()
        return len(found) - len({*found})

    def _write(self) -> None:
        while not self._stop.wait(PAUSE_S):
            value = str(len(self.values)).zfill(DIGITS)
            self._origin.write(value)
            self.values.append(value)
