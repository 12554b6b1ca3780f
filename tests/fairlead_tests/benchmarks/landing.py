# pyright: basic
"""Writes the flights as CSV files of a given size, and counts rows in Parquet files."""

import os
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as papq

from fairlead.runtime.demo.flights import ROWS, ensure_flights, read_flights
from fairlead.runtime.demo.stage import SCHEMA

FLIGHTS = {"source.format": "csv", "source.schema": SCHEMA, "source.null.values": "NA"}


def land(folder: Path, copies: int, files: int) -> int:
    """Write so many copies of the flights, each split into so many files; return the rows."""
    header, *lines = read_flights(ensure_flights()).splitlines(keepends=True)
    folder.mkdir(parents=True)
    size = -(-len(lines) // files)
    parts = [b"".join([header, *lines[at : at + size]]) for at in range(0, len(lines), size)]
    for copy in range(copies):
        for number, part in enumerate(parts):
            (folder / f"{copy:03}-{number:05}.csv").write_bytes(part)
    return copies * ROWS


class Published:
    """Counts the rows of the Parquet files in a folder; known files are not read again."""

    def __init__(self, sink: Path) -> None:
        self._sink = sink
        self._rows: dict[str, int] = {}
        """By the name of a file."""

    def rows(self) -> int:
        """Return the number of rows."""
        for each in self._sink.glob("*.parquet"):
            if each.name not in self._rows:
                self._rows[each.name] = papq.read_metadata(each).num_rows
        return sum(self._rows.values())

    def files(self) -> int:
        """Return the number of files, without reading them: cheap enough for polling."""
        with suppress(FileNotFoundError), os.scandir(self._sink) as found:
            return sum(each.name.endswith(".parquet") for each in found)
        return 0
