"""Admits a request: who sends it, whether they send too many, and what is noted of it.

A caller proves who they are by what comes with each request: a user with a password (Basic), a
token (Bearer), or the certificate of the connection. Nothing of it is taken from the URL. What they
may do is for the route to say (`permissions`). With `none` a caller on this machine may do all of
it without a proof. The node's own user, and root, always may at the node's own socket, where the
kernel says who they are; at another Unix socket, as at a port, they are asked.

Wrong passwords cost an address a growing pause, in which no password of it is looked at. A pair
that was right just before is not held up by it, and neither are tokens, which nobody can guess: so
nobody is locked out by others.
"""

import asyncio
import logging
import os
import time
from base64 import b64decode
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from ipaddress import ip_address
from math import ceil
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .....projections.metrics.processes import RequestMetrics
from ....security.followed_files import FollowedFiles
from ....security.proofs.certificates import find_certificate
from ....security.proofs.entries import AccessEntries, AccessEntry, EntryKind
from ....security.proofs.passwords import (
    TOKEN_PREFIX,
    PasswordChecks,
    TooManyChecksError,
    find_token,
)
from ....security.settings import (
    OPEN,
    AccessSettings,
    Authentication,
    BearerRefusedError,
    OidcSettings,
)
from ....security.throttling import FailedLogins, RequestRate, network_of
from .errors import ApiError, error_reply
from .principals import Identify, Principal, identify, principal_at_ends

if TYPE_CHECKING:
    from ....security.proofs.oidc import OidcTokens

LOGGER = logging.getLogger(__name__)
LONGEST_CREDENTIAL: Final = 16_384
"""In characters: of an Authorization header."""
IN_URL: Final = frozenset({"access_token", "token", "api_key", "apikey", "auth", "password"})
"""Parameters of a query by which people send credentials."""
OTHER: Final = "other"
"""In the label of a metric: what is not offered here, or cannot be read."""
_REALM: Final = 'realm="fairlead"'
_CHALLENGES: Final[Mapping[Authentication, str]] = {
    Authentication.BASIC: f'Basic {_REALM}, charset="UTF-8"',
    Authentication.TOKEN: f"Bearer {_REALM}",
    Authentication.OIDC: f"Bearer {_REALM}",
}


class NotAdmittedError(ApiError):
    """Who sends the request is not known, or sends too much."""

    def __init__(
        self,
        status: HTTPStatus,
        message: str,
        wait_seconds: float = 0.0,
        mechanism: str = Authentication.NONE,
    ) -> None:
        super().__init__(status, message)
        self.mechanism = mechanism
        """How the caller tried to prove who they are, in the label of a metric."""
        self.wait_seconds = wait_seconds
        """After how long it may be sent again; 0: that would not help."""


def _unknown_caller(message: str, mechanism: str = Authentication.NONE) -> NotAdmittedError:
    text = f"{message}; nothing was done"
    return NotAdmittedError(HTTPStatus.UNAUTHORIZED, text, mechanism=mechanism)


def _too_many(message: str, wait_seconds: float) -> NotAdmittedError:
    text = f"{message}: try again in {ceil(wait_seconds)} s; nothing was done"
    return NotAdmittedError(HTTPStatus.TOO_MANY_REQUESTS, text, wait_seconds)


class _Credentials(NamedTuple):
    """The content of an Authorization header."""

    scheme: str
    value: str

    @classmethod
    def of(cls, request: Request) -> "_Credentials | None":
        """Return the credentials of a request, None if it has none."""
        headers = request.headers.getlist("authorization")
        if not headers:
            return None
        if len(headers) > 1 or len(headers[0]) > LONGEST_CREDENTIAL:
            raise _unknown_caller(
                "a request may have one Authorization header, of at most"
                f" {LONGEST_CREDENTIAL} characters",
                OTHER,
            )
        scheme, _, value = headers[0].strip().partition(" ")
        return cls(scheme.lower(), value.strip())


def _make_tokens(settings: OidcSettings) -> "OidcTokens":
    from ....security.proofs.oidc import OidcTokens  # noqa: PLC0415  # few nodes ask for them

    return OidcTokens(settings)


