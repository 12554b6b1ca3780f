"""Runs the real transforms and predicates of Connect and Debezium, as a peer for comparison."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from fairlead_tests.java_peer import running
from fairlead_tests.transforms.rows import Rows

VERSION: Final = "4.3.0"
DEBEZIUM: Final = "3.3.1.Final"
MODULES = (
    *("connect-transforms", "connect-api", "kafka-clients"),
    *(f"io.debezium:debezium-{each}:{DEBEZIUM}" for each in ("core", "api", "common")),
)
SOURCE = Path(__file__).with_name("TransformPeer.java")
PACKAGE: Final = "org.apache.kafka.connect.transforms."

Told = dict[str, Any] | None
"""The result for a record: its parts, an error, a predicate's value; None if it was dropped."""


class TransformPeer:
    """The real classes in a separate process, in UTC."""

    def __init__(self, asks: IO[str], answers: IO[str]) -> None:
        self._asks, self._answers = asks, answers

    def apply(self, name: str, config: Mapping[str, str], rows: Rows) -> Sequence[Told]:
        """Return the result of a class for each record."""
        asked = {
            "class": name if name.startswith("io.") else PACKAGE + name,
            "config": dict(config),
            "keyType": rows.key_type,
            "valueType": rows.value_type,
            "valueName": rows.value_name,
            "records": [each.as_json() for each in rows.records],
        }
        self._asks.write(json.dumps(asked) + "\n")
        self._asks.flush()
        told: list[Told] = json.loads(self._answers.readline())
        return told


@contextmanager
def transform_peer(folder: Path) -> Generator[TransformPeer]:
    """Run the peer, compiled into the folder; raise `NoPeer` if it is not available."""
    options = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")
    with running(folder, SOURCE, MODULES, VERSION, *options) as (asks, answers):
        yield TransformPeer(asks, answers)
