"""The forms of a list: a table, names, JSON, YAML, a template, or columns of one's own."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final, NamedTuple

from .paths import PathColumn, expand_template, find_values, format_value, parse_columns
from .printing import Misused, Section, Table

_NUMBER: Final = re.compile(r"(\d+)")
_FIELD: Final = re.compile(r"(?P<field>.+?)(?P<sign>!=|==|=)(?P<value>.*)", re.DOTALL)


class ListOutput(StrEnum):
    """The output formats of a list; `wide` cuts no cell, `name` is one name in each line."""

    TABLE = "table"
    WIDE = "wide"
    NAME = "name"
    JSON = "json"
    YAML = "yaml"


FORMATS: Final = (*ListOutput, "jsonpath=", "custom-columns=")
"""The words of `-o`, for shells."""


class ListFormat(NamedTuple):
    """An output format; with a template, or with columns of its own."""

    output: ListOutput
    template: str | None = None
    columns: tuple[PathColumn, ...] = ()


def parse_format(text: str) -> ListFormat:
    """Return the format of `-o`; raises `Misused`."""
    word, equals, rest = text.partition("=")
    if equals and word == "jsonpath":
        expand_template(rest, None)  # an error in it, before anything is asked
        return ListFormat(ListOutput.JSON, rest)
    if equals and word == "custom-columns":
        return ListFormat(ListOutput.TABLE, columns=(*parse_columns(rest),))
    try:
        return ListFormat(ListOutput(text))
    except ValueError:
        words = ", ".join(ListOutput)
        raise Misused(
            f"-o is {words}, jsonpath='{{[*].name}}' or custom-columns=NAME:.name, not {text!r}"
        ) from None


def order_rows(sort_by: str, rows: Sequence[object], table: Table | None) -> list[int]:
    """Return the order of rows by a column of their table, or a path; raises `Misused`.

    Numbers in texts count as numbers; what has no value comes last.
    """
    values = _values_of("--sort-by", sort_by, rows, table)
    return sorted(range(len(values)), key=lambda at: _sort_key(values[at]))


def select_rows(selector: str, rows: Sequence[object], table: Table | None) -> list[int]:
    """Return which rows have all values of `state=FAILED,worker!=w1`; raises `Misused`.

    A field is a column of their table, or a path.
    """
    selected = [*range(len(rows))]
    for text in selector.split(","):
        match = _FIELD.fullmatch(text.strip())
        if match is None:
            raise Misused(f"{text!r} is no condition: write state=FAILED, or .state!=RUNNING")
        values = _values_of("a field", match["field"].strip(), rows, table)
        is_wanted = match["sign"] != "!="
        selected = [
            at for at in selected if (format_value(values[at]) == match["value"]) is is_wanted
        ]
    return selected


def _values_of(
    what: str, field: str, rows: Sequence[object], table: Table | None
) -> Sequence[object]:
    """Return the value that each row has in a column or at a path; raises `Misused`."""
    headings = [each.upper() for each in table.columns] if table else []
    if table is not None and field.upper() in headings:
        column = headings.index(field.upper())
        return [row[column] for row in table.rows]
    if field.lstrip("{").startswith((".", "[", "@", "$")):
        path = field.removeprefix("{").removesuffix("}")
        return [next(iter(find_values(path, row)), None) for row in rows]
    raise Misused(
        f"there is no column {field}: {what} is one of {', '.join(headings)}, or a path such as"
        " .status.connector.state"
    )


def _sort_key(value: object) -> tuple[bool, list[tuple[bool, int | float, str]]]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return False, [(False, value, "")]
    text = format_value(value)
    parts = [each for each in _NUMBER.split(text) if each]
    return not text, [
        (False, int(each), "") if each.isascii() and each.isdecimal() else (True, 0, each)
        for each in parts
    ]


def change_table(sections: Sequence[Section], change: Callable[[Table], Table]) -> list[Section]:
    """Return sections with another first table."""
    first = next((at for at, each in enumerate(sections) if isinstance(each, Table)), None)
    return [
        change(each) if at == first and isinstance(each, Table) else each
        for at, each in enumerate(sections)
    ]


def add_columns(table: Table, headings: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    """Return a table with further columns, whose cells are listed by rows."""
    rows = [(*row, *more) for row, more in zip(table.rows, cells, strict=True)]
    return replace(table, columns=(*table.columns, *headings), rows=rows)
