"""Connect's own transforms and predicates, the real classes, as something that can be asked."""

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from fairlead_tests.java_peer import running
from fairlead_tests.transforms.rows import Rows

VERSION: Final = "4.3.0"
MODULES = ("connect-transforms", "connect-api", "kafka-clients")
SOURCE = Path(__file__).with_name("TransformPeer.java")
PACKAGE: Final = "org.apache.kafka.connect.transforms."

Told = dict[str, Any] | None
"""What became of a record: its parts, an error, what a predicate says; None if it was dropped."""


class TransformPeer:
    """The real classes in a process of their own, in UTC."""

    def __init__(self, asks: IO[str], answers: IO[str]) -> None:
        self._asks, self._answers = asks, answers

    def apply(self, name: str, config: Mapping[str, str], rows: Rows) -> Sequence[Told]:
        """Return what a class makes of each record."""
        asked = {
            "class": PACKAGE + name,
            "config": dict(config),
            "keyType": rows.key_type,
            "valueType": rows.value_type,
            "records": [each.as_json() for each in rows.records],
        }
        self._asks.write(json.dumps(asked) + "\n")
        self._asks.flush()
        told: list[Told] = json.loads(self._answers.readline())
        return told


@contextmanager
def transform_peer(folder: Path) -> Generator[TransformPeer]:
    """Run the peer, compiled into the folder; raise `NoPeer` where it cannot be had."""
    options = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")
    with running(folder, SOURCE, MODULES, VERSION, *options) as (asks, answers):
        yield TransformPeer(asks, answers)
