"""Makes `/openapi.json` of the declarations of all routes, at its first request.

A member of a body is described by the docstring below its field, or else by the glossary.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from http import HTTPStatus
from inspect import cleandoc, getsource
from itertools import pairwise
from textwrap import dedent
from typing import Any, Final

import msgspec
from starlette.responses import Response

from ...replies.glossary import meaning_of
from ...replies.node import ErrorMessage
from .errors import JSON
from .routing import (
    BODY_ERRORS,
    EVENT_STREAM,
    JSON_LINES,
    ApiRoute,
    EventStream,
    Input,
    JsonLines,
)

VERSION: Final = "3.1.0"
"""The version of OpenAPI."""
ITEM: Final = "x-itemSchema"
"""What OpenAPI 3.2 has as `itemSchema`; generators of clients refuse that version so far."""
REFERENCE: Final = "#/components/schemas/{name}"
SCHEMES: Final[Mapping[str, Mapping[str, str]]] = {
    "basic": {"type": "http", "scheme": "basic"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "mtls": {"type": "mutualTLS"},
}
"""How a caller may prove who they are; a node asks for some of these, or for none."""
REFUSALS: Final = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}
)
"""The statuses for callers who are not known, lack a right, or send too much."""
_TEXT: Final = {"content": {"text/plain": {"schema": {"type": "string"}}}}


def describe(info: Mapping[str, str], routes: Iterable[ApiRoute]) -> bytes:
    """Return the document of an interface; `info` is its title, summary and version."""
    paths: dict[str, dict[str, Any]] = {}
    types: list[Any] = [ErrorMessage]
    for route in routes:
        paths.setdefault(route.path_format, {})[route.method.lower()] = _operation(route)
        types += _types_of(route)
    _, schemas = msgspec.json.schema_components(types, ref_template=REFERENCE)
    _describe_members(schemas)
    document = {"openapi": VERSION, "info": info, "paths": paths}
    components = {"schemas": schemas, "securitySchemes": SCHEMES}
    return msgspec.json.encode({**document, "components": components})


def _types_of(route: ApiRoute) -> Iterator[Any]:
    """Yield the types of all bodies and parameters of a route."""
    inputs, answers = route.inputs, route.operation.answers.values()
    bodies = [inputs.body] if inputs.body else []
    yield from (each.kind for each in (*inputs.of_path, *inputs.of_query, *bodies))
    for each in answers:
        match each:
            case EventStream(kinds):
                yield from kinds.values()
            case JsonLines(kind):
                yield kind
            case _:
                if each not in {None, Response}:
                    yield each


def _operation(route: ApiRoute) -> dict[str, Any]:
    inputs, operation = route.inputs, route.operation
    described: dict[str, Any] = {
        "tags": [operation.tag],
        "summary": operation.name.replace("_", " ").title(),
        "description": operation.description,
        "operationId": operation.name,
        "parameters": [
            *(_parameter("path", each) for each in inputs.of_path),
            *(_parameter("query", each) for each in inputs.of_query),
        ],
        "responses": _responses(route),
        "security": [] if route.rights.needs is None else [*({each: []} for each in SCHEMES), {}],
    }
    if (body := inputs.body) is not None:
        described["requestBody"] = {**_content(body.kind), "required": body.is_required}
    return described


def _parameter(place: str, given: Input) -> dict[str, Any]:
    schema = _schema(given.kind)
    if not given.is_required and given.default is not None:
        schema = {**schema, "default": given.default}
    described = {"name": given.name, "in": place, "required": given.is_required, "schema": schema}
    text = schema.get("description")
    return {**described, "description": text} if text else described


def _responses(route: ApiRoute) -> dict[str, Any]:
    operation = route.operation
    described = {str(each.value): _answer(kind) for each, kind in operation.answers.items()}
    refusals = {*operation.errors, *(BODY_ERRORS if route.inputs.body else ())}
    refusals |= set() if route.rights.needs is None else REFUSALS
    for each in sorted(refusals - operation.answers.keys()):
        described[str(each.value)] = _error(each.phrase)
    return {**described, "default": _error("Any error.")}


def _answer(kind: Any) -> dict[str, Any]:
    done = {"description": "Done."}
    match kind:
        case None:
            return done
        case EventStream(kinds):
            events = [_event(name, each) for name, each in kinds.items()]
            return {**done, **_stream(EVENT_STREAM, {"oneOf": events})}
        case JsonLines(item):
            return {**done, **_stream(JSON_LINES, _schema(item))}
        case _:
            return {**done, **(_TEXT if kind is Response else _content(kind))}


def _stream(media_type: str, item: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": {media_type: {"schema": {"type": "string"}, ITEM: item}}}


def _event(name: str, kind: Any) -> dict[str, Any]:
    """Return the schema of an event as its reader has it, with texts as members."""
    data = {"type": "string", "contentMediaType": JSON, "contentSchema": _schema(kind)}
    members = {"id": {"type": "string"}, "event": {"const": name}, "data": data}
    return {"type": "object", "required": [*members], "properties": members}


def _error(text: str) -> dict[str, Any]:
    return {"description": text, **_content(ErrorMessage)}


def _content(kind: Any) -> dict[str, Any]:
    return {"content": {JSON: {"schema": _schema(kind)}}}


def _schema(kind: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=REFERENCE)
    return schema


def _describe_members(schemas: Mapping[str, Any]) -> None:
    texts: dict[tuple[str, str], str] = {}
    for kind in _subclasses(msgspec.Struct):
        if kind.__name__ in schemas:
            docstrings = _docstrings(kind)
            for field in msgspec.structs.fields(kind):
                if field.name in docstrings:
                    texts[kind.__name__, field.encode_name] = docstrings[field.name]
    for schema, described in schemas.items():
        for member, each in described.get("properties", {}).items():
            if not each.get("description"):
                each["description"] = texts.get((schema, member)) or meaning_of(schema, member)


def _subclasses(kind: type) -> Iterator[type]:
    subclasses: list[type] = kind.__subclasses__()
    for each in subclasses:
        yield each
        yield from _subclasses(each)


@cache
def _docstrings(kind: type) -> Mapping[str, str]:
    """Return the docstrings of the fields of a class, inherited ones included, by field.

    To read the source of a class takes as long as all else for it: it is read once a process.
    """
    texts: dict[str, str] = {}
    for each in reversed([each for each in kind.__mro__ if each.__module__ == kind.__module__]):
        body = ast.parse(dedent(getsource(each))).body[0]
        for above, below in pairwise(ast.iter_child_nodes(body)):
            match above, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = cleandoc(text)
                case _:
                    pass
    return texts
