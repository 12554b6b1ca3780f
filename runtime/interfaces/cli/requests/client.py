"""The command line's REST client of a cluster.

A verb finds the node that it is for by a URL, a context, the `node.json` of a data folder, or the
settings. If a node of this machine is meant, no answer of another one is accepted, and no request
that changes something is sent before the node has said who it is. What fails is one sentence: what
did not answer, what may have been done, and what to do.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from ....cluster.identity import HEADER, identity_of
from ...replies.node import Message
from ..adapters.tls import NO_FILES, TlsFiles
from ..adapters.transport import (
    ClusterAnswer,
    ClusterConnection,
    LostError,
    NotConnectedError,
    TlsFailedError,
)
from ..output.printing import Failed, Misused, Unreachable
from .contexts import authorize_by_environment
from .options import RemoteOptions

if TYPE_CHECKING:
    from ....config.load import Config

ANSWER_SECONDS: Final = 95.0
"""A Connect worker times out after 90 s; the client waits longer, to get that response."""

HTTP_PORT: Final = 80
NOTE: Final = Path("run", "node.json")
"""The file in which a running node says where it is reached, in its data folder."""
SNIPPET_CHARACTERS: Final = 120


NOTHING_DONE: Final = "; nothing was done"
_RIGHT_HINTS: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "; put a token into FAIRLEAD_TOKEN_FILE, or a user into FAIRLEAD_USER"
    " and the path of a file with the password into FAIRLEAD_PASSWORD_FILE: `fairlead auth` makes"
    " them, on the machine of the node",
    HTTPStatus.FORBIDDEN: "; `fairlead auth whoami` shows what you may do",
}
"""What to do, after an answer that refuses the caller."""

_POINTER: Final = "\nYou can also find the above list of errors at the endpoint"
"""What Connect says behind the errors of a config: another request, which is no verb here."""

T = TypeVar("T")


class _NodeNote(msgspec.Struct):
    """The part of a running node's `node.json` that the client uses."""

    rest: Annotated[str, msgspec.Meta(min_length=1)]
    """The URL of its REST interface."""
    socket: str = ""
    """The path of the Unix socket of its REST interface."""


class RefusedByCluster(Failed):
    """The cluster answered with an error; the message is the cluster's."""

    def __init__(self, text: str, body: object = None) -> None:
        super().__init__(text)
        self.body = body
        """The body of the error response, as plain data."""


class ExpectedNode(NamedTuple):
    """The node of a data folder, whose answers are accepted; "" if none has run there yet."""

    node: str
    data_dir: Path


