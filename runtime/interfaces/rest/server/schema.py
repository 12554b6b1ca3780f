"""Declares requests and responses as types, from which /openapi.json is generated.

A body is JSON, the values of a config are texts. A handler returns a value of its annotated return
type: in an `HttpAnswer` if status or headers vary, or None for an empty response (204).
"""

import ast
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from http import HTTPStatus
from inspect import cleandoc, getsource, iscoroutinefunction
from itertools import pairwise
from textwrap import dedent
from types import NoneType
from typing import Annotated, Any, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec
from fastapi import APIRouter, Body, FastAPI, Query
from fastapi.openapi.utils import get_openapi
from pydantic import BeforeValidator, WithJsonSchema
from starlette.responses import Response

from ...replies.glossary import meaning_of
from ...replies.node import ErrorMessage
from .bodies import JsonRoute, Negotiates, Numeral
from .errors import JSON
from .paths import template

T = TypeVar("T")
Handler = TypeVar("Handler", bound=Callable[..., Any])

REFERENCE = "#/components/schemas/{name}"
BODY_ERRORS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
"""The error statuses of every request with a body."""


def text_of(value: object) -> object:
    """Convert a number or a boolean to its JSON text, as Connect does."""
    if isinstance(value, Numeral):
        return value.text
    return json.dumps(value) if isinstance(value, bool | int) else whole(value)


def whole(value: object) -> object:
    """Refuse a text that cannot be encoded, such as one with a lone surrogate."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("holds a lone surrogate, which is no Unicode") from None
    return value


def _drop_nulls(value: object) -> object:
    """Remove keys whose value is None."""
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if each is not None}  # pyright: ignore


Key = Annotated[str, BeforeValidator(whole)]
Config = Annotated[
    dict[
        Key,
        Annotated[
            str,
            BeforeValidator(text_of),
            WithJsonSchema({"type": ["string", "number", "boolean"]}),
        ],
    ],
    BeforeValidator(_drop_nulls),
]
ConfigBody = Annotated[Config, Body(description="The config: each key with its value as text.")]
Changes = dict[
    Key,
    Annotated[
        str | None,
        BeforeValidator(text_of),
        WithJsonSchema({"type": ["string", "number", "boolean", "null"]}),
    ],
]
GivenConfigBody = Annotated[
    Changes, Body(description="The config: each key with its value; a null is no value.")
]
ChangesBody = Annotated[
    Changes, Body(description="The settings to change; null resets one to the node's.")
]


def flag(*, default: bool) -> BeforeValidator:
    """Return the type of a boolean query parameter, parsed as in Java: all but `true` is false."""

    def read(value: object) -> object:
        return value.lower() == "true" if isinstance(value, str) and value else default

    return BeforeValidator(read)


Extended = Annotated[
    bool,
    flag(default=False),
    Query(description="Whether to add fields that Connect's own response does not have."),
]


@dataclass(frozen=True, slots=True)
class HttpAnswer(Generic[T]):
    """A response body with its own status and headers."""

    body: T
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Routes:
    """The routes of one subject, with their own router."""

    def __init__(self, tag: str) -> None:
        told = {"description": "Any error.", **ERROR}
        responses: dict[int | str, dict[str, Any]] = {"default": told}
        self.router = APIRouter(tags=[tag], responses=responses, route_class=JsonRoute)
        self.answers: list[tuple[Any, dict[str, Any]]] = []
        """The type of each response body, and the description that its schema comes into."""

    def add(
        self,
        request: str,
        *,
        status: HTTPStatus = HTTPStatus.OK,
        also: Mapping[HTTPStatus, Any] | None = None,
        errors: Iterable[HTTPStatus] = (),
        takes_json: bool = False,
        description: str | None = None,
    ) -> Callable[[Handler], Handler]:
        """Return a decorator that registers a handler for a request such as `GET /groups`.

        `status` is that of the annotated return type, `also` has the types of other statuses;
        `errors` are the error statuses of the route itself.
        """
        method, _, path = request.partition(" ")

        def declare(handler: Handler) -> Handler:
            answered = _answered_by(handler, status)
            types = {status: answered, **(also or {})}
            described = {str(each.value): self._describe(kind) for each, kind in types.items()}
            refusals = {*errors, *(BODY_ERRORS if takes_json else ())} - types.keys()
            for each in sorted(refusals):
                described[str(each.value)] = {"description": each.phrase, **ERROR}
            is_json = answered is not Response
            self.router.add_api_route(
                template(path),
                _encoding(handler, status),
                methods=[method],
                status_code=status,
                response_model=None,
                response_class=Response,
                description=description,
                operation_id=handler.__name__,
                dependencies=[Negotiates] if is_json else None,
                openapi_extra={"responses": described},
            )
            return handler

        return declare

    def _describe(self, kind: Any) -> dict[str, Any]:  # noqa: ANN401  # any type
        if kind is None:
            return {"description": "Done."}
        if kind is Response:  # a text response
            return {"description": "Done.", **TEXT}
        self.answers.append((kind, {"description": "Done."}))
        return self.answers[-1][1]


def encode(body: object, status: int = HTTPStatus.OK) -> Response:
    """Return a JSON response."""
    return Response(msgspec.json.encode(body), status, media_type=JSON)


def describe_answers(app: FastAPI, answers: list[tuple[Any, dict[str, Any]]]) -> None:
    """Add the schemas of all response bodies to /openapi.json, at its first request."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            for kind, described in answers:
                described.update(_content(kind))
            document = get_openapi(
                title=app.title, version=app.version, summary=app.summary, routes=app.routes
            )
            types = [ErrorMessage, *(kind for kind, _ in answers)]
            _, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            schemas.update(components)
            describe_members(schemas)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def describe_members(schemas: Mapping[str, Any]) -> None:
    """Add to each member what the docstring below its field says, or else the glossary."""
    told: dict[tuple[str, str], str] = {}
    for kind in _subclasses(msgspec.Struct):
        if kind.__name__ in schemas:
            docstrings = _docstrings(kind)
            for field_ in msgspec.structs.fields(kind):
                if field_.name in docstrings:
                    told[kind.__name__, field_.encode_name] = docstrings[field_.name]
    for schema, described in schemas.items():
        for member, each in described.get("properties", {}).items():
            if not each.get("description"):
                each["description"] = told.get((schema, member)) or meaning_of(schema, member)


