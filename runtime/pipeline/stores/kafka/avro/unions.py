# pyright: basic
"""Reads unions of several types as structs with one field for each type, as Connect does.

fastavro's values do not tell int from long, or string from enum. A record with one field has the
same bytes as the field, so each type of a union is wrapped in such a record: `{"int": 1}`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

_NAMED: Final = ("record", "error", "enum", "fixed")
_INSIDE: Final = {"array": "items", "map": "values"}
_NULL: Final = "null"


def tagged(schema: Any, numbers: Iterator[int]) -> Any:  # noqa: ANN401  # JSON
    """Return a schema with each type of a union wrapped in a record; removes defaults.

    Each record's name has the next of `numbers`.
    """
    if isinstance(schema, list):
        types = [tagged(each, numbers) for each in schema]
        if len(branches(schema)) <= 1:
            return types
        return [each if branch(each) == _NULL else _one_field(each, numbers) for each in types]
    if not isinstance(schema, dict):
        return schema
    made = {key: value for key, value in schema.items() if key != "default"}
    inner = _INSIDE.get(str(made["type"]), "type")
    made[inner] = tagged(made[inner], numbers)
    if "fields" in made:
        made["fields"] = [tagged(each, numbers) for each in made["fields"]]
    return made


def branches(union: Sequence[Any]) -> Sequence[Any]:
    """Return the types of a union without null."""
    return [each for each in union if branch(each) != _NULL]


def branch(kind: Any) -> str:  # noqa: ANN401  # JSON
    """Return Connect's field name for a type: its name without the namespace."""
    while isinstance(kind, dict):
        kind = kind["name"] if kind["type"] in _NAMED else kind["type"]
    return str(kind).rpartition(".")[2]


def _one_field(kind: Any, numbers: Iterator[int]) -> dict[str, Any]:  # noqa: ANN401  # JSON
    fields = [{"name": branch(kind), "type": kind}]
    return {"type": "record", "name": f"_fairlead_branch_{next(numbers)}", "fields": fields}
