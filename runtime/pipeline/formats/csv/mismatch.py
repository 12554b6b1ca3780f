# pyright: basic
"""Finds what in a csv text is not proved, for whoever wonders why Spark has read it.

The text is matched as the proof does it, and then line by line. In the line that does not match,
the first columns are tried with their types and the others as texts, so that one column is to
blame, or the record as a whole.
"""

import csv
import io
from bisect import bisect_left
from collections.abc import Sequence
from typing import IO, Final

from pyspark.sql.types import StringType, StructField, StructType

from .grammar import PlainForm, columns_of
from .proof import head_of, read_chunks, records_of, ways_of_arrow

_LONGEST: Final = 40
"""How much of a value is shown."""
_OF_DIALECT: Final = "only Spark reads this dialect of csv, or follows one of its options"


def find_flaw(form: PlainForm) -> str:
    """Return why no text of a format can be proved; empty: it can."""
    ways = ways_of_arrow(form)
    if not ways:
        return _OF_DIALECT
    text = StructField("", StringType())
    for each in form.columns.fields:
        if records_of(b"", form, StructType([each, text]), "\n", ways) is None:
            kind = each.dataType.simpleString().upper()
            return f"only Spark reads column `{each.name}` of type {kind}"
    return "" if records_of(b"", form, form.columns, "\n", ways) else _OF_DIALECT


def find_mismatch(stream: IO[bytes], form: PlainForm, names: Sequence[str]) -> str:
    """Return where a text does not match first, such as its line and column; empty: nowhere.

    `names` are its columns if it has no header.
    """
    chunks, ways = read_chunks(stream), ways_of_arrow(form)
    chunk = next(chunks, b"")
    head = head_of(chunk, form.style)
    columns = columns_of(form, head.names if form.style.header else names)
    if columns is None:
        return "its header has other columns than the schema"
    chunk = chunk[head.size :]
    records = records_of(chunk, form, columns, head.line_end, ways)
    number = int(form.style.header)
    while chunk:
        lines = io.BytesIO(chunk).readlines()
        if records is None or not records.match(chunk):
            for at, line in enumerate(lines, number + 1):
                found = records or records_of(line, form, columns, head.line_end, ways)
                if found is None or not found.match(line):
                    return f"line {at}{_in_line(line, form, columns, head.line_end)}"
            return f"lines {number + 1} to {number + len(lines)}: times with a zone and without"
        number += len(lines)
        chunk = next(chunks, b"")
    return ""


def _in_line(line: bytes, form: PlainForm, columns: StructType, line_end: str) -> str:
    """Return which column of a line is to blame, and its value."""
    count, ways = len(columns.fields), ways_of_arrow(form)

    def fits(typed: int) -> bool:
        """Return whether the line matches if only the first columns have their types."""
        texts = [StructField(each.name, StringType()) for each in columns.fields[typed:]]
        mixed = StructType([*columns.fields[:typed], *texts])
        return records_of(line, form, mixed, line_end, ways) is not None

    if not fits(0):
        return f" is no record of {count} plain values"
    at = bisect_left(range(1, count + 1), x=True, key=lambda typed: not fits(typed))
    if at == count:
        return " has a time without a zone, unlike those before"
    values = _values(line.decode(errors="replace").rstrip("\r\n"), form)
    shown = values[at][:_LONGEST] if at < len(values) else ""
    return f", column `{columns.fields[at].name}`: `{shown or 2 * form.style.quote}`"


def _values(line: str, form: PlainForm) -> list[str]:
    style = form.style
    if not style.quote:
        return line.split(style.separator)
    return next(csv.reader([line], delimiter=style.separator, quotechar=style.quote), [])
