# pyright: basic
"""What is under way all the time: rows from files and from a table, and commands at every node."""

import random
import threading
import time
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psycopg
import pyarrow.parquet as pq

from fairlead.events.entries.codec import decode
from fairlead.events.log.reader import LogReader
from fairlead.events.records import ConnectorConfig
from fairlead_tests.hosts.network import OUTSIDE
from fairlead_tests.postgres_server import PASSWORD, PostgresServer
from fairlead_tests.stores.nodes import ClusterNode

ROWS_PER_FILE = 100
NUMBER = "poll.interval.ms"
"""The setting of a stopped connector whose values are the numbers of commands."""
PIPELINE: Mapping[str, str] = {
    "connector.class": "SparkPipeline",
    "tasks.max": "3",
    "poll.interval.ms": "500",
    "task.restart.budget": "-1",
    "task.restart.backoff.max.ms": "1000",
    "errors.retry.delay.max.ms": "2000",
}
DATABASE = "rows"
CONFLICT = 409


@dataclass
class Rows:
    """Rows on their way, from files to files and from a table to a table."""

    folder: Path
    server: PostgresServer
    files: int = 0
    """How many files there are."""
    _database_url: str = ""

    def prepare(self) -> None:
        """Make the folder and the table that are read."""
        (self.folder / "in").mkdir()
        database = self.server.empty(DATABASE)
        database.run("CREATE TABLE orders (id bigserial PRIMARY KEY, amount bigint NOT NULL)")
        self._database_url = f"postgresql://postgres@{OUTSIDE}:{self.server.port}/{DATABASE}"

    def configs(self) -> Mapping[str, Mapping[str, str]]:
        """Return the configs of both connectors."""
        place = {"connection.url": self._database_url, "connection.password": PASSWORD}
        ends = {f"{end}.{key}": place[key] for end in ("source", "sink") for key in place}
        files = {
            "source.format": "csv",
            "source.path": str(self.folder / "in"),
            "sink.format": "parquet",
            "sink.path": str(self.folder / "out"),
        }
        table = {
            "source.type": "postgres",
            "source.table.include.list": r"public\.orders",
            "source.mode": "xmin",
            "sink.type": "postgres",
            "sink.table.name.format": "copies",
            "sink.auto.create": "true",
        }
        return {"files": {**PIPELINE, **files}, "table": {**PIPELINE, **table, **ends}}

    def write(self) -> None:
        """Add a file, and rows of the table unless the database is away."""
        first = self.files * ROWS_PER_FILE
        lines = [f"{number},{number % 7}" for number in range(first, first + ROWS_PER_FILE)]
        path = self.folder / "in" / f"f{self.files}.csv"
        hidden = path.with_name(f".{path.name}")
        hidden.write_text("\n".join(["id,value", *lines, ""]))
        hidden.rename(path)
        self.files += 1
        with suppress(psycopg.Error), self.server.connected(DATABASE) as line:
            line.execute("INSERT INTO orders (amount) SELECT generate_series(1, 50)")

    def missing(self) -> Mapping[str, tuple[int, int]]:
        """Return how many rows are lost and how many doubled, where any are."""
        found = {"files": self._of_files(), "table": self._of_table()}
        return {name: pair for name, pair in found.items() if pair != (0, 0)}

    def arrive(self) -> bool:
        """Return whether some have arrived from both sources."""
        with self.server.connected(DATABASE) as line:
            has_table = line.execute("SELECT to_regclass('copies')").fetchone() != (None,)
        return has_table and any((self.folder / "out").glob("part-*"))

    def _of_files(self) -> tuple[int, int]:
        parts = (self.folder / "out").glob("part-*")
        tables = [pq.read_table(each, columns=["id"]) for each in parts]
        arrived = Counter(int(each) for one in tables for each in one["id"].to_pylist())
        return _differences(range(self.files * ROWS_PER_FILE), arrived)

    def _of_table(self) -> tuple[int, int]:
        with self.server.connected(DATABASE) as line:
            ids = [number for (number,) in line.execute("SELECT id FROM orders")]
            if line.execute("SELECT to_regclass('copies')").fetchone() == (None,):
                return len(ids), 0
            counted = line.execute("SELECT id, count(*) FROM copies GROUP BY id")
            return _differences(ids, Counter(dict(counted.fetchall())))


def _differences(sent: "range | list[int]", arrived: Counter[int]) -> tuple[int, int]:
    expected = Counter(sent)
    return (expected - arrived).total(), (arrived - expected).total()


@dataclass(frozen=True)
class Acknowledged:
    """A command that was acknowledged; times by the monotonic clock."""

    connector: str
    number: int
    sent_at: float
    at: float


@dataclass
class Commands:
    """Commands at every node, one after the other, each with a number of its own."""

    nodes: list[ClusterNode]
    acknowledged: list[Acknowledged] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    """What other answers there were."""

    def send(self, node: ClusterNode, number: int) -> bool:
        """Send one command to a node; return whether the next number follows."""
        name, sent_at = f"probe-{node.name}", time.monotonic()
        config = {**PIPELINE, "source.path": "/nowhere/in", "sink.path": "/nowhere/out"}
        config |= {"source.format": "csv", "sink.format": "parquet", NUMBER: str(1_000 + number)}
        try:
            if number == 0:
                new = {"name": name, "config": config, "initial_state": "STOPPED"}
                answer = node.rest("POST", "/connectors", json=new)
            else:
                answer = node.rest("PUT", f"/connectors/{name}/config", json=config)
        except httpx.TransportError as error:
            self.refused[type(error).__name__] += 1
            return number > 0
        if answer.is_success:
            now = time.monotonic()
            self.acknowledged.append(Acknowledged(name, 1_000 + number, sent_at, now))
        else:
            self.refused[f"{answer.status_code} {answer.text}"] += 1
        return number > 0 or answer.is_success or answer.status_code == CONFLICT

    def seconds_after(self, moment: float) -> float | None:
        """Return when the first command was acknowledged that was sent after a moment."""
        after = [each.at for each in [*self.acknowledged] if each.sent_at > moment]
        return min(after) - moment if after else None

    def missing_in(self, log: LogReader) -> list[Acknowledged]:
        """Return the acknowledged commands that a control log does not have."""
        entries = (each for batch in log.tail(log.low()) for each in batch)
        records = [each for each in map(decode, entries) if isinstance(each, ConnectorConfig)]
        there = {(each.connector, each.config.get(NUMBER)) for each in records}
        return [
            each for each in self.acknowledged if (each.connector, str(each.number)) not in there
        ]


@contextmanager
def traffic(rows: Rows, commands: Commands, seed: int) -> Generator[None]:
    """Write rows, and send commands to every node, until the end."""
    is_over = threading.Event()

    def write() -> None:
        while not is_over.wait(0.4):
            rows.write()

    def command(node: ClusterNode) -> None:
        number, dice = 0, random.Random(f"{seed} {node.name}")
        while not is_over.wait(dice.uniform(0.05, 0.3)):
            if node.listens():
                number += commands.send(node, number)

    threads = [threading.Thread(target=command, args=(each,)) for each in commands.nodes]
    threads.append(threading.Thread(target=write))
    for each in threads:
        each.start()
    try:
        yield
    finally:
        is_over.set()
        for each in threads:
            each.join()
