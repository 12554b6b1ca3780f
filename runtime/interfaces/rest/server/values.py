"""Reads what a request holds as values of declared types, and says where it is malformed.

A type is declared as for msgspec: structs, dictionaries, lists, scalars, with `Meta` for limits.
Its reader is compiled once, from what `msgspec.inspect` says of it. (msgspec's own conversion stops
at the first flaw, and does not name the key of a dictionary that has it: a client is told all flaws
with their places.) No message has a value in it, which may be secret.

`Meta(extra={CONVERT: function})` has a value converted first; its `ValueError` is the flaw. Values
of a path or a query are texts, from which numbers and booleans are parsed.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeGuard, cast

from msgspec import inspect

from .errors import ApiError

CONVERT: Final = "convert"
"""The key in `Meta.extra` of a function that converts a value before it is checked."""
REQUIRED: Final = "Field required"
_TRUE: Final = frozenset({"true", "1", "on", "t", "y", "yes"})
_FALSE: Final = frozenset({"false", "0", "off", "f", "n", "no"})
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,4000}")

Place = tuple[str | int, ...]


class RequestFlaw(NamedTuple):
    """A flaw in a part of a request; its place is the keys and indexes that lead to it."""

    place: Place
    text: str


Flaws = list[RequestFlaw]
Reader = Callable[[object, Place, Flaws], Any]
"""Returns the value that was read; what is wrong with it is added to the flaws."""


class MalformedError(ApiError):
    """A request is not of the declared types."""

    def __init__(self, flaws: Flaws) -> None:
        parts = (f"{'.'.join(map(str, place)) or 'body'}: {text}" for place, text in flaws)
        message = f"the request is malformed: {'; '.join(parts)}"
        super().__init__(HTTPStatus.BAD_REQUEST, message)


def reader_of(kind: Any, *, of_text: bool = False) -> Reader:
    """Return the reader of a type; with `of_text`, of its values in a path or a query."""
    return _compile(inspect.type_info(kind), _OF_TEXT if of_text else _OF_JSON)


_Scalars = Mapping[type[inspect.Type], Callable[[Any], Reader]]
"""Make the reader of a scalar, by its type."""


def _compile(node: inspect.Type, scalars: _Scalars) -> Reader:
    match node:
        case inspect.Metadata():
            inner = _compile(node.type, scalars)
            extra = cast("dict[str, Any]", node.extra or {})  # pyright: ignore
            return partial(_read_converted, extra[CONVERT], inner) if CONVERT in extra else inner
        case inspect.StructType():
            fields = {each.encode_name: _compile(each.type, scalars) for each in node.fields}
            return partial(_read_struct, node, fields)
        case inspect.DictType():
            key, item = _compile(node.key_type, scalars), _compile(node.value_type, scalars)
            return partial(_read_dict, node, key, item)
        case inspect.ListType():
            return partial(_read_list, node, _compile(node.item_type, scalars))
        case inspect.UnionType():
            return partial(_read_any, [_compile(each, scalars) for each in node.types])
        case _:
            return scalars[type(node)](node)


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _is_array(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def _read_converted(
    convert: Callable[[object], object],
    inner: Reader,
    value: object,
    at: Place,
    flaws: Flaws,
) -> object:
    try:
        converted = convert(value)
    except ValueError as error:
        flaws.append(RequestFlaw(at, str(error)))
        return None
    return inner(converted, at, flaws)


def _read_struct(
    node: inspect.StructType,
    readers: Mapping[str, Reader],
    value: object,
    at: Place,
    flaws: Flaws,
) -> object:
    if not _is_object(value):
        what = "Input should be a valid dictionary or object to extract fields from"
        flaws.append(RequestFlaw(at, what))
        return None
    before, values = len(flaws), dict[str, object]()
    for field in node.fields:
        name = field.encode_name
        if name in value:
            values[field.name] = readers[name](value[name], (*at, name), flaws)
        elif field.required:
            flaws.append(RequestFlaw((*at, name), REQUIRED))
    unknown = [name for name in value if name not in readers]
    flaws += [RequestFlaw((*at, name), "Extra inputs are not permitted") for name in unknown]
    return node.cls(**values) if len(flaws) == before else None


def _read_dict(
    node: inspect.DictType,
    key: Reader,
    item: Reader,
    value: object,
    at: Place,
    flaws: Flaws,
) -> object:
    if not _is_object(value):
        flaws.append(RequestFlaw(at, "Input should be a valid dictionary"))
        return None
    most = node.max_length
    if most is not None and len(value) > most:
        what = f"Dictionary should have at most {most} items after validation, not {len(value)}"
        flaws.append(RequestFlaw(at, what))
        return None
    return {
        key(name, (*at, name, "[key]"), flaws): item(each, (*at, name), flaws)
        for name, each in value.items()
    }


def _read_list(
    node: inspect.ListType, item: Reader, value: object, at: Place, flaws: Flaws
) -> object:
    if not _is_array(value):
        flaws.append(RequestFlaw(at, "Input should be a valid list"))
        return None
    for limit, word, is_broken in (
        (node.min_length, "least", int.__lt__),
        (node.max_length, "most", int.__gt__),
    ):
        if limit is not None and is_broken(len(value), limit):
            items = "item" if limit == 1 else "items"
            what = f"List should have at {word} {limit} {items} after validation, not {len(value)}"
            flaws.append(RequestFlaw(at, what))
            return None
    return [item(each, (*at, number), flaws) for number, each in enumerate(value)]


def _read_any(readers: list[Reader], value: object, at: Place, flaws: Flaws) -> object:
    """Return a value of one of several types; the flaws are those of the first type."""
    first: list[RequestFlaw] | None = None
    for read in readers:
        mine: list[RequestFlaw] = []
        result = read(value, at, mine)
        if not mine:
            return result
        first = mine if first is None else first
    flaws += first or []
    return None


def _read_int(node: inspect.IntType, value: object, at: Place, flaws: Flaws) -> object:
    if not isinstance(value, int) or isinstance(value, bool):
        flaws.append(RequestFlaw(at, "Input should be a valid integer"))
    elif node.ge is not None and value < node.ge:
        flaws.append(RequestFlaw(at, f"Input should be greater than or equal to {node.ge}"))
    elif node.le is not None and value > node.le:
        flaws.append(RequestFlaw(at, f"Input should be less than or equal to {node.le}"))
    return value


def _parse_int(node: inspect.IntType, value: object, at: Place, flaws: Flaws) -> object:
    if _INTEGER.fullmatch(str(value)):
        return _read_int(node, int(str(value)), at, flaws)
    what = "Input should be a valid integer, unable to parse string as an integer"
    flaws.append(RequestFlaw(at, what))
    return None


def _read_word(
    node: inspect.LiteralType | inspect.EnumType, value: object, at: Place, flaws: Flaws
) -> object:
    """Return one of a few words, or the member of an enum that has it as its value."""
    words = node.values if isinstance(node, inspect.LiteralType) else [*node.cls]
    for each in words:
        if each == value:
            return each
    flaws.append(
        RequestFlaw(at, f"Input should be {' or '.join(repr(str(each)) for each in words)}")
    )
    return None


def _read_exactly(kind: type, what: str, value: object, at: Place, flaws: Flaws) -> object:
    if not isinstance(value, kind):
        flaws.append(RequestFlaw(at, f"Input should be a valid {what}"))
    return value


def _read_none(value: object, at: Place, flaws: Flaws) -> None:
    if value is not None:
        flaws.append(RequestFlaw(at, "Input should be null"))


def _read_anything(value: object, _: Place, __: Flaws) -> object:
    return value


def _parse_flag(value: object, at: Place, flaws: Flaws) -> bool:
    word = str(value).lower()
    if word not in _TRUE | _FALSE:
        flaws.append(RequestFlaw(at, "Input should be a valid boolean, unable to interpret input"))
    return word in _TRUE


_OF_JSON: Final[_Scalars] = {
    inspect.StrType: lambda _: partial(_read_exactly, str, "string"),
    inspect.FloatType: lambda _: partial(_read_exactly, float, "number"),
    inspect.BoolType: lambda _: partial(_read_exactly, bool, "boolean"),
    inspect.IntType: lambda node: partial(_read_int, node),
    inspect.LiteralType: lambda node: partial(_read_word, node),
    inspect.EnumType: lambda node: partial(_read_word, node),
    inspect.NoneType: lambda _: _read_none,
    inspect.AnyType: lambda _: _read_anything,
}
_OF_TEXT: Final[_Scalars] = {
    **_OF_JSON,
    inspect.BoolType: lambda _: _parse_flag,
    inspect.IntType: lambda node: partial(_parse_int, node),
}
