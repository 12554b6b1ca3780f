"""Connect's own incremental assignor, the real class, as something that can be asked."""

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
