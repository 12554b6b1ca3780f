"""Kafka clients as group members: their commands, and the parsers of their output."""
# pyright: basic

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead_tests.kafka_clients.jars import java_command

GROUP = "readers"
SESSION_MS, HEARTBEAT_MS = 6_000, 300
COMMIT_MS = 200
MOST_BACKOFF_MS = 200

Event = dict[str, Any]
Config = Mapping[str, Any]


def as_told(line: str) -> Iterable[Event]:
    """Parse an event line of our own readers."""
    return [json.loads(line)]


@dataclass(frozen=True, eq=False)
class Client:
    """One kind of client."""

    name: str
    protocol: str
    command: Callable[[str, str, Config, Path], list[str]]
    """Returns a command for a bootstrap address, a topic, a config, and a work folder."""
    events: Callable[[str], Iterable[Event]] = as_told
    config: Config = field(default_factory=dict)
    """The default config."""
    leaves_by_signal: bool = False
    """Whether it leaves on a signal; otherwise at the end of its input."""


def _reader(module: str, config: Config, topic: str) -> list[str]:
    module = f"fairlead_tests.kafka_clients.{module}"
    return [sys.executable, "-m", module, json.dumps(config), topic]


def _confluent(bootstrap: str, topic: str, config: Config, _: Path) -> list[str]:
    told = {
        "bootstrap.servers": bootstrap,
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": COMMIT_MS,
        "reconnect.backoff.max.ms": MOST_BACKOFF_MS,
        "log_level": 0,
    }
    return _reader("confluent_reader", {**told, **config}, topic)


def _python(bootstrap: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap,
        "group_id": GROUP,
        "auto_offset_reset": "earliest",
        "session_timeout_ms": SESSION_MS,
        "heartbeat_interval_ms": HEARTBEAT_MS,
    }


def _aiokafka(bootstrap: str, topic: str, config: Config, _: Path) -> list[str]:
    return _reader("aiokafka_reader", {**_python(bootstrap), **config}, topic)


def _kafka_python(bootstrap: str, topic: str, config: Config, _: Path) -> list[str]:
    told = {
        "auto_commit_interval_ms": COMMIT_MS,
        "reconnect_backoff_max_ms": MOST_BACKOFF_MS,
    }
    return _reader("kafka_python_reader", {**_python(bootstrap), **told, **config}, topic)


def _java(bootstrap: str, topic: str, config: Config, folder: Path) -> list[str]:
    """Return the command of the consumer of Kafka's own system tests."""
    words = {
        "bootstrap-server": bootstrap,
        "topic": topic,
        "group-id": GROUP,
        "reset-policy": "earliest",
        **{name.removeprefix("--"): each for name, each in config.items() if name[:2] == "--"},
    }
    settings = {
        "reconnect.backoff.max.ms": MOST_BACKOFF_MS,
        **{name: each for name, each in config.items() if name[:2] != "--"},
    }
    properties = folder / "consumer.properties"
    properties.write_text("".join(f"{name}={each}\n" for name, each in settings.items()))
    told = [word for name, each in words.items() for word in (f"--{name}", str(each))]
    command = java_command("org.apache.kafka.tools.VerifiableConsumer", *told)
    return [*command, "--command-config", str(properties)]


def _java_events(line: str) -> Iterable[Event]:
    """Parse a line of that consumer into an event of our own readers."""
    told = json.loads(line)
    at = told["timestamp"] / 1_000 + time.monotonic() - time.time()
    name = told["name"]
    if name in {"partitions_assigned", "partitions_revoked"}:
        what = "given" if name == "partitions_assigned" else "taken"
        yield {"what": what, "at": at, "partitions": [p["partition"] for p in told["partitions"]]}
    elif name == "startup_complete":
        yield {"what": "started", "at": at}
    elif name == "records_consumed":
        for each in told["partitions"]:
            for offset in range(each["minOffset"], each["maxOffset"] + 1):
                yield {"what": "read", "at": at, "partition": each["partition"], "offset": offset}
    elif name == "offsets_committed" and told["success"]:
        offsets = {str(each["partition"]): each["offset"] for each in told["offsets"]}
        yield {"what": "committed", "at": at, "offsets": offsets}


CLASSIC = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
STICKY = "cooperative-sticky"
JAVA_STICKY = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
JAVA_CLASSIC = {"--session-timeout": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}

CONFLUENT = Client("confluent", "classic", _confluent, config=CLASSIC)
CONFLUENT_COOPERATIVE = Client(
    "confluent",
    "cooperative",
    _confluent,
    config={**CLASSIC, "partition.assignment.strategy": STICKY},
)
CONFLUENT_MODERN = Client(
    "confluent", "consumer", _confluent, config={"group.protocol": "consumer"}
)
AIOKAFKA = Client("aiokafka", "classic", _aiokafka)
KAFKA_PYTHON = Client("kafka-python", "classic", _kafka_python)
KAFKA_PYTHON_COOPERATIVE = Client(
    "kafka-python", "cooperative", _kafka_python, config={"is_cooperative": True}
)
JAVA = Client("java", "classic", _java, _java_events, JAVA_CLASSIC, leaves_by_signal=True)
JAVA_COOPERATIVE = Client(
    "java",
    "cooperative",
    _java,
    _java_events,
    {**JAVA_CLASSIC, "--assignment-strategy": JAVA_STICKY},
    leaves_by_signal=True,
)
JAVA_MODERN = Client(
    "java",
    "consumer",
    _java,
    _java_events,
    {"--group-protocol": "CONSUMER"},
    leaves_by_signal=True,
)