class Authenticator:
    """Says who sends a request, by the entries of the data folder: an `Identify`."""

    def __init__(
        self,
        settings: AccessSettings,
        entries: FollowedFiles[AccessEntries],
        failed: FailedLogins | None = None,
    ) -> None:
        self._methods = frozenset(settings.authentication)
        self._entries = entries
        self._passwords = PasswordChecks()
        self._failed = failed or FailedLogins()
        self._oidc = _make_tokens(settings.oidc) if settings.oidc else None

    async def __call__(self, request: Request) -> Principal:
        """Return the caller of a request; raises `NotAdmittedError`."""
        caller = principal_at_ends(request)
        if _is_owner_at_own_socket(request.scope, caller):
            return caller
        if found := sorted(IN_URL & {each.lower() for each in request.query_params}):
            raise _unknown_caller(
                f"{found[0]} is in the URL, where logs and histories keep it: treat it as known"
                " to others, and send another one as the header `Authorization: Bearer TOKEN`",
                OTHER,
            )
        credentials = _Credentials.of(request)
        if credentials is not None:
            return await self._by_header(caller, credentials)
        certificate = certificate_of(request.scope)
        if Authentication.MTLS in self._methods and certificate.subject:
            return self._by_certificate(caller, certificate)
        if Authentication.NONE in self._methods and _is_on_this_machine(caller):
            return caller
        raise _unknown_caller(f"this interface asks who you are: send {self._wanted()}")

    def _wanted(self) -> str:
        words = {
            Authentication.BASIC: "a user with a password (Authorization: Basic)",
            Authentication.TOKEN: "a token (Authorization: Bearer fl_...)",
            Authentication.OIDC: "a token of your identity provider (Authorization: Bearer)",
            Authentication.MTLS: "a certificate with the connection",
        }
        return ", or ".join(text for each, text in words.items() if each in self._methods)

    async def _by_header(self, caller: Principal, credentials: _Credentials) -> Principal:
        entries = self._entries.current()
        match credentials.scheme:
            case "basic" if Authentication.BASIC in self._methods:
                return await self._by_password(caller, entries, credentials.value)
            case "bearer" if self._oidc and not credentials.value.startswith(TOKEN_PREFIX):
                return await self._by_oidc(caller, self._oidc, credentials.value)
            case "bearer" if Authentication.TOKEN in self._methods:
                return self._by_token(caller, entries, credentials.value)
            case _:
                raise _unknown_caller(f"this is not accepted here: send {self._wanted()}", OTHER)

    async def _by_password(
        self, caller: Principal, entries: AccessEntries, encoded: str
    ) -> Principal:
        name, password = _decode_basic(encoded)
        if not self._passwords.remembers(entries, name, password):
            await self._check_password(caller, entries, name, password)
        entry = self._entries.current().find(EntryKind.USER, name)
        if entry is None or entry != entries.find(EntryKind.USER, name):  # changed meanwhile
            raise self._refused("user and password", caller, Authentication.BASIC)
        return self._admit(caller, entry, Authentication.BASIC)

    async def _check_password(
        self, caller: Principal, entries: AccessEntries, name: str, password: str
    ) -> None:
        """Raise `NotAdmittedError` unless a pair is right, or if it was not looked at."""
        if pause := self._failed.address_waits(caller.address):
            raise _too_many("too many passwords from this address were wrong", pause)
        await asyncio.sleep(self._failed.name_waits(name))
        try:
            is_right = await self._passwords.check(entries, name, password, caller.address)
        except TooManyChecksError:
            raise _too_many("other passwords are being checked", 1.0) from None
        if not is_right:
            self._failed.note(caller.address, name)
            raise self._refused("user and password", caller, Authentication.BASIC)

    def _by_token(self, caller: Principal, entries: AccessEntries, token: str) -> Principal:
        entry = find_token(entries, token)
        if entry is None:
            raise self._refused("token", caller, Authentication.TOKEN)
        return self._admit(caller, entry, Authentication.TOKEN)

    async def _by_oidc(self, caller: Principal, tokens: "OidcTokens", token: str) -> Principal:
        try:
            bearer = await tokens.read(token)
        except BearerRefusedError as error:
            LOGGER.warning("a token of %s is refused: %s", caller.address, ascii(str(error)))
            refused = self._refused("token", caller, Authentication.OIDC, is_logged=False)
            raise refused from None
        name = f"{bearer.name} (oidc)"
        return replace(
            caller, access=bearer.access, authentication=Authentication.OIDC, proven=name
        )

    def _by_certificate(self, caller: Principal, certificate: "ClientCertificate") -> Principal:
        entry = find_certificate(self._entries.current(), certificate.subject)
        # A connection, or a session that is resumed, may outlive the certificate that opened it.
        if entry is None or certificate.not_after < time.time():
            what = f"certificate of {certificate.subject!a}"
            raise self._refused(what, caller, Authentication.MTLS)
        return self._admit(caller, entry, Authentication.MTLS)

    def _admit(
        self, caller: Principal, entry: AccessEntry, authentication: Authentication
    ) -> Principal:
        if entry.is_expired(time.time_ns() // 1_000_000):
            LOGGER.warning("%s is refused: it has expired (from %s)", entry.label, caller.address)
            raise self._refused(entry.kind, caller, authentication, is_logged=False)
        return replace(
            caller, access=entry.access, authentication=authentication, proven=entry.label
        )

    def _refused(
        self, what: str, caller: Principal, by: Authentication, *, is_logged: bool = True
    ) -> NotAdmittedError:
        if is_logged:
            LOGGER.warning("an unknown or wrong %s is refused (from %s)", what, caller.address)
        return _unknown_caller(f"this {what} is unknown, wrong, or has expired", by)


class ClientCertificate(NamedTuple):
    """The verified certificate of a connection."""

    subject: str = ""
    """As RFC 4514 writes it; "" if there is no certificate."""
    not_after: float = 0.0
    """In seconds since 1970."""


def certificate_of(scope: Scope) -> ClientCertificate:
    """Return the certificate of the client of a connection."""
    extensions: dict[str, dict[str, Any]] = scope.get("extensions") or {}
    tls = extensions.get("tls", {})
    if not tls.get("client_cert_name"):
        return ClientCertificate()
    return ClientCertificate(tls["client_cert_name"], tls["client_cert_not_after"])


def _is_owner_at_own_socket(scope: Scope, caller: Principal) -> bool:
    extensions: dict[str, dict[str, Any]] = scope.get("extensions") or {}
    is_own = extensions.get("fairlead.listener", {}).get("own", False)
    return is_own and caller.uid in {0, os.geteuid()}


def _is_on_this_machine(caller: Principal) -> bool:
    if caller.uid is not None:  # it came by a Unix socket
        return True
    try:
        return ip_address(caller.server[0]).is_loopback
    except ValueError:
        return False


def _decode_basic(encoded: str) -> tuple[str, str]:
    """Return the name and the password of a header; raises `NotAdmittedError`."""
    try:
        pair = b64decode(encoded, validate=True).decode()
    except ValueError:  # no ASCII, no base64, or no UTF-8
        pair = ""
    name, colon, password = pair.partition(":")
    if not colon:
        text = "the header Authorization: Basic is malformed"
        raise _unknown_caller(text, Authentication.BASIC)
    return name, password


def _json_refusal(_: Request, refused: ApiError) -> Response:
    return error_reply(refused.status, refused.message)


class AdmissionCheck:
    """ASGI middleware: only callers who are known, and do not send too much, reach the routes."""

    def __init__(
        self,
        app: ASGIApp,
        identify: Identify = identify,
        settings: AccessSettings = OPEN,
        public: Collection[str] = (),
        requests: RequestMetrics | None = None,
        refusals: Callable[[Request, ApiError], Response] | None = None,
    ) -> None:
        """Admit all requests to the `public` paths; `requests` counts those of unknown callers.

        `refusals` makes the answers to those who are not known.
        """
        self._app = app
        self._make_refusal = refusals or _json_refusal
        self._requests = requests or RequestMetrics()
        self._identify = identify
        self._public = public
        self._challenges = [
            *dict.fromkeys(
                _CHALLENGES[each] for each in settings.authentication if each in _CHALLENGES
            )
        ]
        self._rate = RequestRate(settings.requests_per_second)
        self._unknown = RequestRate(settings.requests_per_second)
        """Of addresses: requests whose sender is not known."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or answer 401 or 429."""
        if scope["type"] != "http" or scope["path"] in self._public:
            await self._app(scope, receive, send)
            return
        try:
            scope.setdefault("state", {})["principal"] = await self._admit(Request(scope))
        except NotAdmittedError as refused:
            await self._refuse(refused, scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _admit(self, request: Request) -> Principal:
        """Return the caller of a request that is not one too many; raises `NotAdmittedError`."""
        try:
            principal = await self._identify(request)
        except NotAdmittedError as refused:
            if refused.status is HTTPStatus.UNAUTHORIZED:
                self._requests.count_failure(refused.mechanism)
            address = request.client.host if request.client else ""
            if wait := self._unknown.wait_seconds(network_of(address)):
                raise _too_many("too many requests of unknown callers", wait) from None
            raise
        who = principal.proven or principal.address
        if wait := self._rate.wait_seconds(who):
            raise _too_many(f"{principal.name} has sent too many requests", wait)
        return principal

    def _challenges_to(self, refused: NotAdmittedError) -> Sequence[str]:
        """Return what is accepted: to a bearer of a token tokens, for which no browser asks."""
        if refused.mechanism in {Authentication.TOKEN, Authentication.OIDC}:
            return [each for each in self._challenges if each.startswith("Bearer")]
        return self._challenges

    async def _refuse(
        self, refused: NotAdmittedError, scope: Scope, receive: Receive, send: Send
    ) -> None:
        reply = self._make_refusal(Request(scope), refused)
        if refused.status is HTTPStatus.UNAUTHORIZED:
            for each in self._challenges_to(refused):
                reply.headers.append("WWW-Authenticate", each)
        if refused.wait_seconds:
            reply.headers["Retry-After"] = str(ceil(refused.wait_seconds))
        await reply(scope, receive, send)
