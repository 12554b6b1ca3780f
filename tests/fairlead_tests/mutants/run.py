"""How many of some seeded mutations of the program its tests notice, by room.

    python -m fairlead_tests.mutants.run --seed 1 --number 150

All tests run once on a copy of the repository, and it is noted which lines each of them executes.
Then a process imports the program and collects the tests; in a fork of it each mutation is made,
and the tests that execute its line run until one fails. What no test executes is not mutated: how
much that is, is told. With `--notes` the notes of an earlier run are used again, and only the tests
run for them that have changed. `--only` chooses from the mutations of a seed, as they are printed.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from .copies import HOUSE, copied, pytest_in
from .notes import Notes, noted
from .places import ROOMS, Place, places
from .trials import UNMADE, Trial

_LEAST: Final = 4
"""How many mutations a room has at least."""
_FIRST: Final = 40
"""How many tests run before all others: most often one of them fails."""
_LIMIT_S: Final = 60
"""How long one test may take with a mutation."""


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


def judged(
    notes: Notes, some: Sequence[Place], processes: int
) -> Iterator[tuple[Place, int, str | None]]:
    """Yield each mutation with its number of tests, and the test that fails, None if none does."""
    trials = [_trial(number, place, notes) for number, place in enumerate(some)]
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as running:
        copy = copied(Path(scratch))
        for at in range(processes):
            part = trials[at::processes]
            file = Path(scratch, f"trials-{at}")
            file.write_text(json.dumps(part))
            told = {"MUTANTS_TRIALS": str(file), "MUTANTS_RESULTS": str(writing)}
            files = sorted({each.partition("::")[0] for trial in part for each in trial["tests"]})
            options = ["-n0", "-s", f"--timeout={_LIMIT_S}", "-m", "", *files]
            running.enter_context(pytest_in(copy, options, told, [writing]))
        os.close(writing)
        with os.fdopen(reading) as results:
            for _ in some:
                number, failed = json.loads(results.readline())
                yield some[number], len(trials[number]["tests"]), failed


def _trial(number: int, place: Place, notes: Notes) -> Trial:
    """Return a trial: the quickest tests run first, the others by file, as they share fixtures."""
    tests = notes.of_place(place)
    return Trial(
        number=number,
        path=place.path,
        source=place.mutated((HOUSE / place.path).read_text()),
        line=place.line,
        tests=[*tests[:_FIRST], *sorted(tests[_FIRST:])],
        seconds=sum(notes.seconds[each] for each in tests),
    )


def main() -> None:
    """Measure, mutate, and print the rate of each room."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--number", type=int, default=150)
    given.add_argument("--marks", default="not soak and not cluster")
    given.add_argument("--processes", type=int, default=2)
    given.add_argument("--notes", type=Path, help="a folder for notes, or with those of a run")
    given.add_argument("--only", nargs="*", default=[], help="what they begin with")
    asked = given.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # with what it has started
    folder = asked.notes or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    notes = noted(folder, asked.marks, asked.processes)
    print("tests that check nothing:", *notes.without_assertion(), sep="\n  ")
    some = [
        each
        for each in chosen(notes, asked.seed, asked.number)
        if each.told.startswith(tuple(asked.only or [""]))
    ]
    some.sort(key=lambda place: place.rank(asked.seed))
    fell, stood = Counter[str](), Counter[str]()
    for place, tests, failed in judged(notes, some, asked.processes):
        if failed == UNMADE:
            print("UNMADE", place.told)
            continue
        (fell if failed else stood)[place.room] += 1
        by = f" by {failed}" if failed else ""
        print("fell " if failed else "STOOD", f"{tests:5} tests", place.told + by, flush=True)
    for room in sorted(fell | stood):
        print(f"{room:24} {fell[room]:4} of {fell[room] + stood[room]:4} noticed")
    every = fell.total() + stood.total()
    print(f"seed {asked.seed}: {fell.total()} of {every}, {fell.total() / every:.0%}")


if __name__ == "__main__":
    main()
