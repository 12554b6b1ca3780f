# pyright: basic, reportAttributeAccessIssue=false
"""Reads records in JSON with Arrow: all of them as one text, each as a line of it."""

import pyarrow as pa
import pyarrow.compute as pc

from ..spark.odd_texts import is_match
from .flaws import find_flaw, is_text
from .proof import JsonReading


def parse_records(values: pa.ChunkedArray, reading: JsonReading) -> pa.Table | None:
    """Return the columns of records that have a value; None: Arrow may not read all of them."""
    present = values.drop_null()
    text = b"\n".join(present.to_pylist())
    is_sound = text and is_text(present) and not find_flaw(text)
    if not is_sound or (reading.odd and is_match(text, reading.odd)):
        return None
    parsed = reading.parse(text)
    # Fewer or more rows: a value has line ends, which a parser would refuse within a text.
    return None if parsed is None or parsed.num_rows != len(present) else parsed


def with_nulls(rows: pa.Table, values: pa.ChunkedArray) -> pa.Table:
    """Return rows with one without values for each null."""
    if not values.null_count:
        return rows
    is_there = pc.is_valid(values).combine_chunks()
    places = pc.subtract(pc.cumulative_sum(pc.cast(is_there, pa.int64())), 1)
    return rows.take(pc.if_else(is_there, places, None))
