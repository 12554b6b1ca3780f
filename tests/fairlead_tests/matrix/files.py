# pyright: basic
"""Files as source and sink: a folder of CSV files, and folders of Parquet files."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

import duckdb

from fairlead_tests.matrix.ends import SCHEMA, Room, SinkEnd, SourceEnd, Tally


class FilesSource(SourceEnd):
    """A folder that all pairs read."""

    kind: ClassVar[str] = "files"

    def __init__(self, room: Room, seed: int, pause_s: float) -> None:
        super().__init__(seed, pause_s)
        self._folder = room.others / "landing"
        self._folder.mkdir()
        self._rows: dict[int, int] = {}
        self._files = 0

    def config(self, pair: str) -> Mapping[str, str]:
        del pair
        return {
            "source.format": "csv",
            "source.path": str(self._folder),
            "source.schema": SCHEMA,
            "source.min.age.ms": "0",
        }

    def write(self) -> None:
        first = len(self._rows)
        rows = dict(enumerate(self.amounts(), first))
        hidden = self._folder / f".{self._files:06d}.part"
        lines = (f"{key},{amount}\n" for key, amount in rows.items())
        hidden.write_text("".join(["id,amount\n", *lines]))
        hidden.rename(self._folder / f"{self._files:06d}.csv")
        self._rows |= rows
        self._files += 1

    def rows(self) -> Mapping[int, int]:
        return self._rows


class FilesSink(SinkEnd):
    """A folder of Parquet files for each pair."""

    kind: ClassVar[str] = "files"

    def __init__(self, room: Room) -> None:
        self._folder = room.sinks

    def config(self, pair: str) -> Mapping[str, str]:
        return {"sink.format": "parquet", "sink.path": str(self._folder / pair)}

    def tally(self, pair: str) -> Tally:
        found = self._ask(pair, "count(*), count(DISTINCT id), sum(id), sum(amount)", "")
        return Tally.told(found[0] if found else (0, 0, 0, 0))

    def ids(self, pair: str) -> Counter[int]:
        return Counter(dict(self._ask(pair, "id, count(*)", "GROUP BY id")))

    def _ask(self, pair: str, what: str, more: str) -> list[tuple[Any, ...]]:
        """Read all visible files; there may be none yet."""
        files = [str(each) for each in (self._folder / pair).glob("[!._]*.parquet")]
        if not files:
            return []
        with duckdb.connect() as asked:
            return asked.execute(f"SELECT {what} FROM read_parquet(?) {more}", [files]).fetchall()