class Client:
    """A client of one cluster; `origin` says where its address comes from.

    If a node is expected, no request with content is sent before the identity has been checked.
    """

    def __init__(
        self,
        base: str,
        origin: str,
        expected: ExpectedNode | None = None,
        authorization: str = "",
        files: TlsFiles = NO_FILES,
        socket: str = "",
    ) -> None:
        self._address = base.rstrip("/")
        try:
            parts = urlsplit(base)
            self._connection = ClusterConnection(self._address, authorization, files, socket)
        except ValueError as error:
            raise Misused(f"{origin} is no http URL: {strip_user(base)!r}: {error}") from None
        is_socket = parts.scheme == "unix" and parts.path and not parts.netloc
        if not is_socket and (parts.scheme not in {"http", "https"} or not parts.hostname):
            raise Misused(f"{origin} is no http URL: {strip_user(base)!r}")
        self.base = strip_user(self._address)
        """Its URL without user name and password."""
        self.origin = origin
        """What has said that this cluster is meant."""
        self._name = f"{self.base} ({origin})"
        self._expected = expected
        self.answer_seconds = ANSWER_SECONDS
        """How long it waits for an answer."""

    def get(self, kind: type[T], *path: str, **query: str | tuple[str, ...]) -> T:
        """GET a path; raises `Failed`, `Unreachable`."""
        return self._convert(self._ask("GET", path, query=query), kind)

    def post(self, kind: type[T], *path: str, body: object = None, **query: str) -> T:
        """POST a document to a path, and return the response; raises `Failed`, `Unreachable`."""
        return self._convert(self._ask("POST", path, body=body, query=query), kind)

    def put(self, kind: type[T], *path: str, body: object = None, **query: str) -> T:
        """PUT a document to a path, and return the response; raises `Failed`, `Unreachable`."""
        return self._convert(self._ask("PUT", path, body=body, query=query), kind)

    def patch(self, kind: type[T], *path: str, body: object) -> T:
        """PATCH a path, and return the response; raises `Failed`, `Unreachable`."""
        return self._convert(self._ask("PATCH", path, body=body), kind)

    def delete(self, kind: type[T], *path: str, **query: str) -> T | None:
        """DELETE a path; return the response, None for an empty one.

        Raises `Failed`, `Unreachable`.
        """
        return self.order("DELETE", kind, *path, **query)

    def order(self, method: str, kind: type[T], *path: str, **query: str) -> T | None:
        """Send a request without a body; return the response, None for an empty one.

        Raises `Failed`, `Unreachable`.
        """
        document = self._ask(method, path, query=query)
        return None if document is None else self._convert(document, kind)

    def _convert(self, document: object, kind: type[T]) -> T:
        try:
            return msgspec.convert(document, kind)
        except msgspec.ValidationError as error:
            raise Failed(
                f"{self._name} answers otherwise than this version of fairlead expects ({error}):"
                " is it the right --url, and of the same version?"
            ) from None

    def get_text(self, *path: str) -> str:
        """GET a path whose answer is no JSON, such as metrics; raises `Failed`, `Unreachable`."""
        answer = self._exchange("GET", path)
        if not answer.is_success:
            self._read(answer, path)
        return answer.text

    def _ask(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        query: Mapping[str, str | tuple[str, ...]] | None = None,
        body: object = None,
    ) -> object:
        return self._read(self._exchange(method, path, query=query, body=body), path)

    def _exchange(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        query: Mapping[str, str | tuple[str, ...]] | None = None,
        body: object = None,
    ) -> ClusterAnswer:
        parameters = urlencode(
            {"extended": "true", **(query or {})}, doseq=True
        )  # what Connect has not
        target = "/".join(quote(part, safe="", errors="surrogatepass") for part in path)
        content = None if body is None else json.dumps(body).encode()
        doing = "GET"
        try:
            if method != doing and self._expected is not None:
                self._check(self._connection.ask(doing, "/", None, self.answer_seconds))
            doing = method
            answer = self._connection.ask(
                method, f"/{target}?{parameters}", content, self.answer_seconds
            )
            self._check(answer)
        except TlsFailedError as error:
            raise Unreachable(f"{self._name} and this client did not agree: {error}") from None
        except NotConnectedError as error:
            why = f"{error}; " if str(error) else ""
            raise Unreachable(
                f"no cluster answers at {self._name}: {why}start one with `fairlead up`, or name"
                " another with --url"
            ) from None
        except LostError as error:
            raise Unreachable(self._describe_loss(doing, error)) from None
        return answer

    def _check(self, answer: ClusterAnswer) -> None:
        """Raise `Unreachable` if another node than the expected one answers."""
        served_by = answer.header(HEADER)
        if self._expected is None or (served_by and served_by == self._expected.node):
            return
        from .....actors.transport.ports import holder_of  # noqa: PLC0415  # an answer of the expected node needs no psutil

        cluster, _, node = served_by.partition("/")
        who = f"node {node} of cluster {cluster}" if node else "it does not say which node it is"
        parts, folder = urlsplit(self._address), self._expected.data_dir
        holder = "another process"
        if parts.hostname:
            holder = holder_of(parts.hostname, parts.port or HTTP_PORT)
        raise Unreachable(
            f"{self._name} is answered by {holder}, which is not the node of {folder} ({who}):"
            f" nothing was changed; start that of {folder} with `fairlead up`, or name the cluster"
            " that you mean by its --url or its --data-dir"
        )

    def _describe_loss(self, method: str, error: Exception) -> str:
        outcome = "" if method == "GET" else "; whether it took place is unknown: look, then repeat"
        return f"the cluster at {self._name} did not answer: {error}{outcome}"

    def _read(self, answer: ClusterAnswer, path: tuple[str, ...]) -> object:
        try:
            document: object = json.loads(answer.content) if answer.content else None
        except (ValueError, RecursionError):
            snippet = answer.text[:SNIPPET_CHARACTERS]
            raise Failed(
                f"{self._name} answers, but not as a cluster does (HTTP {answer.status},"
                f" {snippet!r}): is it the right --url?"
            ) from None
        if answer.is_success:
            return document
        message = _extract_message(document) or f"HTTP {answer.status}, without a message"
        hint = _RIGHT_HINTS.get(answer.status, "") if message.endswith(NOTHING_DONE) else ""
        hint = self._similar_names(path) if answer.status == HTTPStatus.NOT_FOUND else hint
        raise RefusedByCluster(f"{_rephrase(message, path)}{hint} (HTTP {answer.status})", document)

    def _similar_names(self, path: tuple[str, ...]) -> str:
        """Return a question for an unknown connector's name in a path, "" if none is similar."""
        match path:
            case ("connectors", name, *_):
                with suppress(Failed, Unreachable):
                    names = self.get(list[str], "connectors")
                    close = [] if name in names else get_close_matches(name, names)
                    return f"; did you mean {' or '.join(close)}?" if close else ""
            case _:
                pass
        return ""


