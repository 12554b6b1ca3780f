"""The two ends of a pair: a source that rows with ids come to, and a sink whose rows are counted.

What a source holds and what a sink holds is asked of the files, the database and the broker
themselves, by clients that are no part of the product.
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
    """What an end holds, as it says itself."""

    rows: int
    distinct: int
    """How many different ids there are."""
    ids: int
    """Their sum over all rows."""
    amounts: int

    @classmethod
    def of(cls, rows: Mapping[int, int]) -> "Tally":
        """Return that of amounts by ids, each of which is there once."""
        return cls(len(rows), len(rows), sum(rows), sum(rows.values()))

    @classmethod
    def told(cls, row: tuple[int | None, ...]) -> "Tally":
        """Return what a query of the four answered: sums of nothing are null."""
        return cls(*(int(each or 0) for each in row))


class SourceEnd(ABC):
    """Where rows are written every now and then from `start` until `stop`."""

    kind: ClassVar[str]
    away: ClassVar[tuple[type[Exception], ...]] = ()
    """What a writer meets while its server is away: it tries again."""

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
        """Return the amounts by ids that it holds; its writer is stopped."""

    def settle(self) -> None:  # noqa: B027  # most have nothing under way
        """End what is under way, for good."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Write no more; raises what has ended the writer before its time."""
        self._halt.set()
        if self._thread.ident is not None:
            self._thread.join()
            self._thread = threading.Thread()
            self.settle()
        if self._error is not None:
            raise self._error

    def amounts(self) -> list[int]:
        """Return those of the next rows: a few, and now and then many."""
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
    """Where the rows of all pairs with this sink arrive, each pair's apart."""

    kind: ClassVar[str]

    @abstractmethod
    def config(self, pair: str) -> Mapping[str, str]:
        """Return the keys of a connector that writes there."""

    @abstractmethod
    def tally(self, pair: str) -> Tally:
        """Ask it what it holds of a pair."""

    @abstractmethod
    def ids(self, pair: str) -> Counter[int]:
        """Return how often it holds each id."""


class Room(NamedTuple):
    """Folders of a run: one that may fill up, for what sinks write, and one that does not."""

    sinks: Path
    others: Path
