"""A crew for one test after the other: to warm it up costs more than most of them do."""

import contextlib
import itertools
from collections.abc import Generator, Mapping
from pathlib import Path

from fairlead_tests.chaos.crew import Crew, crew

WORKERS = ("w1", "w2")
"""Those that the node of a shared crew runs."""


class SharedCrew:
    """Lends a crew of two warm workers; after a test that failed the next one is lent another."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._folder = folder
        self._environ = environ
        self._numbers = itertools.count(1)
        self._crew: Crew | None = None
        self._holds = contextlib.ExitStack()
        """Ends the crew, if there is one."""

    def close(self) -> None:
        """End the crew in good order; whoever is lent one after that is lent another."""
        self._crew = None
        self._holds.close()

    @contextlib.contextmanager
    def lend(self) -> Generator[Crew]:
        """Give the crew with all its workers warm, and without work; so it has to be given back."""
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
