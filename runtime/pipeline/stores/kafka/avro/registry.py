# pyright: basic
"""A client of the schema registry's REST API, with timeouts.

It uses four calls, which other vendors' registries support, too; Confluent's own client has nine
dependencies. A schema id never changes its schema, so each schema is fetched once.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Final
from urllib.parse import quote

import httpx

from ....formats.avro import RegisteredSchema
from ....spi.config import ConfigInvalid
from ....spi.context import ProbeResult
from ....spi.errors import Away, NotReady, SchemaRefused
from ..connection import LOOK_S, REQUEST_S
from ..registry_keys import RegistryAccess, registry_access

_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_UNKNOWN: Final = {404, 40401, 40402, 40403}
"""Error codes of a missing subject, version or schema."""
_REFUSED: Final = {409, 422}
"""Status codes of an invalid or incompatible schema."""
_LARGEST_ID: Final = (1 << 31) - 1
_MOST_REFERENCES: Final = 1_000
_LARGEST: Final = 16 << 20
"""The largest response, in bytes."""
_LONGEST: Final = 3
"""How long a whole response may take, as a multiple of the timeout."""
_ANY_ID: Final = 1
"""A schema id for a request that only checks whether the registry answers."""


class _NotAllowed(ConfigInvalid):
    """The user is authenticated but not authorised for this request."""


class SchemaRegistry:
    """The registry client of one converter; thread-safe."""

    def __init__(
        self, access: RegistryAccess, away: type[Away], timeout_s: float = REQUEST_S
    ) -> None:
        """Create a client, which connects at the first request."""
        user, _, password = access.user_info.partition(":")
        self._access = access
        self._away = away
        self._timeout_s = timeout_s
        self._http = httpx.Client(
            auth=httpx.BasicAuth(user, password) if access.user_info else None,
            # As it is: what is compressed may be a thousand times as large.
            headers={"Accept": f"{_TYPE}, application/json", "Accept-Encoding": "identity"},
            timeout=timeout_s,
            limits=httpx.Limits(max_keepalive_connections=0),  # requests are rare
        )
        self._by_id: dict[int, RegisteredSchema] = {}
        """The schemas so far."""
        self._lock = Lock()
        """Guards the schemas so far."""

    def schema(self, number: int) -> RegisteredSchema | None:
        """Return the schema of an id; None: there is none. Raises `Away`, `ConfigInvalid`."""
        with self._lock:  # tasks that start together request it once
            if number not in self._by_id:
                document = self._ask("GET", f"/schemas/ids/{number}")
                if document is None:
                    return None
                self._by_id[number] = self._registered({**document, "id": number})
            return self._by_id[number]

    def reach(self) -> None:
        """Check that the registry answers and accepts the user; raises `Away`, `ConfigInvalid`."""
        with suppress(_NotAllowed):  # the connector's own requests may be allowed
            self._ask("GET", f"/schemas/ids/{_ANY_ID}")

    def latest(self, subject: str) -> RegisteredSchema | None:
        """Return the latest version of a subject; None: there is no such subject."""
        document = self._ask("GET", f"{_versions(subject)}/latest")
        return None if document is None else self._registered(document)

    def register(self, subject: str, schema: object) -> RegisteredSchema:
        """Register a schema as a subject's latest version, if needed; raises `SchemaRefused`."""
        text = json.dumps(schema)
        document = self._ask("POST", _versions(subject), {"schema": text})
        if document is None:
            raise self._away(f"{self._shown} takes no schemas for subject {subject}")
        return RegisteredSchema(self._id(document), "AVRO", text)

    @property
    def _shown(self) -> str:
        return f"the schema registry at {', '.join(self._access.urls)}"

    def _registered(self, document: Mapping[str, Any]) -> RegisteredSchema:
        text, kind = document.get("schema"), document.get("schemaType") or "AVRO"
        if not isinstance(text, str):
            raise self._away(f"{self._shown} gave an answer without a schema")
        references: dict[tuple[str, int], str] = {}
        self._refer(document.get("references") or (), references)
        return RegisteredSchema(self._id(document), str(kind), text, tuple(references.values()))

    def _refer(
        self, references: Sequence[Mapping[str, Any]], texts: dict[tuple[str, int], str]
    ) -> None:
        """Fetch referenced schemas, dependencies first."""
        for each in references:
            subject, version = str(each.get("subject")), each.get("version")
            if not isinstance(version, int) or len(texts) > _MOST_REFERENCES:
                raise self._away(f"{self._shown} gave a reference to a schema that is none")
            if (subject, version) in texts:
                continue
            document = self._ask("GET", f"{_versions(subject)}/{version}")
            if document is None:
                raise self._away(f"{self._shown} has no version {version} of subject {subject}")
            self._refer(document.get("references") or (), texts)
            texts[subject, version] = str(document.get("schema"))

    def _id(self, document: Mapping[str, Any]) -> int:
        number = document.get("id")
        if not isinstance(number, int) or not 0 <= number <= _LARGEST_ID:
            raise self._away(f"{self._shown} gave an answer without an id")
        return number

    def _ask(self, method: str, path: str, body: Any = None) -> Mapping[str, Any] | None:  # noqa: ANN401  # JSON
        """Try the addresses in turn until one answers; None: not found."""
        trouble = ""
        for url in self._access.urls:
            try:
                answer = self._send(method, url + path, body)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                trouble = str(error) or type(error).__name__
                continue
            if answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                return self._answer(answer)
            trouble = _told(answer)
        raise self._away(f"{self._shown}: {trouble}")

    def _send(self, method: str, url: str, body: Any) -> httpx.Response:  # noqa: ANN401  # JSON
        """Return the whole response; raises `httpx.HTTPError`, also for too much of it."""
        end = time.monotonic() + _LONGEST * self._timeout_s
        content = bytearray()
        with self._http.stream(method, url, json=body, headers={"Content-Type": _TYPE}) as answer:
            if answer.headers.get("content-encoding", "identity") != "identity":
                raise httpx.DecodingError("its answer is compressed, which was not asked for")
            for piece in answer.iter_raw():
                content += piece
                if len(content) > _LARGEST:
                    raise httpx.DecodingError(f"its answer has more than {_LARGEST >> 20} MB")
                if time.monotonic() > end:
                    raise httpx.ReadTimeout("its answer does not end")
        return httpx.Response(answer.status_code, content=bytes(content))

    def _answer(self, answer: httpx.Response) -> Mapping[str, Any] | None:
        document = _document(answer)
        if answer.is_success and document is not None:
            return document
        status = answer.status_code
        if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            refused = _NotAllowed if status == httpx.codes.FORBIDDEN else ConfigInvalid
            raise refused(
                f"{self._access.secret_key}: {self._shown} does not let this user in: "
                f"{_told(answer)}"
            )
        if document is not None and document.get("error_code") in _UNKNOWN:
            return None
        if status in _REFUSED:
            raise SchemaRefused(f"{self._shown} refuses the schema: {_told(answer)}")
        raise self._away(f"{self._shown}: {_told(answer)}")


def look_at_registry(
    converter: str, config: Mapping[str, str], question: Callable[[SchemaRegistry], str]
) -> ProbeResult:
    """Ask a converter's registry with a short timeout; `question` returns a warning, or nothing."""
    how = registry_access(converter, config)
    try:
        warning = question(SchemaRegistry(how, Away, LOOK_S))
    except ConfigInvalid as error:
        key, _, why = str(error).partition(": ")
        return ProbeResult({key: why})
    except (Away, NotReady, SchemaRefused) as error:
        warning = str(error)
    return ProbeResult(warnings=(f"{how.key}: {warning}",) if warning else ())


def _versions(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}/versions"


def _document(answer: httpx.Response) -> Mapping[str, Any] | None:
    try:
        told = answer.json()
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _told(answer: httpx.Response) -> str:
    """Return the registry's error message, or the HTTP reason."""
    words = (_document(answer) or {}).get("message") or answer.reason_phrase
    return f"{answer.status_code} {words}"
