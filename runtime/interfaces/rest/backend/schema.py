"""What requests carry and what routes answer: declared as types, which /openapi.json describes.

A body is JSON, a config's values are text. A handler returns a value of the type that it is
annotated with, in an `HttpAnswer` where status or
headers are not always the same, and None where there is nothing to say (204).
"""

import json
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from http import HTTPMethod, HTTPStatus
from inspect import iscoroutinefunction
from typing import Annotated, Any, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

import msgspec
from fastapi import APIRouter, Body, Depends, FastAPI, Query
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.responses import Response

from ...replies.node import ErrorMessage
from .errors import JSON, bare_error
from .paths import template

T = TypeVar("T")
Handler = TypeVar("Handler", bound=Callable[..., Any])

_MEDIA_TYPE = re.compile(r"[^\s/,]+/[^\s/,]+")
_TAKES_JSON = ("/connectors", "/connector-plugins", "/admin/")
"""The paths at which a request without a body is refused as well if it says that it has another."""
REFERENCE = "#/components/schemas/{name}"
BODY_ERRORS = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
"""What every request with a body can be refused with."""


class Numeral(float):
    """A number of a JSON text that is no whole one, with its spelling there."""

    text: str

    def __new__(cls, text: str) -> "Numeral":
        """Read a number."""
        made = super().__new__(cls, text)
        made.text = text
        return made


class JsonRequest(Request):
    """A request whose body is JSON as RFC 8259 has it: NaN and infinities are none."""

    async def json(self) -> object:
        """Return the body, with a `Numeral` for each fraction."""
        return json.loads(await self.body(), parse_float=Numeral, parse_constant=_no_number)


class JsonRoute(APIRoute):
    """A route that takes a `JsonRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()

        async def answer_json(request: Request) -> Response:
            return await answer(JsonRequest(request.scope, request.receive))

        return answer_json


def _no_number(text: str) -> object:
    raise json.JSONDecodeError(f"{text} is no number", text, 0)


def text_of(value: object) -> object:
    """Return a number or a boolean as the text that JSON has for it, as Connect does."""
    if isinstance(value, Numeral):
        return value.text
    return json.dumps(value) if isinstance(value, bool | int) else whole(value)


def whole(value: object) -> object:
    """Refuse a text that no log and no answer can hold."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("holds a lone surrogate, which is no Unicode") from None
    return value


def _given(value: object) -> object:
    """Leave out the keys without a value."""
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if each is not None}  # pyright: ignore


Key = Annotated[str, BeforeValidator(whole)]
Config = Annotated[
    dict[Key, Annotated[str, BeforeValidator(text_of)]],
    BeforeValidator(_given),
]
ConfigBody = Annotated[Config, Body(description="The config: each key with its value as text.")]
Changes = dict[Key, Annotated[str | None, BeforeValidator(text_of)]]
ChangesBody = Annotated[
    Changes, Body(description="The settings to change; null takes one back to the node's.")
]


def flag(*, default: bool) -> BeforeValidator:
    """Return how a query's parameter is read as Java does: `true`, and anything else is false."""

    def read(value: object) -> object:
        return value.lower() == "true" if isinstance(value, str) and value else default

    return BeforeValidator(read)


Extended = Annotated[
    bool,
    flag(default=False),
    Query(description="Whether to tell what Connect's own answer has no member for."),
]


async def _negotiate(request: Request) -> None:
    """Refuse a body that is no JSON, and a client that takes no JSON.

    A form is all that a page can send to another site without asking first: so a body has to be
    said to be JSON, also where nobody looks at it.
    """
    headers = request.headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if "content-type" in headers and not _MEDIA_TYPE.fullmatch(kind):
        raise bare_error(HTTPStatus.BAD_REQUEST)
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if request.method == HTTPMethod.GET:
        is_said = kind not in {"", JSON} and request.scope["path"].startswith(_TAKES_JSON)
    else:
        is_said = kind != JSON and (has_body or kind != "")
    if is_said:
        raise bare_error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    if not _takes_json(",".join(headers.getlist("accept"))):
        raise bare_error(HTTPStatus.NOT_ACCEPTABLE)


def _takes_json(accept: str) -> bool:
    """Tell whether an Accept header names JSON, of whatever quality; an empty one does."""
    kinds = {each.partition(";")[0].strip() for each in accept.lower().split(",")}
    return not accept.strip() or not kinds.isdisjoint({JSON, "application/*", "*/*", "*"})


Negotiates = Depends(_negotiate)


@dataclass(frozen=True, slots=True)
class HttpAnswer(Generic[T]):
    """A body that is answered with a status, and headers, of its own."""

    body: T
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Routes:
    """The routes of one subject, on a router of their own."""

    def __init__(self, tag: str) -> None:
        told = {"description": "Any error.", **ERROR}
        responses: dict[int | str, dict[str, Any]] = {"default": told}
        self.router = APIRouter(tags=[tag], responses=responses, route_class=JsonRoute)
        self.types: list[Any] = [ErrorMessage]
        """The types of all answers."""

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
        """Return a decorator that makes a handler the route of a request such as `GET /groups`.

        `status` goes with the type that the handler is annotated with, `also` has the types of
        further ones; `errors` are the statuses that the route itself answers an error with.
        """
        method, _, path = request.partition(" ")

        def declare(handler: Handler) -> Handler:
            is_empty = status is HTTPStatus.NO_CONTENT
            answered = None if is_empty else _answered_by(handler)
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
                dependencies=[Negotiates] if is_json else None,
                openapi_extra={"responses": described},
            )
            return handler

        return declare

    def _describe(self, kind: Any) -> dict[str, Any]:  # noqa: ANN401  # any type
        if kind is None:
            return {}
        if kind is Response:  # it is written by hand, as text
            return {"description": "Done.", **TEXT}
        self.types.append(kind)
        return {"description": "Done.", **_content(kind)}


def encode(body: object, status: int = HTTPStatus.OK) -> Response:
    """Return a body as JSON."""
    return Response(msgspec.json.encode(body), status, media_type=JSON)


def describe_answers(app: FastAPI, types: list[Any]) -> None:
    """Have the schemas of all answers in the application's /openapi.json."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title, version=app.version, summary=app.summary, routes=app.routes
            )
            _, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
            document.setdefault("components", {}).setdefault("schemas", {}).update(components)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _content(kind: Any) -> dict[str, Any]:  # noqa: ANN401  # any type
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=REFERENCE)
    return {"content": {JSON: {"schema": schema}}}


TEXT: Mapping[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}}}}
ERROR: Mapping[str, Any] = _content(ErrorMessage)
"""How an error is described."""


def _answered_by(handler: Callable[..., object]) -> Any:  # noqa: ANN401  # any type
    """Return the type that a handler's annotation says it answers."""
    hint = get_type_hints(handler)["return"]
    return get_args(hint)[0] if get_origin(hint) is HttpAnswer else hint


def _encoding(handler: Callable[..., Any], status: HTTPStatus) -> Callable[..., Any]:
    """Return a handler's function that returns responses."""

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
