"""Requests to a node as values: what is asked, and of which type the answer is.

A method of a client makes one, or several one after the other (`Steps`). They are the same ones for
the clients that wait for an answer and for those that await it.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec.json import Decoder

from ..replies.node import ErrorMessage
from .errors import Refused, UnexpectedAnswerError

T = TypeVar("T")
FIRST_ERROR: Final = 300
EXTENDED: Final[Mapping[str, str]] = {"extended": "true"}
"""Asks for what Connect's own answers do not have."""
NOTHING: Final[Decoder[None]] = Decoder(None)
"""Of an answer that is empty."""


@dataclass(frozen=True, slots=True)
class NodeRequest(Generic[T]):
    """A request; its answer is of type `T`."""

    method: str
    path: tuple[str, ...]
    """The parts between the slashes, as they are."""
    answer: Decoder[T]
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: object = None
    """What is sent as JSON; None: nothing."""

    @property
    def target(self) -> str:
        """The path and query of the URL.

        Dots are quoted, too: a part `..` would lead elsewhere.
        """
        parts = (quote(each, safe="", errors="surrogatepass") for each in self.path)
        path = "/".join(each.replace(".", "%2E") for each in parts)
        return f"/{path}?{urlencode(self.query)}" if self.query else f"/{path}"

    @property
    def content(self) -> bytes | None:
        """The body as JSON."""
        return None if self.body is None else msgspec.json.encode(self.body)

    def read(self, status: int, content: bytes) -> T:
        """Return the answer; raises `Refused`, `UnexpectedAnswerError`."""
        if status >= FIRST_ERROR:
            raise refusal(status, content)
        try:
            return self.answer.decode(content or b"null")
        except msgspec.DecodeError as error:
            raise UnexpectedAnswerError(
                f"{self.method} {self.target} was answered otherwise than this version of fairlead"
                f" expects ({error}): is it the right URL, and a node of the same version?"
            ) from None


Steps = Generator[NodeRequest[Any] | float, Any, T]
"""Requests one after the other, and pauses between them in seconds; it is sent their answers."""


def get(answer: Decoder[T], *path: str, **query: str) -> NodeRequest[T]:
    """Make a request that changes nothing."""
    return NodeRequest("GET", path, answer, query)


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
