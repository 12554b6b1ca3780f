"""Workers that go through rounds of the incremental assignor.

The harness that the data defines: what happens, then one assignment over all who are present,
and if it is delivered, everybody does as told. The ownership is compared after that.
"""
# pyright: basic

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from fairlead.actors.assignors.classic.incremental import (
    Increments,
    LeaderMemory,
    Round,
    RoundTime,
    assign,
)
from fairlead.actors.assignors.classic.loads import (
    KINDS,
    Loads,
    add_loads,
    of_kind,
    remove_loads,
    union,
)
from fairlead.events.model import Resource
from fairlead_tests.assignors.configured import resources_of

START_MS = 1_000_000


def read_item(name: str, connectors: Collection[str] = ()) -> Resource:
    """Read `alpha` or `alpha-0`: a task ends in its number, unless a connector is called so."""
    connector, dash, number = name.rpartition("-")
    if dash and number.isdecimal() and name not in connectors:
        return Resource(connector, int(number))
    return Resource(name)


def read_load(told: Mapping[str, Any]) -> list[Resource]:
    """Read connectors and tasks, each in their order."""
    connectors = map(Resource, told.get("connectors") or [])
    return [*connectors, *map(read_item, told.get("tasks") or [])]


def spell_load(resources: Iterable[Resource]) -> dict[str, list[str]]:
    """Tell connectors and tasks, each in their order."""
    listed = list(resources)
    both = (list(map(str, of_kind(listed, tasks=tasks))) for tasks in KINDS)
    return dict(zip(("connectors", "tasks"), both, strict=True))


def counts(resources: Iterable[Resource]) -> tuple[int, int]:
    """Return how many connectors and how many tasks these are."""
    connectors, tasks = spell_load(resources).values()
    return len(connectors), len(tasks)


class Workers:
    """The workers of one group, their resources, and the memory of the leader."""

    def __init__(self, initial: Mapping[str, Any], max_delay_ms: int) -> None:
        self.task_counts: dict[str, int] = dict(initial.get("connectors") or {})
        self.loads: Loads = dict.fromkeys(initial.get("workers") or [], ())
        self.memory = LeaderMemory()
        self.generation = 0
        self.now_ms = START_MS
        self.max_delay_ms = max_delay_ms

    def play(self, told: Mapping[str, Any]) -> Increments:
        """Apply the events before a round, then run the round."""
        for event in told.get("events") or []:
            self.meet(event)
        return self.rebalance(
            is_delivered=told.get("delivered", True),
            is_mismatched=told.get("generation_mismatch", False),
        )

    def meet(self, event: Mapping[str, Any]) -> None:
        """Apply one event."""
        match dict(event):
            case {"advance_clock_ms": delay_ms}:
                self.now_ms += delay_ms
            case {"new_leader_assignor": True}:
                self.memory = LeaderMemory(generation=self.memory.generation)
            case {"add_connector": task_counts} | {"set_task_count": task_counts}:
                self.task_counts.update(task_counts)
            case {"delete_connector": name}:
                del self.task_counts[name]
            case other:
                self._meet_workers(other)

    def _meet_workers(self, event: dict[str, Any]) -> None:
        match event:
            case {"add_workers": added, **more}:
                owned = tuple(read_load(more.get("owning") or {}))
                self.loads = {**self.loads, **dict.fromkeys(added, owned)}
            case {"remove_workers": gone}:
                self.loads = {key: load for key, load in self.loads.items() if key not in gone}
            case {"worker_claims": told}:
                claimed = self._read_claims(told)
                self.loads = add_loads(self.loads, remove_loads(claimed, self.loads))
            case {"worker_drops": told}:
                self.loads = remove_loads(self.loads, self._read_claims(told))
            case _:
                raise ValueError(f"the data has an event that nobody here knows: {event!r}")

    def rebalance(self, *, is_delivered: bool = True, is_mismatched: bool = False) -> Increments:
        """Run one round, and apply its assignment if it is delivered."""
        completed = self.memory.generation - is_mismatched
        self.generation += 1
        clock = RoundTime(self.now_ms, self.max_delay_ms)
        configured = resources_of(self.task_counts)
        given = Round(configured, self.loads, self.generation, completed, clock)
        self.memory, increments = assign(self.memory, given)
        if is_delivered:
            self.loads = add_loads(
                remove_loads(self.loads, increments.revoked), increments.assigned
            )
        return increments

    def seen(self, increments: Increments) -> dict[str, Any]:
        """Return the result of a round in the data's terms."""
        sizes = [counts(load) for load in self.loads.values()]
        connectors, tasks = zip(*sizes, strict=True) if sizes else ((), ())
        due_ms = self.memory.wait.due_ms
        copies = Counter(resource for load in self.loads.values() for resource in load)
        return {
            "delay_ms": increments.delay_ms,
            "assigned": _totals(increments.assigned),
            "revoked": _totals(increments.revoked),
            "connectors_per_worker_sorted": sorted(connectors),
            "tasks_per_worker_sorted": sorted(tasks),
            "complete": copies == Counter(resources_of(self.task_counts)),
            "balanced": all(max(each) - min(each) <= 1 for each in (connectors, tasks) if each),
            "scheduled_in_ms": 0 if due_ms is None else due_ms - self.now_ms,
            "return_candidates": sorted(self.memory.wait.candidates),
        }

    def _read_claims(self, told: Mapping[str, list[str]]) -> Loads:
        known = self.task_counts.keys() | {each.connector for each in union(self.loads)}
        return {key: [read_item(name, known) for name in names] for key, names in told.items()}


def spell_increments(increments: Increments) -> dict[str, dict[str, list[str]]]:
    """Return the resources that each worker gains and loses, without unchanged workers.

    As in the data they are sorted: in which order they go shows in who has what later.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for verb, loads in (("assign", increments.assigned), ("revoke", increments.revoked)):
        for worker, load in loads.items():
            for kind, names in spell_load(load).items():
                if names:
                    found.setdefault(worker, {})[f"{verb}_{kind}"] = sorted(names)
    return found


def _totals(loads: Loads) -> dict[str, int]:
    every = [resource for load in loads.values() for resource in load]
    return dict(zip(("connectors", "tasks"), counts(every), strict=True))
