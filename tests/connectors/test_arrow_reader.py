# pyright: basic
"""What Arrow reads of proved ranges of csv files."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from fairlead.runtime.pipeline.formats.csv.arrow_reader import CsvReading, TextRange, read_ranges

HOW = CsvReading(pa.schema([("n", pa.int32()), ("s", pa.string())]), ",", '"', ("NA",))


def ranges_of(folder: Path, texts: Sequence[str], names: Sequence[str]) -> list[TextRange]:
    ranges: list[TextRange] = []
    for text in texts:
        path = folder / f"{names[0]}{len(ranges)}.csv"
        path.write_text(text)
        ranges.append(TextRange(str(path), (0, len(text)), tuple(names), has_zones=True))
    return ranges


def test_small_files_come_as_one_table_with_their_rows_in_order(tmp_path: Path) -> None:
    texts = ["1,a\n2,b", "", "3,NA\n", '4,"c,d"\r\n5,e', "6,f\n"]
    (table,) = read_ranges(HOW, ranges_of(tmp_path, texts, ["n", "s"]))
    assert table.schema == HOW.schema
    assert table.column("n").to_pylist() == [1, 2, 3, 4, 5, 6]
    assert table.column("s").to_pylist() == ["a", "b", None, "c,d", "e", "f"]


def test_files_of_another_order_of_columns_are_read_by_it(tmp_path: Path) -> None:
    one = ranges_of(tmp_path, ["1,a\n"], ["n", "s"])
    other = ranges_of(tmp_path, ["b,2\n", "c,3"], ["s", "n"])
    tables = [*read_ranges(HOW, [*one, *other, *one])]
    found = [list(zip(*each.to_pydict().values(), strict=True)) for each in tables]
    assert found == [[(1, "a")], [(2, "b"), (3, "c")], [(1, "a")]]
