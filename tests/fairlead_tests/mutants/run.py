"""How many of some seeded mutations of the program its tests notice, by room.

    python -m fairlead_tests.mutants.run --seed 1 --number 150

All tests run once on a copy of the repository, and it is noted which lines each of them executes.
Then each mutation is made in a copy, and the tests that execute its line run until one fails. What
no test executes is not mutated: how much that is, is told. With `--notes` the notes of an earlier
run are used again, and the tests are those of that run.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import cache_from_source
from math import inf
from pathlib import Path
from queue import SimpleQueue
from threading import Event
from typing import Final

import psutil
from coverage import CoverageData

from .places import Place, lines_with_checks, places

HOUSE: Final = Path(__file__).parents[3]
ROOMS: Final = ("actors", "events", "projections", "runtime")
_LEAST: Final = 4
"""How many mutations a room has at least."""
_MEMORY: Final = 4 << 30
_FIRST: Final = 40
"""How many tests run before all others: most often one of them fails."""
_is_over = Event()
"""Set when nothing more is to run."""
_LIMIT_S: Final = 60
"""How long one test may take with a mutation."""


def copied(to: Path) -> Path:
    """Copy what git knows of the repository to a new folder, which is its package as well."""
    known = subprocess.run(["git", "ls-files", "-z"], cwd=HOUSE, capture_output=True, check=True)
    for name in filter(None, known.stdout.decode().split("\0")):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if (HOUSE / name).exists():
            shutil.copy2(HOUSE / name, to / name, follow_symlinks=False)
    return to


@dataclass
class Notes:
    """What each test executes and takes, of the copy in which all of them ran."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """Of the tests that passed, by id."""
    tests: dict[str, dict[int, list[str]]] = field(
        default_factory=lambda: defaultdict(dict[int, list[str]])
    )
    """The tests of each line, by path."""

    @classmethod
    def of(cls, folder: Path) -> "Notes":
        """Read the notes of all processes of a run."""
        notes = cls()
        for each in folder.glob("seconds-*"):
            for line in each.read_text().splitlines():
                test, took = json.loads(line)
                notes.seconds[test] = took
        for each in folder.glob("lines.*"):
            data = CoverageData(str(each))
            data.read()
            for name in data.measured_files():
                path = name.partition("/fairlead/")[2]
                lines = notes.tests[path]
                for number, ids in data.contexts_by_lineno(name).items():
                    lines.setdefault(number, []).extend(ids)
        return notes

    def of_place(self, place: Place) -> list[str]:
        """Return the tests that execute a place, the quickest first."""
        lines = self.tests.get(place.path, {})
        known = lines.get(place.line) or lines.get(place.statement) or []
        return sorted({*known} & self.seconds.keys(), key=self.seconds.__getitem__)


def without_assertion(notes: Notes) -> list[str]:
    """Return the tests that passed without a check of their own, or of those that help them."""
    checked = set[str]()
    for path in (each for each in notes.tests if each.startswith("tests/")):
        for line in lines_with_checks((HOUSE / path).read_text()):
            checked.update(notes.tests[path].get(line, ()))
    return sorted(notes.seconds.keys() - checked)


def noted(folder: Path, marks: str, processes: int) -> Notes:
    """Run all tests with these marks on a copy, and note what they execute."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = copied(Path(scratch, "fairlead"))
        spread = [f"-n{processes}", "--dist=loadgroup", "--no-loadscope-reorder"]
        _pytest(copy, [*spread, "-m", marks], {"MUTANTS_NOTES": str(folder)})
    return Notes.of(folder)