def _subclasses(kind: type) -> Iterator[type]:
    found: list[type] = kind.__subclasses__()
    for each in found:
        yield each
        yield from _subclasses(each)


def _docstrings(kind: type) -> dict[str, str]:
    """Return the docstrings of the fields of a class, inherited ones included, by field."""
    told: dict[str, str] = {}
    for each in reversed([each for each in kind.__mro__ if each.__module__ == kind.__module__]):
        body = ast.parse(dedent(getsource(each))).body[0]
        for above, below in pairwise(ast.iter_child_nodes(body)):
            match above, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    told[name] = cleandoc(text)
                case _:
                    pass
    return told


def _content(kind: Any) -> dict[str, Any]:  # noqa: ANN401  # any type
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=REFERENCE)
    return {"content": {JSON: {"schema": schema}}}


TEXT: Mapping[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}
ERROR: Mapping[str, Any] = _content(ErrorMessage)
"""The OpenAPI description of an error response."""


def _answered_by(handler: Callable[..., object], status: HTTPStatus) -> Any:  # noqa: ANN401  # any type
    """Return the annotated return type of a handler; None if its answer has no body."""
    hint = get_type_hints(handler)["return"]
    if status is HTTPStatus.NO_CONTENT or hint is NoneType:
        return None
    return get_args(hint)[0] if get_origin(hint) is HttpAnswer else hint


def _encoding(handler: Callable[..., Any], status: HTTPStatus) -> Callable[..., Any]:
    """Wrap a handler so that it returns a `Response`."""

    def respond(found: object) -> Response:
        if found is None:
            return Response(status_code=status)
        if isinstance(found, Response):
            return found
        answer = (
            cast(HttpAnswer[object], found)
            if isinstance(found, HttpAnswer)
            else HttpAnswer(found, status)
        )
        response = encode(answer.body, answer.status)
        response.headers.update(answer.headers)
        return response

    if iscoroutinefunction(handler):

        @wraps(handler)
        async def respond_later(*args: object, **options: object) -> Response:
            return respond(await handler(*args, **options))

        return respond_later

    @wraps(handler)
    def respond_now(*args: object, **options: object) -> Response:
        return respond(handler(*args, **options))

    return respond_now
