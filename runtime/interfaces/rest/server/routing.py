"""Routes: what a handler declares of its request and its answer, and how it is called.

The parameters of a handler say where they come from: a name of the path's template is of the path,
a struct or a dictionary is the body, `FromRequest` is computed of the request, and all others are
of the query. A handler returns a value of its annotated return type: in an `HttpAnswer` if status
or headers vary, or None for an empty response (204). One that is not a coroutine runs on a thread.
`/openapi.json` is made of the same declarations.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from inspect import Parameter, cleandoc, iscoroutinefunction, signature
from types import NoneType
from typing import (
    Any,
    Final,
    Generic,
    NamedTuple,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from ....security.rights import Right
from .bodies import negotiate, read_json
from .errors import JSON, bare_error
from .paths import template
from .permissions import RouteRights, require_right, rights_of
from .values import REQUIRED, MalformedError, Reader, RequestFlaw, reader_of

T = TypeVar("T")
Handler = TypeVar("Handler", bound=Callable[..., Any])

EVENT_STREAM: Final = "text/event-stream"
JSON_LINES: Final = "application/x-ndjson"
BODY_ERRORS: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
"""The error statuses of every request with a body."""


@dataclass(frozen=True, slots=True)
class HttpAnswer(Generic[T]):
    """A response body with its own status and headers."""

    body: T
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class EventStream(NamedTuple):
    """Declares an answer of server-sent events."""

    kinds: Mapping[str, Any]
    """The type of the data of each event, by its name."""


class JsonLines(NamedTuple):
    """Declares an answer of which each line is a value in JSON."""

    kind: Any
    """The type of the values."""


class FromRequest(NamedTuple):
    """Marks a parameter that is computed from the whole request."""

    compute: Callable[[Request], object]


@dataclass(frozen=True, slots=True)
class Input:
    """A parameter of a handler that is a value of the request."""

    name: str
    kind: Any
    """Its type, for the document."""
    default: Any
    """`Parameter.empty` if it is required."""
    read: Reader
    is_list: bool = False
    """Whether it may be given several times in a query."""

    @property
    def is_required(self) -> bool:
        """Whether a request has to have it."""
        return self.default is Parameter.empty

    def of_query(self, request: Request, flaws: list[RequestFlaw]) -> object:
        """Read it from the query; of several values the first one is used, as in Connect."""
        given = request.query_params.getlist(self.name)
        if not given:
            return self.default
        return self.read(given if self.is_list else given[0], (self.name,), flaws)


class Inputs:
    """The parameters of a handler, by the part of the request that they come from."""

    def __init__(self, handler: Callable[..., Any], path: str) -> None:
        self.computed: dict[str, Callable[[Request], object]] = {}
        self.of_path: list[Input] = []
        self.of_query: list[Input] = []
        self.body: Input | None = None
        hints = get_type_hints(handler, include_extras=True)
        for name, parameter in signature(handler).parameters.items():
            self._add(name, hints[name], parameter.default, path)

    def _add(self, name: str, kind: Any, default: Any, path: str) -> None:
        marks = [each for each in get_args(kind)[1:] if isinstance(each, FromRequest)]
        if kind is Request or marks:
            self.computed[name] = marks[0].compute if marks else lambda request: request
            return
        node = _bare(msgspec.inspect.type_info(kind))
        if isinstance(node, msgspec.inspect.StructType | msgspec.inspect.DictType):
            self.body = Input(name, kind, default, reader_of(kind))
            return
        is_list = isinstance(node, msgspec.inspect.ListType)
        of_text = Input(name, kind, default, reader_of(kind, of_text=True), is_list)
        (self.of_path if f"{{{name}" in path else self.of_query).append(of_text)

    async def read(self, request: Request) -> dict[str, object]:
        """Return the arguments of the handler; raises `MalformedError`, `ApiError`."""
        flaws: list[RequestFlaw] = []
        texts = request.path_params
        values = {each.name: each.read(texts[each.name], (), flaws) for each in self.of_path}
        if flaws:
            raise bare_error(HTTPStatus.NOT_FOUND)
        values |= {name: compute(request) for name, compute in self.computed.items()}
        values |= {each.name: each.of_query(request, flaws) for each in self.of_query}
        if self.body is not None:
            values[self.body.name] = _read_body(self.body, await read_json(request), flaws)
        if flaws:
            raise MalformedError(flaws)
        return values


def _bare(node: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """Return a type without its metadata, and without None."""
    while isinstance(node, msgspec.inspect.Metadata | msgspec.inspect.UnionType):
        node = node.type if isinstance(node, msgspec.inspect.Metadata) else node.types[0]
    return node


def _read_body(body: Input, value: object, flaws: list[RequestFlaw]) -> object:
    if value is not msgspec.UNSET:
        return body.read(value, (), flaws)
    if body.is_required:
        flaws.append(RequestFlaw((), REQUIRED))
    return body.default


@dataclass(frozen=True, slots=True)
class RouteDescription:
    """The description of a route in the document, beside its parameters."""

    tag: str
    name: str
    description: str
    answers: Mapping[HTTPStatus, Any]
    """The type of the body by status, or its stream: None is no body, `Response` is a text."""
    errors: Iterable[HTTPStatus]


class ApiRoute(Route):
    """A route that checks its caller, reads the arguments of its handler, and encodes its answer.

    If it needs a right, `request.state.principal` is a `Principal`.
    """

    def __init__(
        self,
        request: str,
        rights: RouteRights,
        handler: Callable[..., Any],
        operation: RouteDescription,
    ) -> None:
        method, _, path = request.partition(" ")
        self.inputs = Inputs(handler, path)
        self.rights = rights
        self.operation = operation
        self.method = method
        self._handler: Callable[..., Coroutine[Any, Any, object]] = (
            handler if iscoroutinefunction(handler) else partial(run_in_threadpool, handler)
        )
        self._status = next(iter(operation.answers))
        """That of an answer for which the handler chooses none."""
        self._is_json = get_type_hints(handler)["return"] is not Response
        super().__init__(template(path), self._respond, methods=[method], name=operation.name)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for this route, which stands in its scope then."""
        match, found = super().matches(scope)
        return match, found if match is Match.NONE else {**found, "route": self}

    async def _respond(self, request: Request) -> Response:
        require_right(request, self.rights)
        if self._is_json:
            negotiate(request, is_read=self.inputs.body is not None)
        answer = await self._handler(**await self.inputs.read(request))
        if answer is None:
            return Response(status_code=self._status)
        if isinstance(answer, Response):
            return answer
        if not isinstance(answer, HttpAnswer):
            return encode(answer, self._status)
        own = cast(HttpAnswer[object], answer)
        response = encode(own.body, own.status)
        response.headers.update(own.headers)
        return response