def chosen(notes: Notes, seed: int, number: int) -> list[Place]:
    """Choose mutations that some test executes: by the size of the rooms, some in each."""
    found: dict[str, list[Place]] = defaultdict(list)
    unseen = Counter[str]()
    for path in sorted(each for room in ROOMS for each in (HOUSE / room).rglob("*.py")):
        name = path.relative_to(HOUSE).as_posix()
        for place in places(name, path.read_text()):
            if notes.of_place(place):
                found[place.room].append(place)
            else:
                unseen[place.room] += 1
    total = sum(map(len, found.values()))
    print(f"{total} places; {unseen.total()} more that none of these tests executes:", dict(unseen))
    part = {room: max(_LEAST, number * len(each) // total) for room, each in found.items()}
    while (over := sum(part.values()) - number) > 0:
        part[max(part, key=part.__getitem__)] -= min(over, 1)
    while sum(part.values()) < number:
        part[max(found, key=lambda room: len(found[room]) / part[room])] += 1
    return [
        each
        for room, some in sorted(found.items())
        for each in sorted(some, key=lambda place: place.rank(seed))[: part[room]]
    ]


def is_noticed(copy: Path, place: Place, tests: Sequence[str], seconds: float) -> bool:
    """Tell whether one of the tests fails with a mutation, which is undone then."""
    path = copy / place.path
    source = path.read_text()
    try:
        path.write_text(place.mutated(source))
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        return any(
            _run_chosen(copy, some, seconds) != 0
            for some in (tests[:_FIRST], tests[_FIRST:])
            if some
        )
    finally:
        path.write_text(source)
        Path(cache_from_source(str(path))).unlink(missing_ok=True)


def _run_chosen(copy: Path, tests: Sequence[str], seconds: float) -> int:
    """Run tests until one fails; return the exit code."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(json.dumps(tests))
        file.flush()
        files = sorted({each.partition("::")[0] for each in tests})
        options = ["-n0", "-x", f"--timeout={_LIMIT_S}", "-m", "", *files]
        return _pytest(copy, options, {"MUTANTS_CHOSEN": file.name}, 120 + 4 * seconds)


def _pytest(
    copy: Path, options: Sequence[str], told: Mapping[str, str], limit_s: float = inf
) -> int:
    """Run tests of a copy; return the exit code, -1 if they take too long or too much memory."""
    env = {**os.environ, **told, "PYTHONPATH": f"{copy.parent}:{copy}/tests"}
    quiet = ["-q", "--no-header", "--tb=no", "-p", "fairlead_tests.mutants.plugin"]
    started = subprocess.Popen(
        [sys.executable, "-m", "pytest", *quiet, *options],
        cwd=copy,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return _ended(psutil.Process(started.pid), limit_s)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)  # what a test left behind
        started.wait()


def _ended(process: psutil.Process, limit_s: float) -> int:
    """Wait for the end of a process: a mutation may make it loop, or a list grow, without end."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until and not _is_over.is_set():
        try:
            return int(process.wait(0.5) or 0)
        except psutil.TimeoutExpired:
            if process.memory_info().rss > _MEMORY:
                return -1
    return -1


def judged(
    notes: Notes, some: Sequence[Place], processes: int
) -> Iterator[tuple[Place, int, bool]]:
    """Yield each mutation with its number of tests, and whether one of them fails."""
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(processes) as pool:
        copies = SimpleQueue[Path]()
        for at in range(processes):
            copies.put(copied(Path(scratch, str(at), "fairlead")))

        def judge(place: Place) -> tuple[Place, int, bool]:
            copy, tests = copies.get(), notes.of_place(place)
            try:
                took = sum(notes.seconds[each] for each in tests)
                return place, len(tests), is_noticed(copy, place, tests, took)
            finally:
                copies.put(copy)

        try:
            yield from pool.map(judge, some)
        finally:  # somebody may end it before all are judged
            _is_over.set()
            pool.shutdown(cancel_futures=True)


def main() -> None:
    """Measure, mutate, and print the rate of each room."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--number", type=int, default=150)
    given.add_argument("--marks", default="not soak and not cluster")
    given.add_argument("--processes", type=int, default=2)
    given.add_argument("--notes", type=Path, help="a folder for notes, or with those of a run")
    given.add_argument("--only", default="", help="what paths of mutated files begin with")
    asked = given.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # with what it has started
    folder = asked.notes or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    is_noted = any(folder.iterdir())
    notes = Notes.of(folder) if is_noted else noted(folder, asked.marks, asked.processes)
    print("tests that check nothing:", *without_assertion(notes), sep="\n  ")
    some = [
        each for each in chosen(notes, asked.seed, asked.number) if each.path.startswith(asked.only)
    ]
    some.sort(key=lambda place: place.rank(asked.seed))
    fell, stood = Counter[str](), Counter[str]()
    for place, tests, is_fallen in judged(notes, some, asked.processes):
        (fell if is_fallen else stood)[place.room] += 1
        print("fell " if is_fallen else "STOOD", f"{tests:5} tests", place.told, flush=True)
    for room in sorted(fell | stood):
        print(f"{room:24} {fell[room]:4} of {fell[room] + stood[room]:4} noticed")
    every = fell.total() + stood.total()
    print(f"seed {asked.seed}: {fell.total()} of {every}, {fell.total() / every:.0%}")


if __name__ == "__main__":
    main()
