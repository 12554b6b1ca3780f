"""The two connectors of the CDC demo: fairlead's own, or those of Debezium for Kafka Connect.

One copies the table of orders to another table through a query, one writes each change as a row of
a file. Debezium's are fetched as anybody would do it, by `fairlead plugins`.
"""

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..stage import DemoFailedError
from .database import USER, DemoServer
from .shop import TABLE
from .verdict import COPY

COPIER, HISTORIAN = "orders-copy", "orders-history"
DEBEZIUM: Final = "io.debezium:debezium-connector-postgres:3.6.1.Final"
_TASKS: Final = "2"
_TOTAL: Final = "SELECT *, quantity * price AS total FROM input"
_CHANGES: Final = "SELECT id, quantity, price, __op, __lsn, CAST(0 AS BIGINT) AS __seq FROM input"
"""Debezium tells where a change is in the log, and no number beside that."""
_FETCH_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class OwnConnectors:
    """Configs of connectors that read the log themselves."""

    server: DemoServer
    files: Path
    """The folder of the history."""

    def configs(self) -> Mapping[str, Mapping[str, str]]:
        """Return the config of each connector, by its name."""
        copier = {**self._source(), **_through("total", _TOTAL), **self._copy()}
        return {COPIER: copier, HISTORIAN: {**self._source(), **self._history()}}

    def _source(self) -> Mapping[str, str]:
        return {
            "connector.class": "SparkPipeline",
            "tasks.max": _TASKS,
            "source.type": "postgres",
            "source.mode": "log",
            "source.connection.url": self.server.url,
            "source.connection.user": USER,
            "source.connection.password": self.server.password,
            "source.table.include.list": rf"public\.{TABLE}",
        }

    def _copy(self) -> Mapping[str, str]:
        return {
            "sink.type": "postgres",
            "sink.connection.url": self.server.url,
            "sink.connection.password": self.server.password,
            "sink.table.name.format": COPY,
            "sink.auto.create": "true",
            "sink.insert.mode": "upsert",
            "sink.pk.mode": "record_value",
            "sink.pk.fields": "id",
            "sink.delete.enabled": "true",
        }

    def _history(self) -> Mapping[str, str]:
        return {"sink.type": "files", "sink.format": "parquet", "sink.path": str(self.files)}


class DebeziumConnectors(OwnConnectors):
    """Configs of Debezium's connector, which feeds the same sinks."""

    def configs(self) -> Mapping[str, Mapping[str, str]]:
        """Return the config of each connector, by its name."""
        copier = {**self._debezium("copy"), **_through("total", _TOTAL), **self._copy()}
        history = {**self._debezium("history"), **_through("changes", _CHANGES), **self._history()}
        return {
            name: {**config, "transforms": f"unwrap,{config['transforms']}"}
            for name, config in ((COPIER, copier), (HISTORIAN, history))
        }

    def _debezium(self, name: str) -> Mapping[str, str]:
        return {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": "127.0.0.1",
            "database.port": str(self.server.port),
            "database.user": USER,
            "database.password": self.server.password,
            "database.dbname": "postgres",
            "topic.prefix": name,
            "slot.name": name,
            "publication.name": name,
            "publication.autocreate.mode": "filtered",
            "table.include.list": f"public.{TABLE}",
            "plugin.name": "pgoutput",
            "exactly.once.support": "required",
            "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
            "transforms.unwrap.add.fields": "op,lsn",
            "transforms.unwrap.delete.tombstone.handling.mode": "rewrite",
        }


def fetch_debezium(data_dir: Path, tell: Callable[[str], None]) -> None:
    """Set up what plugins run with, and fetch Debezium's for a node; raises `DemoFailedError`."""
    for verb in (["setup"], ["fetch", DEBEZIUM]):
        tell(f"fairlead plugins {' '.join(verb)}")
        command = [sys.executable, "-m", "fairlead.runtime", "plugins", *verb]
        ran = subprocess.run(  # noqa: S603 - our own module, no shell
            [*command, "--data-dir", str(data_dir)],
            capture_output=True,
            text=True,
            timeout=_FETCH_S,
            check=False,
        )
        if ran.returncode:
            raise DemoFailedError(ran.stderr.strip() or f"fairlead plugins {verb[0]} has failed")


def _through(name: str, query: str) -> Mapping[str, str]:
    return {
        "transforms": name,
        f"transforms.{name}.type": "sql",
        f"transforms.{name}.query": query,
    }
