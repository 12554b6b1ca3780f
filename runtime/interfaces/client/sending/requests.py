"""Requests to a node as values: what is asked, and of which type the answer is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Generic, Protocol, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec.json import Decoder

from ...replies.node import ErrorMessage
from .errors import Refused, UnexpectedAnswerError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
FIRST_ERROR: Final = 300
NOTHING: Final[Decoder[None]] = Decoder(None)
"""Of an answer that is empty."""
STREAM: Final = Decoder(msgspec.Raw)
"""Of an answer that is read as it comes."""

QueryValue = str | int | bool | Sequence[str] | None


class AnswerDecoder(Protocol[T_co]):
    """Reads the body of an answer."""

    @property
    def type(self) -> Any:  # noqa: ANN401  # of any answer
        """The type of the value."""

    def decode(self, buf: bytes, /) -> T_co:
        """Return the value; raises `msgspec.DecodeError`."""
        ...


class TextDecoder:
    """Reads an answer that is a text."""

    type = str

    def decode(self, buf: bytes, /) -> str:
        """Return the text."""
        return buf.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class NodeRequest(Generic[T_co]):
    """A request; its answer is of type `T_co`."""

    method: str
    path: tuple[str, ...]
    """The parts between the slashes, as they are."""
    answer: AnswerDecoder[T_co]
    query: Mapping[str, QueryValue] = field(default_factory=dict[str, QueryValue])
    """What is None is not sent."""
    body: object = None
    """What is sent as JSON; None: nothing."""
    also: Sequence[HTTPStatus] = ()
    """Statuses of errors whose answer is of that type as well."""

    @property
    def target(self) -> str:
        """The path and query of the URL.

        Dots are quoted, too: a part `..` would lead elsewhere.
        """
        parts = (quote(each, safe="", errors="surrogatepass") for each in self.path)
        path = "/".join(each.replace(".", "%2E") for each in parts)
        given = {name: _text_of(each) for name, each in self.query.items() if each is not None}
        return f"/{path}?{urlencode(given, doseq=True)}" if given else f"/{path}"

    @property
    def content(self) -> bytes | None:
        """The body as JSON."""
        return None if self.body is None else msgspec.json.encode(self.body)

    @property
    def headers(self) -> Mapping[str, str]:
        """Its own headers."""
        return {} if self.body is None else {"Content-Type": "application/json"}

    def read(self, status: int, content: bytes) -> T_co:
        """Return the answer; raises `Refused`, `UnexpectedAnswerError`."""
        if status >= FIRST_ERROR and status not in self.also:
            raise refusal(status, content)
        try:
            return self.answer.decode(content or b"null")
        except msgspec.DecodeError as error:
            if status in self.also:
                raise refusal(status, content) from None
            raise UnexpectedAnswerError(
                f"{self.method} {self.target} was answered otherwise than this version of fairlead"
                f" expects ({error}): is it the right URL, and a node of the same version?"
            ) from None


def get(answer: AnswerDecoder[T], *path: str, **query: QueryValue) -> NodeRequest[T]:
    """Make a request that changes nothing."""
    return NodeRequest("GET", path, answer, query)


def put(answer: AnswerDecoder[T], *path: str, **query: QueryValue) -> NodeRequest[T]:
    """Make an order without a body."""
    return NodeRequest("PUT", path, answer, query)


def refusal(status: int, content: bytes) -> Refused:
    """Return the error of an answer."""
    try:
        message = msgspec.json.decode(content, type=ErrorMessage).message
    except msgspec.DecodeError:
        message = f"{_phrase(status)}, without a sentence of a node: is it the right URL?"
    return Refused(status, message)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "an error"


def _text_of(value: QueryValue) -> str | Sequence[str]:
    """Return a value as it stands in a query."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, Sequence) else str(value)
