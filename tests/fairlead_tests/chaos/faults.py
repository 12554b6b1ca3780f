"""Random faults from a seed, for a crew that runs two pipelines."""

import os
import random
import signal
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from fairlead_tests.chaos.crew import SESSION_S, Crew, frozen
from fairlead_tests.chaos.line import Line

CSV, JSON = "from-csv", "from-json"
LONGEST_S = 150.0
"""The time limit for recovery after a fault."""


def csv_and_json(folder: Path, seed: int) -> tuple[Line, Line]:
    """Return two pipelines: CSV through SQL to Parquet, and JSON with inferred schema to CSV."""
    query = "SELECT id, amount, 2 * amount AS twice FROM input"
    budget = {"task.restart.budget": "100"}
    twice = {"transforms": "t", "transforms.t.type": "sql", "transforms.t.query": query}
    return (
        Line(folder, CSV, tasks=3, seed=seed, config=budget | twice),
        Line(folder, JSON, tasks=2, seed=seed + 1, config=budget, forms=("json", "csv")),
    )


class RandomFaults:
    """Injects one fault after another, each followed by a wait for recovery."""

    longest_s = LONGEST_S

    def __init__(self, crew: Crew, lines: Iterable[Line], dice: random.Random) -> None:
        self.crew = crew
        self.happened: Counter[str] = Counter()
        self.story: list[str] = []
        self._lines = {each.name: each for each in lines}
        self._dice = dice
        self.guests: list[str] = []
        self._names = 0
        self.events: Mapping[str, Callable[[], str]] = {
            "join": self.join,
            "leave": self.leave,
            "kill worker": self.kill_worker,
            "kill JVM": self.kill_jvm,
            "kill group": self.kill_group,
            "freeze": self.freeze,
            "tasks.max": self.change_tasks,
            "config": self.change_config,
        }

    def inject_all(self, names: list[str], seconds: float = 0) -> None:
        """Inject these faults, then random ones until the time is up; then added workers leave."""
        until = time.monotonic() + seconds
        while names or time.monotonic() < until:
            self.inject(names.pop(0) if names else self._dice.choice(list(self.events)))
        for each in self.guests:
            self.crew.leave(each)

    def told(self) -> str:
        """Return the injected faults and their costs."""
        rows = {each.name: len(each.feed.rows) for each in self._lines.values()}
        moves = self.crew.moves_of(*self._lines)
        known = [each.downtime_ms for each in moves if each.downtime_ms is not None] or [0]
        statuses = [each for each in self.crew.statuses if each.resource.connector in self._lines]
        fenced = sum(each.reason.startswith("fenced") for each in statuses)
        lines = [
            f"{self.happened.total()} events {dict(self.happened)}",
            *self.story,
            f"rows {rows}; fenced {fenced}; {len(moves)} moves, downtime of {len(known)} known: "
            f"median {statistics.median(known):.0f} ms, most {max(known)} ms",
        ]
        return "\n".join(lines)

    def inject(self, name: str) -> None:
        """Inject a fault, and wait for recovery, or only for a moment."""
        began = time.monotonic()
        what = self.events[name]()
        if not what:
            return
        self.happened[name] += 1
        if patient := self._dice.random() < 0.7:
            self.crew.eventually(self._runs, f"all runs again after {name} {what}", self.longest_s)
        else:
            time.sleep(self._dice.uniform(0, 1))
        took = time.monotonic() - began
        self.story.append(f"{name} {what}: {took:.1f} s{'' if patient else ' and on'}")

    def _runs(self) -> bool:
        return self.crew.is_running(CSV, JSON)

    def _own_worker(self) -> str:
        """Return one of the node's own workers, once it has a seat."""
        own = list[str]()

        def has_own() -> bool:
            own[:] = [each for each in self.crew.workers() if each[0] == "w"]
            return bool(own)

        self.crew.eventually(has_own, "the node has started a worker again")
        name = self._dice.choice(own)
        self.crew.eventually(lambda: bool(self.crew.members(name)), f"{name} is a member")
        return name

    def _wait_lost(self, name: str, seats: set[str]) -> None:
        lost = lambda: seats.isdisjoint(self.crew.look().members)  # noqa: E731
        self.crew.eventually(lost, f"the session of {name} is over", 3 * SESSION_S)

    def join(self) -> str:
        """Add a worker."""
        if len(self.crew.workers()) > 2:
            return ""
        self._names += 1
        name = f"guest{self._names}"
        self.crew.join(name)
        self.crew.pid(f"worker {name}")
        self.guests.append(name)
        return name

    def leave(self) -> str:
        """Stop an added worker gracefully."""
        if not self.guests:
            self.join()
        name = self.guests.pop(0)
        self.crew.eventually(lambda: bool(self.crew.members(name)), f"{name} is a member")
        self.crew.leave(name)
        return name

    def kill_worker(self) -> str:
        """Kill a worker of the node, which restarts it."""
        name = self._own_worker()
        seats = self.crew.members(name)
        self.crew.hit(f"worker {name}")
        self._wait_lost(name, seats)
        return name

    def kill_jvm(self) -> str:
        """Kill the JVM of a worker, or the shared one."""
        name = self._dice.choice(self.crew.workers())
        jvm, tasks = self.crew.jvm(name), [each for each in self.crew.held(name) if each.is_task]
        statuses = self.crew.look().statuses
        before = {each: statuses.get(each) for each in tasks}
        os.kill(jvm, signal.SIGKILL)
        # A task without new input does not notice it.
        more = self.crew.has_told_more
        told = lambda: not before or any(more(*each) for each in before.items())  # noqa: E731
        self.crew.eventually(told, f"{name} has noticed", self.longest_s)
        return name

    def kill_group(self) -> str:
        """Kill the group's actor."""
        return str(self.crew.hit(f"group {self.crew.group.group_id}"))

    def freeze(self) -> str:
        """Suspend a worker for longer than its session, while its JVM continues."""
        name = self._own_worker()
        seats = self.crew.members(name)
        with frozen(self.crew.pid(f"worker {name}")):
            self._wait_lost(name, seats)
            time.sleep(self._dice.uniform(0, 4))
        return name

    def change_tasks(self) -> str:
        """Change the number of tasks of a connector."""
        name = self._dice.choice([CSV, JSON])
        now = self._lines[name].config["tasks.max"]
        wanted = self._dice.choice([each for each in "1234" if each != now])
        return self._change(name, {"tasks.max": wanted})

    def change_config(self) -> str:
        """Change another key of a connector's config: all its tasks restart."""
        name = self._dice.choice([CSV, JSON])
        now = self._lines[name].config.get("source.max.files.per.batch")
        wanted = self._dice.choice([each for each in ("3", "10", "50") if each != now])
        return self._change(name, {"source.max.files.per.batch": wanted})

    def _change(self, name: str, change: Mapping[str, str]) -> str:
        before = self.crew.look().task_configs[name].generation
        self._lines[name].config |= change
        self.crew.put(name, self._lines[name].config)
        changed = lambda: self.crew.look().task_configs[name].generation > before  # noqa: E731
        self.crew.eventually(changed, f"{name} has split its work anew", self.longest_s)
        return f"{name} {dict(change)}"
