"""Which tests execute a line, how long they take, and which of them check nothing."""

import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from coverage import CoverageData

from .copies import HOUSE, copied, known_files, pytest_in
from .places import ROOMS, Place, lines_with_checks


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

    def without_assertion(self) -> list[str]:
        """Return the tests that passed without a check of their own, or of those that help them."""
        checked = set[str]()
        for path in (each for each in self.tests if each.startswith("tests/")):
            for line in lines_with_checks((HOUSE / path).read_text()):
                checked.update(self.tests[path].get(line, ()))
        return sorted(self.seconds.keys() - checked)


def noted(folder: Path, marks: str, processes: int) -> Notes:
    """Run all tests with these marks on a copy, and note what they execute.

    Of a folder with notes only the files of tests are run that have changed since; once the
    program has changed, its lines are not those of the notes, and all tests run.
    """
    began, done = time.time(), folder / "noted"
    changed = _changed(done)
    if changed is None or any(each.startswith(ROOMS) for each in changed):
        changed = []
        for each in folder.iterdir():
            each.unlink()
    files = [each for each in changed if Path(each).name.startswith("test_")]
    if files or not done.exists():
        spread = [f"-n{processes}", "--dist=loadgroup", "--no-loadscope-reorder"]
        before = {*folder.glob("seconds-*")}
        told = {"MUTANTS_NOTES": str(folder.resolve())}
        with tempfile.TemporaryDirectory() as scratch:
            copy = copied(Path(scratch))
            with pytest_in(copy, [*spread, "-m", marks, *files], told) as running:
                code = running.wait()
        if (
            code not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
            and {*folder.glob("seconds-*")} == before
        ):
            raise SystemExit(f"the tests did not run: pytest ended with {code}")
        done.touch()
        os.utime(done, (began, began))
    return Notes.of(folder)


def _changed(done: Path) -> Sequence[str] | None:
    """Return the files that have changed since notes were taken; None: there are none yet."""
    if not done.exists():
        return None
    at = done.stat().st_mtime
    return [each for each in known_files() if (HOUSE / each).lstat().st_mtime > at]
