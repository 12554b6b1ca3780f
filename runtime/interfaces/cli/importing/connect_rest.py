"""The REST interface of a Kafka Connect, as an import uses it.

All that is sent may be sent again: a rebalance (409), a worker that starts (503) or fails (500), or
a lost answer is followed by the same request, for some time.
"""

import json
import time
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Final, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from ...replies.node import Message
from ..adapters.tls import TlsFiles
from ..adapters.transport import (
    ClusterAnswer,
    ClusterConnection,
    LostError,
    NotConnectedError,
    TlsFailedError,
)
from ..output.printing import Failed, Misused, Unreachable
from ..requests.client import SNIPPET_CHARACTERS, strip_user

ANSWER_SECONDS: Final = 95.0
"""A worker gives up after 90 s, and says so."""
AGAIN_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 60.0
"""How long a rebalance, or the start of a worker, is waited for."""
MOST_ERRORS: Final = 3
"""So many times an error of the worker is followed by the same request."""
_AWAITED: Final = frozenset({HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE})
_LOGIN: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
T = TypeVar("T")


class ConnectVersion(msgspec.Struct, frozen=True):
    """The version of a worker of Connect, and its Kafka."""

    version: Annotated[str, msgspec.Meta(min_length=1)]
    kafka_cluster_id: str = ""
    fairlead_version: str = ""
    """Only of a node of fairlead, which answers as Connect does."""


class ConnectState(msgspec.Struct, frozen=True):
    """The state of a connector or of a task."""

    state: str
    trace: str = ""
    version: str | None = None
    """Of a connector's class; Connect 4.0 and later say it."""


class ConnectStatus(msgspec.Struct, frozen=True):
    """The states of a connector and of its tasks."""

    connector: ConnectState
    tasks: Sequence[ConnectState] = ()


class ConnectInfo(msgspec.Struct, frozen=True):
    """The config of a connector, with its secrets."""

    config: Mapping[str, str | None]


class ConnectEntry(msgspec.Struct, frozen=True):
    """A connector of the list."""

    info: ConnectInfo
    status: ConnectStatus

    def config(self) -> dict[str, str]:
        """Return its config; a key without a value is as none."""
        return {key: text for key, text in self.info.config.items() if text is not None}


class ConnectClass(msgspec.Struct, frozen=True):
    """A class of a plugin."""

    class_name: str = msgspec.field(name="class")
    type: str = ""
    version: str | None = None


class RefusedByConnect(Failed):
    """Connect has answered with an error; the message is Connect's."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code
        """The HTTP status."""


class ConnectRest:
    """A client of one Kafka Connect; no message of it has the user of its URL."""

    def __init__(self, url: str, files: TlsFiles) -> None:
        """Raise `Misused` for a URL that is none."""
        self.name = strip_user(url.rstrip("/"))
        try:
            parts = urlsplit(url)
            self._connection = ClusterConnection(url.rstrip("/"), files=files)
        except ValueError as error:
            raise Misused(f"--from {self.name!r} is no http URL: {error}") from None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise Misused(f"--from {self.name!r} is no http URL")

    def get(self, kind: type[T], *path: str, query: str = "") -> T:
        """GET a path; raises `Failed`, `Unreachable`."""
        found = self.ask("GET", *path, query=query)
        try:
            return msgspec.convert(found, kind)
        except msgspec.ValidationError as error:
            raise Failed(
                f"{self.name} answers otherwise than Kafka Connect ({error}): is it the right"
                " --from?"
            ) from None

    def ask(self, method: str, *path: str, query: str = "", body: object = None) -> object:
        """Send a request, and return the document of the answer, None for an empty one.

        Raises `Failed`, `RefusedByConnect`, `Unreachable`.
        """
        target = f"/{'/'.join(quote(part, safe='') for part in path)}{query}"
        content = None if body is None else json.dumps(body).encode()
        deadline, attempts = time.monotonic() + PATIENCE_SECONDS, 1
        answer = self._exchange(method, target, content)
        while self._may_pass(answer, attempts) and time.monotonic() < deadline:
            time.sleep(AGAIN_SECONDS)
            answer, attempts = self._exchange(method, target, content), attempts + 1
        if isinstance(answer, ClusterAnswer) and answer.status not in _AWAITED:
            return self._read(answer)
        lost = answer if isinstance(answer, LostError) else f"HTTP {answer.status}"
        raise Unreachable(
            f"Kafka Connect at {self.name} did not do {method} {target}: {lost}; the same command"
            " goes on from here"
        )

    @staticmethod
    def _may_pass(answer: ClusterAnswer | LostError, attempts: int) -> bool:
        """Return whether the same request may have another answer soon."""
        if isinstance(answer, ClusterAnswer) and answer.status in _AWAITED:
            return True
        is_error = isinstance(answer, LostError) or (
            answer.status == HTTPStatus.INTERNAL_SERVER_ERROR
        )
        return is_error and attempts <= MOST_ERRORS

    def _exchange(
        self, method: str, target: str, content: bytes | None
    ) -> ClusterAnswer | LostError:
        try:
            return self._connection.ask(method, target, content, ANSWER_SECONDS)
        except TlsFailedError as error:
            raise Unreachable(f"{self.name} and this client did not agree: {error}") from None
        except NotConnectedError as error:
            why = f": {error}" if str(error) else ""
            raise Unreachable(
                f"no Kafka Connect answers at {self.name}{why}; give the --from of a worker that"
                " is up, and the same command goes on"
            ) from None
        except LostError as error:
            return error

    def _read(self, answer: ClusterAnswer) -> object:
        try:
            if answer.is_success:
                return json.loads(answer.content) if answer.content else None
            message = msgspec.json.decode(answer.content, type=Message).message
        except (ValueError, RecursionError):
            if answer.is_success:
                raise Failed(
                    f"{self.name} answers, but not as Kafka Connect does (HTTP {answer.status},"
                    f" {answer.text[:SNIPPET_CHARACTERS]!r}): is it the right --from?"
                ) from None
            message = "without a message"
        login = "; a user stands in the URL: --from https://USER:PASSWORD@HOST:PORT"
        hint = login if answer.status in _LOGIN else ""
        raise RefusedByConnect(
            f"Kafka Connect at {self.name} refused it: {message} (HTTP {answer.status}){hint}",
            answer.status,
        )
