"""Finds parsed values that Connect's converter refuses, or that Spark's types cannot hold.

Connect refuses a value that is required, has no default, and is null or not there; a value is
required unless its schema says `"optional": true`. Milliseconds beyond Spark's timestamps are no
time: Debezium writes such ones for PostgreSQL's `infinity`.
"""

from collections.abc import Callable, Iterable
from typing import Final

from .....engines.spelling import literal, quoted
from .connect_schema import CORRUPT, LONE, Schema, default_of, fields_of, is_in_millis

_LATEST_MS: Final = ((1 << 63) - 1) // 1000
"""The latest time of a timestamp in ms since 1970; the earliest one is its negative."""


def is_required(schema: Schema) -> bool:
    """Tell whether a value must not be null, nor missing."""
    return schema.get("optional") is not True and default_of(schema) is None


def flaw_of(schema: Schema, parsed: str) -> str:
    """Return the expression of the reason why a parsed record is refused; "": none ever is.

    `parsed` is the name of the parsed object, whose column `_value` is a value that is no struct.
    """
    is_struct = schema.get("type") == "struct"
    fields = fields_of(schema) if is_struct else {LONE: schema}
    flaw = _first([_flaw(each, at, f"{parsed}.{quoted(at)}") for at, each in fields.items()])
    # A value that does not fit its type is null here as well, and is told as such.
    is_whole = f"{parsed} IS NOT NULL AND {parsed}.{CORRUPT} IS NULL"
    return flaw and f"CASE WHEN {is_whole} THEN {flaw} END"


def _flaw(schema: Schema, name: str, sql: str) -> str:
    """Return the expression of the reason why a parsed value is refused; "": none ever is.

    Its value is null for values that are not refused. `name` is the field's name.
    """
    whys = [*_own_flaws(schema, name, sql)]
    if inner := _inner_flaw(schema, name, sql):
        whys.append(f"CASE WHEN {sql} IS NOT NULL THEN {inner} END")
    return _first(whys)


def _own_flaws(schema: Schema, name: str, sql: str) -> Iterable[str]:
    if is_required(schema):
        why = literal(f"has no value for the field `{name}`, which its schema requires")
        yield f"CASE WHEN {sql} IS NULL THEN {why} END"
    if is_in_millis(schema):
        before = literal(f"has a time in the field `{name}` that no timestamp holds: ")
        why = f"concat({before}, CAST({sql} AS STRING), ' ms since 1970')"
        yield f"CASE WHEN {sql} NOT BETWEEN {-_LATEST_MS} AND {_LATEST_MS} THEN {why} END"


def _inner_flaw(schema: Schema, name: str, sql: str) -> str:
    """Return the expression for the values within a value; "": none is refused."""
    kind = schema.get("type")
    if kind == "struct":
        fields = fields_of(schema).items()
        return _first([_flaw(each, at, f"{sql}.{quoted(at)}") for at, each in fields])
    if kind == "array":
        return _of_items(sql, lambda each: _flaw(schema.get("items", {}), name, each))
    if kind == "map":
        return _of_items(
            f"map_values({sql})", lambda each: _flaw(schema.get("values", {}), name, each)
        )
    return ""


def _of_items(sql: str, flaw: Callable[[str], str]) -> str:
    inner = flaw("each")
    return inner and f"get(filter(transform({sql}, each -> {inner}), why -> why IS NOT NULL), 0)"


def _first(whys: Iterable[str]) -> str:
    found = [each for each in whys if each]
    return f"coalesce({', '.join(found)})" if found else ""
