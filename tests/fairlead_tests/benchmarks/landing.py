# pyright: basic
"""The flights as csv files of a size, and what has come of them: rows in parquet files."""

import os
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as papq

from fairlead.runtime.demo.flights import ROWS, ensure_flights, read_flights
from fairlead.runtime.demo.stage import SCHEMA

FLIGHTS = {"source.format": "csv", "source.schema": SCHEMA, "source.null.values": "NA"}


def land(folder: Path, copies: int, files: int) -> int:
    """Write so many copies of the flights, each cut into so many files; return the rows."""
    header, *lines = read_flights(ensure_flights()).splitlines(keepends=True)
    folder.mkdir(parents=True)
    size = -(-len(lines) // files)
    parts = [b"".join([header, *lines[at : at + size]]) for at in range(0, len(lines), size)]
    for copy in range(copies):
        for number, part in enumerate(parts):
            (folder / f"{copy:03}-{number:05}.csv").write_bytes(part)
    return copies * ROWS


class Published:
    """The rows of the parquet files in a folder; what was looked at before is remembered."""

    def __init__(self, sink: Path) -> None:
        self._sink = sink
        self._rows: dict[str, int] = {}
        """By the name of a file."""

    def rows(self) -> int:
        """Count them."""
        for each in self._sink.glob("*.parquet"):
            if each.name not in self._rows:
                self._rows[each.name] = papq.read_metadata(each).num_rows
        return sum(self._rows.values())

    def files(self) -> int:
        """Count the files, without a look into them: cheaply, it is asked all the time."""
        with suppress(FileNotFoundError), os.scandir(self._sink) as found:
            return sum(each.name.endswith(".parquet") for each in found)
        return 0
