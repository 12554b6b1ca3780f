"""Continuous input: small files of rows, each row with a unique id and a number."""
# pyright: basic

import json
import random
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from fairlead.runtime.demo.verdict import ExpectedRows

ROWS_PER_FILE = 200
SCHEMA = pa.schema([("id", pa.int64()), ("amount", pa.int64())])


@dataclass
class Feed:
    """Writes a file every `pause_s` seconds from `start` until `stop`, atomically."""

    folder: Path
    form: str
    seed: int
    pause_s: float = 0.5
    rows: list[dict[str, int]] = field(default_factory=list[dict[str, int]])
    files: int = 0
    _halt: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start writing files."""
        self.folder.mkdir(parents=True)
        self._thread = threading.Thread(target=self._land_all, name=f"feed-{self.form}")
        self._thread.start()

    def stop(self) -> None:
        """Stop writing files; idempotent."""
        self._halt.set()
        if self._thread is not None:
            self._thread.join()

    def expected(self, files: set[str] | None = None) -> ExpectedRows:
        """Return the expected output of these files, by default of all."""
        return ExpectedRows.of(self._table(files), keys=["id"], sums=["amount"])

    def _table(self, files: set[str] | None) -> pa.Table:
        names = [f"{number:06d}.{self.form}" for number in range(self.files)]
        rows = [
            row
            for number, name in enumerate(names)
            if files is None or name in files
            for row in self.rows[number * ROWS_PER_FILE : (number + 1) * ROWS_PER_FILE]
        ]
        return pa.Table.from_pylist(rows, SCHEMA)

    def _land_all(self) -> None:
        dice = random.Random(self.seed)
        while not self._halt.wait(self.pause_s):
            self.land(dice)

    def land(self, dice: random.Random) -> None:
        """Write one file."""
        first = len(self.rows)
        rows = [
            {"id": first + number, "amount": dice.randrange(1_000_000)}
            for number in range(ROWS_PER_FILE)
        ]
        name = f"{self.files:06d}.{self.form}"
        hidden = self.folder / f".{name}.part"
        hidden.write_text(_spelled(rows, self.form))
        hidden.rename(self.folder / name)
        self.rows += rows
        self.files += 1


def _spelled(rows: list[dict[str, int]], form: str) -> str:
    if form == "json":
        return "".join(f"{json.dumps(row)}\n" for row in rows)
    return "".join(["id,amount\n", *(f"{row['id']},{row['amount']}\n" for row in rows)])
