"""Checks that an output has every row of the input exactly once, and unchanged.

Rows are identified by key columns and compared as a multiset, so their order and files do not
matter. Integers and decimals are summed exactly, floats by `math.fsum`, whose result does not
depend on the order. So all comparisons are for equality, without a tolerance. NaN and infinity
count as no value.
"""
# pyright: basic, reportAttributeAccessIssue=false

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from .flights import ensure_flights, read_flights
from .output import Format, read_output

FLIGHT_KEYS: Final = ("time_hour", "carrier", "flight")
FLIGHT_SUMS: Final = ("distance", "air_time")
FLIGHT_PARTITION: Final = "carrier"

_EXAMPLES = 3

Number = int | float | Decimal


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedRows:
    """The expected rows of an output, reduced to the columns that are compared.

    `keys` identify rows, `sums` are numeric, `partition` is the column whose values are counted
    separately (None: no such check). The output's columns are cast to the types of `rows`.
    """

    rows: pa.Table
    keys: tuple[str, ...]
    sums: tuple[str, ...]
    partition: str | None = None

    @classmethod
    def of(
        cls,
        source: pa.Table,
        *,
        keys: Sequence[str],
        sums: Sequence[str],
        partition: str | None = None,
    ) -> "ExpectedRows":
        """Return the expected rows of an output that keeps all rows of `source`.

        Raises ValueError if a column is not in `source` or one of `sums` is not numeric.
        """
        columns = dict.fromkeys([*keys, *sums, *([partition] if partition else [])])
        lacking = [name for name in columns if name not in source.column_names]
        texts = [name for name in sums if name not in lacking and not _numeric(source[name].type)]
        if lacking or texts:
            raise ValueError(f"not in the source: {lacking}; not numeric: {texts}")
        return cls(source.select(list(columns)), tuple(keys), tuple(sums), partition)


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison; if it failed, `detail` says where to look."""

    name: str
    expected: Number
    found: Number
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether the found value is the expected one."""
        return self.expected == self.found


@dataclass(frozen=True, slots=True)
class Verdict:
    """All checks of one output, the most important first."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check is ok."""
        return all(check.ok for check in self.checks)


def expect_flights(archive: Path | None = None) -> ExpectedRows:
    """Return the expected rows of an output that keeps all flights.

    Raises FlightsError if the flights are not available or not the expected ones.
    """
    text = read_flights(archive or ensure_flights())
    options = csv.ConvertOptions(
        column_types={"time_hour": pa.timestamp("us", tz="UTC")},  # as precise as Spark's
        null_values=["NA"],
        strings_can_be_null=True,
    )
    source = csv.read_csv(io.BytesIO(text), convert_options=options)
    return ExpectedRows.of(source, keys=FLIGHT_KEYS, sums=FLIGHT_SUMS, partition=FLIGHT_PARTITION)


def judge(expected: ExpectedRows, output: Path, file_format: Format = "parquet") -> Verdict:
    """Compare the visible files below `output` with the expected rows.

    A missing directory has no rows. A file that is unreadable or lacks a column fails the first
    check, with its name; the other checks use the remaining files.
    """
    written = read_output(output, expected.rows.schema, file_format)
    unreadable = len(written.unreadable)
    return Verdict(
        (
            Check("unreadable files", 0, unreadable, _examples(written.unreadable, unreadable)),
            Check("rows", expected.rows.num_rows, written.rows.num_rows),
            *_key_checks(expected, written.rows),
            *(
                check
                for name in expected.sums
                for check in _sum_checks(name, expected, written.rows)
            ),
            *_partition_checks(expected, written.rows),
        )
    )


def _key_checks(expected: ExpectedRows, written: pa.Table) -> Iterator[Check]:
    counts = _counts(expected, written, expected.keys)
    more = pc.greater(counts["found"], counts["expected"])
    known = pc.greater(counts["expected"], 0)
    for name, where, of, minus in (
        ("rows doubled", pc.and_(more, known), "found", "expected"),
        ("rows lost", pc.less(counts["found"], counts["expected"]), "expected", "found"),
        ("rows of no source", pc.and_not(more, known), "found", "expected"),
    ):
        wrong = counts.filter(where)
        excess = pc.sum(pc.subtract(wrong[of], wrong[minus])).as_py() or 0
        rows = wrong.slice(0, _EXAMPLES).select(list(expected.keys)).to_pylist()
        shown = [", ".join(f"{key}={value}" for key, value in row.items()) for row in rows]
        yield Check(name, 0, excess, _examples(shown, wrong.num_rows))


def _sum_checks(name: str, expected: ExpectedRows, written: pa.Table) -> Iterator[Check]:
    wanted, got = _values(expected.rows[name]), _values(written[name])
    yield Check(f"values of {name}", len(wanted), len(got))
    yield Check(f"sum of {name}", _sum(wanted), _sum(got))


def _partition_checks(expected: ExpectedRows, written: pa.Table) -> Iterator[Check]:
    if expected.partition is None:
        return
    counts = _counts(expected, written, (expected.partition,))
    wrong = counts.filter(pc.not_equal(counts["expected"], counts["found"]))
    shown = [
        f"{row[expected.partition]}: {row['found']} rows instead of {row['expected']}"
        for row in wrong.slice(0, _EXAMPLES).to_pylist()
    ]
    name = f"{expected.partition}s with another count"
    yield Check(name, 0, wrong.num_rows, _examples(shown, wrong.num_rows))


def _counts(expected: ExpectedRows, written: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return how often each key is expected and written; null is a key like any other."""
    sides = [
        table.select(list(keys))
        .append_column(" expected", pa.repeat(pa.scalar(side, pa.int64()), table.num_rows))
        .append_column(" found", pa.repeat(pa.scalar(1 - side, pa.int64()), table.num_rows))
        for table, side in ((expected.rows, 1), (written, 0))
    ]
    grouped = pa.concat_tables(sides).group_by(list(keys))
    counted = grouped.aggregate([(" expected", "sum"), (" found", "sum")])
    return counted.rename_columns({" expected_sum": "expected", " found_sum": "found"})


def _values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.filter(pc.is_finite(column))


def _sum(values: pa.ChunkedArray) -> Number:
    if pa.types.is_floating(values.type):
        return math.fsum(values.to_pylist())
    if pa.types.is_integer(values.type):
        # The sum of 64-bit integers could overflow without an error.
        return int(pc.sum(values.cast(pa.decimal128(38))).as_py() or 0)
    total: Decimal | None = pc.sum(values).as_py()
    return total or Decimal(0)


def _numeric(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _examples(shown: Sequence[str], total: int) -> str:
    listed = "; ".join(shown[:_EXAMPLES])
    return listed if total <= _EXAMPLES else f"{listed}; and {total - _EXAMPLES} more"
