"""Connect's own incremental assignor, the real class, as something that can be asked.

Its jars come from Maven Central, through the Ivy that is part of Spark, into Ivy's cache; the
little that asks it is compiled on the spot. Whoever lacks the network or a `javac` learns why
there is no peer.
"""

import json
import shutil
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import pyspark

from fairlead.actors.assignors.classic.incremental import Increments, Round
from fairlead.actors.assignors.classic.loads import KINDS, Loads, of_kind
from fairlead.events.model import Resource

VERSION: Final = "3.9.1"
NAME: Final = f"connect-runtime {VERSION}"
MODULES = ("connect-runtime", "connect-api", "kafka-clients")
BESIDE = ("slf4j-api-*", "jackson-core-2*", "jackson-databind-2*", "jackson-annotations-2*")
"""What Connect and its peer lean on, of which Spark has a copy."""

SOURCE = Path(__file__).with_name("ConnectPeer.java")
SPARK_JARS = Path(pyspark.__file__).parent / "jars"
FETCH_SECONDS = 180
LAST_LINES = 5
"""So much is told of what a tool says before it gives up."""


class NoPeer(Exception):  # noqa: N818  # what is the case, not what went wrong
    """The peer cannot be had here; the message says why."""


@dataclass(frozen=True, slots=True)
class Made:
    """What the real class makes of a round, each load in its own order, and how long it took."""

    increments: Increments
    due_ms: int | None
    candidates: tuple[str, ...]
    took_ms: float


class ConnectPeer:
    """The real class in a process of its own."""

    def __init__(self, asks: IO[str], answers: IO[str]) -> None:
        self._asks, self._answers = asks, answers

    def assign(
        self, given: Round, task_counts: Mapping[str, int], leads_since: int | None = None
    ) -> Made:
        """Return what it makes of a round; with `leads_since` it has forgotten all but that."""
        reported = {worker: _told(load) for worker, load in given.reported.items()}
        told = {
            "leadsSince": leads_since,
            "maxDelayMs": given.clock.max_delay_ms,
            "nowMs": given.clock.now_ms,
            "completed": given.completed,
            "generation": given.generation,
            "taskCounts": dict(task_counts),
            "reported": reported,
        }
        self._asks.write(json.dumps(told) + "\n")
        self._asks.flush()
        answer = json.loads(self._answers.readline())
        assigned, revoked = _read(answer["assigned"]), _read(answer["revoked"])
        return Made(
            Increments(assigned, revoked, answer["delayMs"]),
            answer["dueMs"] or None,
            tuple(answer["candidates"]),
            answer["tookNs"] / 1e6,
        )


def ordered(loads: Loads) -> Loads:
    """Return the loads as the peer tells them: connectors before tasks."""
    return {worker: _by_kind(load) for worker, load in loads.items()}


@contextmanager
def connect_peer(folder: Path) -> Generator[ConnectPeer]:
    """Run the peer, compiled into the folder; raise `NoPeer` where it cannot be had."""
    classpath = _compiled(folder, [*_fetched(folder), *_beside()])
    command = [_tool("java"), "-cp", classpath, f"{_package()}.{SOURCE.stem}"]
    quiet = subprocess.DEVNULL
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=quiet, encoding="utf-8") as ran:
        assert ran.stdin
        assert ran.stdout
        yield ConnectPeer(ran.stdin, ran.stdout)


def _fetched(folder: Path) -> list[str]:
    """Return Kafka's jars, fetched unless Ivy has them."""
    modules = "".join(
        f'<dependency org="org.apache.kafka" name="{name}" rev="{VERSION}" transitive="false"/>'
        for name in MODULES
    )
    wanted = folder / "ivy.xml"
    wanted.write_text(
        '<ivy-module version="2.0"><info organisation="none" module="peer"/>'
        f"<dependencies>{modules}</dependencies></ivy-module>"
    )
    found = folder / "classpath"
    (ivy,) = SPARK_JARS.glob("ivy-*.jar")
    command = [_tool("java"), "-jar", str(ivy), "-ivy", str(wanted), "-types", "jar"]
    _run([*command, "-cachepath", str(found)], "Kafka's jars could not be had")
    return found.read_text().strip().split(":")


def _beside() -> list[str]:
    return [str(jar) for pattern in BESIDE for jar in SPARK_JARS.glob(f"{pattern}.jar")]


def _compiled(folder: Path, jars: list[str]) -> str:
    """Return the class path with the peer on it."""
    classes = folder / "classes"
    command = [_tool("javac"), "-cp", ":".join(jars), "-d", str(classes), str(SOURCE)]
    _run(command, "the peer does not compile")
    return ":".join([str(classes), *jars])


def _run(command: list[str], trouble: str) -> None:
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise NoPeer(f"{trouble}: no answer in {FETCH_SECONDS} s") from error
    if ran.returncode:
        lines = [line.strip(": \t") for line in (ran.stdout + ran.stderr).splitlines()]
        raise NoPeer("; ".join([trouble, *list(filter(None, lines))[-LAST_LINES:]]))


def _tool(name: str) -> str:
    if found := shutil.which(name):
        return found
    raise NoPeer(f"PATH has no {name}")


def _package() -> str:
    first = SOURCE.read_text().splitlines()[0]
    return first.removeprefix("package ").removesuffix(";")


def _by_kind(load: Any) -> list[Resource]:
    return [each for tasks in KINDS for each in of_kind(load, tasks=tasks)]


def _told(load: Any) -> dict[str, Any]:
    connectors, tasks = (of_kind(load, tasks=tasks) for tasks in KINDS)
    return {
        "connectors": [each.connector for each in connectors],
        "tasks": [{"connector": each.connector, "task": each.task} for each in tasks],
    }


def _read(told: Mapping[str, Any]) -> Loads:
    return {
        worker: [
            *map(Resource, load["connectors"]),
            *(Resource(task["connector"], task["task"]) for task in load["tasks"]),
        ]
        for worker, load in told.items()
    }