def find_client(options: RemoteOptions) -> Client:
    """Return the client of a cluster, found by its URL, the running node, or the configuration.

    Raises `ConfigError`, `Failed`, `Misused`.
    """
    if (address := options.find_address()) is not None:
        authorization = address.context.read_authorization() or authorize_by_environment(os.environ)
        files = options.tls_files(TlsFiles(address.context.ca, address.context.cert))
        return Client(address.url, address.origin, authorization=authorization, files=files)
    folder, own = options.find_plain_folder(), authorize_by_environment(os.environ)
    files = options.tls_files()
    if folder is not None and (node := _read_note(folder / NOTE)) is not None:
        expected = _find_expected_node(folder, is_named=options.names_folder)
        return Client(node.rest, f"from {folder / NOTE}", expected, own, files, node.socket)
    loaded = options.load()
    config = loaded.config
    note = locate_node_file(config)
    expected = _find_expected_node(config.data_path, is_named="data.dir" in loaded.sources)
    if (node := _read_note(note)) is not None:
        return Client(node.rest, f"from {note}", expected, own, files, node.socket)
    return Client(config.rest_url, "the configured listener", expected, own, files)


def _find_expected_node(data_dir: Path, *, is_named: bool) -> ExpectedNode | None:
    """Return the expected node of a data folder; None if any node is accepted.

    That is so for a default folder on which no node has run, and for a `node.json` without a
    `node.id`.
    """
    run_folder = data_dir / "run"
    try:
        node = identity_of(run_folder)
    except OSError as error:
        raise Failed(
            f"{error.filename} cannot be read ({error.strerror}): give the cluster's --url"
        ) from None
    if node or (is_named and not (run_folder / "node.json").exists()):
        return ExpectedNode(node, data_dir)
    return None


def locate_node_file(config: "Config") -> Path:
    """Return the path of the running node's `node.json`."""
    return config.data_path / NOTE


def _read_note(note: Path) -> _NodeNote | None:
    """Return where the node of a `node.json` is reached; None: there is no file."""
    try:
        return msgspec.json.decode(note.read_bytes(), type=_NodeNote)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Failed(
            f"{note} cannot be read ({error.strerror}): give the cluster's --url"
        ) from None
    except (ValueError, RecursionError):
        raise Failed(
            f"{note} does not say where the node is reached: give the cluster's --url"
        ) from None


def _rephrase(message: str, path: tuple[str, ...]) -> str:
    """Return a message that names a request of Connect's with the command instead."""
    from .....actors.messages.orders import MUST_BE_STOPPED  # noqa: PLC0415  # only after an error

    errors, pointer, _ = message.partition(_POINTER)
    match path:
        case _ if pointer:
            return f"{errors}\nnothing was changed"
        case ("connectors", name, *_) if message == MUST_BE_STOPPED.format(name):
            return f"the offsets of {name} were not changed: first `fairlead stop {name} --wait`"
        case _:
            return message


def _extract_message(body: object) -> str:
    """Return the message of an error response; "" if it has another format."""
    try:
        return msgspec.convert(body, Message).message
    except msgspec.ValidationError:
        return ""


def strip_user(url: str) -> str:
    """Return a URL without user and password."""
    scheme, slashes, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{host.rpartition('@')[2]}{slash}{path}"
