"""Runs Kafka Connect's real incremental assignor, as a peer for comparison."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from fairlead.actors.assignors.classic.incremental import Increments, Round
from fairlead.actors.assignors.classic.loads import KINDS, Loads, of_kind
from fairlead.events.model import Resource
from fairlead_tests.java_peer import running

VERSION: Final = "3.9.1"
NAME: Final = f"connect-runtime {VERSION}"
MODULES = ("connect-runtime", "connect-api", "kafka-clients")
SOURCE = Path(__file__).with_name("ConnectPeer.java")


@dataclass(frozen=True, slots=True)
class Made:
    """The result of the real class for a round, each load in its order, and the duration."""

    increments: Increments
    due_ms: int | None
    candidates: tuple[str, ...]
    took_ms: float


class ConnectPeer:
    """The real class in a separate process."""

    def __init__(self, asks: IO[str], answers: IO[str]) -> None:
        self._asks, self._answers = asks, answers

    def assign(
        self, given: Round, task_counts: Mapping[str, int], leads_since: int | None = None
    ) -> Made:
        """Return its result for a round; with `leads_since` it has only that as memory."""
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
    """Return the loads in the peer's order: connectors before tasks."""
    return {worker: _by_kind(load) for worker, load in loads.items()}


@contextmanager
def connect_peer(folder: Path) -> Generator[ConnectPeer]:
    """Compile the peer in the folder and run it; raise `NoPeer` if that is impossible."""
    with running(folder, SOURCE, MODULES, VERSION) as (asks, answers):
        yield ConnectPeer(asks, answers)


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
