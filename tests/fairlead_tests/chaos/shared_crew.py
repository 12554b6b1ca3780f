"""A crew that several tests share: its warm-up takes longer than most tests."""

import contextlib
import itertools
from collections.abc import Generator, Mapping
from pathlib import Path

from fairlead_tests.chaos.crew import Crew, crew

WORKERS = ("w1", "w2")
"""The workers of a shared crew."""


class SharedCrew:
    """Lends a crew of two warm workers; after a failed test the next one gets a new crew."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = environ
        self._numbers = itertools.count(1)
        self._crew: Crew | None = None
        self._holds = contextlib.ExitStack()
        """Stops the crew, if there is one."""

    def close(self) -> None:
        """Stop the crew gracefully; the next test gets a new one."""
        self._crew = None
        self._holds.close()

    @contextlib.contextmanager
    def lend(self) -> Generator[Crew]:
        """Yield the crew with warm workers and without work; tests have to leave it like that."""
        try:
            if self._crew is None:
                folder = self._folder / f"node{next(self._numbers)}"
                made = crew(folder, workers=len(WORKERS), environ=self._environ)
                self._crew = self._holds.enter_context(made)
            self._crew.begin_anew(*WORKERS)
            yield self._crew
            left = self._crew.look().connectors
            assert not left, f"the test has left {[*left]}"
        except BaseException as error:
            self._crew = None
            self._holds.__exit__(type(error), error, error.__traceback__)
            raise