class Routes(list[ApiRoute]):
    """The routes of one subject."""

    def __init__(self, tag: str) -> None:
        super().__init__()
        self._tag = tag
        """The subject, under which the document lists them."""

    def add(
        self,
        request: str,
        needs: Right | RouteRights,
        *,
        status: HTTPStatus = HTTPStatus.OK,
        also: Mapping[HTTPStatus, Any] | None = None,
        errors: Iterable[HTTPStatus] = (),
        description: str | None = None,
    ) -> Callable[[Handler], Handler]:
        """Return a decorator that registers a handler for a request such as `GET /groups`.

        `needs` is what its caller must have the right to: for the connector of its path, or else
        for the whole node, if that is not said;
        `status` is that of the annotated return type, `also` has the types of other statuses;
        `errors` are the error statuses of the route itself.
        """

        def declare(handler: Handler) -> Handler:
            answers = {status: _answered_by(handler, status), **(also or {})}
            text = description or cleandoc(handler.__doc__ or "")
            operation = RouteDescription(self._tag, handler.__name__, text, answers, errors)
            rights = needs if isinstance(needs, RouteRights) else rights_of(request, needs)
            self.append(ApiRoute(request, rights, handler, operation))
            return handler

        return declare


def encode(body: object, status: int = HTTPStatus.OK) -> Response:
    """Return a JSON response."""
    return Response(msgspec.json.encode(body), status, media_type=JSON)


def _answered_by(handler: Callable[..., object], status: HTTPStatus) -> Any:
    """Return the annotated return type of a handler; None if its answer has no body."""
    hint = get_type_hints(handler)["return"]
    if status is HTTPStatus.NO_CONTENT or hint is NoneType:
        return None
    return get_args(hint)[0] if get_origin(hint) is HttpAnswer else hint
