"""The ends of a pipeline: a source that gets rows with ids, and a sink whose rows are counted.

The content of sources and sinks is read from the files, the database and the broker
directly, with clients that are not part of the product.
"""

import random
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

SCHEMA = "id BIGINT, amount BIGINT"


class Tally(NamedTuple):
    """The content of an end, as totals."""

    rows: int
    distinct: int
    """The number of different ids."""
    ids: int
    """The sum of the ids over all rows."""
    amounts: int

    @classmethod
    def of(cls, rows: Mapping[int, int]) -> "Tally":
        """Return the totals of amounts by unique ids."""
        return cls(len(rows), len(rows), sum(rows), sum(rows.values()))

    @classmethod
    def told(cls, row: tuple[int | None, ...]) -> "Tally":
        """Return the totals of a query, in which sums of no rows are null."""
        return cls(*(int(each or 0) for each in row))


class SourceEnd(ABC):
    """A source into which a thread writes rows from `start` until `stop`."""

    kind: ClassVar[str]
    only_adds: ClassVar[bool] = True
    """Whether rows stay as they were written; if not, only a sink that upserts can have them."""
    away: ClassVar[tuple[type[Exception], ...]] = ()
    """The errors of a writer while its server is away: it retries."""

    def __init__(self, seed: int, pause_s: float) -> None:
        self._dice = random.Random(f"{seed} {self.kind}")
        self._pause_s = pause_s
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"writer-{self.kind}")
        self._error: Exception | None = None

    @abstractmethod
    def config(self, pair: str) -> Mapping[str, str]:
        """Return the keys of a connector that reads it."""

    @abstractmethod
    def write(self) -> None:
        """Write a few rows."""

    @abstractmethod
    def rows(self) -> Mapping[int, int]:
        """Return the amounts by id in the source, after its writer has stopped."""

    def settle(self) -> None:  # noqa: B027  # most have nothing under way
        """Finish pending transactions."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop writing; raises the error that has ended the writer too early."""
        self._halt.set()
        if self._thread.ident is not None:
            self._thread.join()
            self._thread = threading.Thread()
            self.settle()
        if self._error is not None:
            raise self._error

    def amounts(self) -> list[int]:
        """Return the ids of the next rows: a few, and sometimes many."""
        count = 3_000 if self._dice.random() < 0.03 else self._dice.randint(1, 60)
        return [self._dice.randrange(1_000_000) for _ in range(count)]

    def _run(self) -> None:
        try:
            while not self._halt.wait(self._pause_s):
                try:
                    self.write()
                except self.away:
                    continue
        except Exception as error:  # noqa: BLE001  # told by `stop`
            self._error = error


class SinkEnd(ABC):
    """A sink type, with a separate output for each pair."""

    kind: ClassVar[str]

    @abstractmethod
    def config(self, pair: str) -> Mapping[str, str]:
        """Return the keys of a connector that writes there."""

    @abstractmethod
    def tally(self, pair: str) -> Tally:
        """Return the totals of a pair's output."""

    @abstractmethod
    def ids(self, pair: str) -> Counter[int]:
        """Return the count of each id."""


class Room(NamedTuple):
    """The folders of a run: one on a disk that may fill up, for sinks, and one that is not."""

    sinks: Path
    others: Path
