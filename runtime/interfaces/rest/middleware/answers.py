"""Headers of the settings, gzip, and what pages of other origins need, for every answer.

The listener that takes a request says whether /admin is served there.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .....events.placement import split_list
from ....security.rest_answers import (
    ANY,
    USUAL_METHODS,
    HeaderRule,
    parse_header_rules,
    pattern_of,
)
from ..server.errors import error_reply
from .origins import AllowedPages

LEAST_GZIP_BYTES: Final = 4096
GZIP_LEVEL: Final = 1
"""Metrics of 900 KB shrink to 108 KB in 2 ms; at level 6 to 93 KB in 6 ms."""
PAGE_HEADERS: Final = ("Accept", "Authorization", "Content-Type", "Origin", "X-Requested-With")
"""The headers that pages of other origins may send."""
ADMIN: Final = "/admin"


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """The settings of a node that concern all answers."""

    origins: Sequence[str] = ()
    """The origins whose pages may use the interface."""
    methods: Sequence[str] = USUAL_METHODS
    """The methods that those pages may use."""
    rules: Sequence[HeaderRule] = field(default_factory=tuple[HeaderRule, ...])
    prefix: str = ""
    """What paths may begin with: `rest.path.prefix`."""

    @classmethod
    def parse(cls, origins: str, methods: str, headers: str, prefix: str = "") -> "AnswerSettings":
        """Return the values of the four settings."""
        chosen = split_list(methods) or USUAL_METHODS
        return cls(split_list(origins), chosen, parse_header_rules(headers), prefix)

    def pages(self) -> AllowedPages:
        """Return the pages of other sites that are let in."""
        return AllowedPages(pattern_of(self.origins), ANY in self.origins)

    def middleware(self) -> list[Middleware]:
        """Return what goes around the routes; what pages of other origins need, if any may come."""
        around = [Middleware(GZipMiddleware, LEAST_GZIP_BYTES, GZIP_LEVEL)]
        if self.origins:
            pattern, any_may_read = self.pages()
            pages = Middleware(
                CORSMiddleware,
                allow_origins=[ANY] if any_may_read else [],
                allow_origin_regex=pattern.pattern,
                allow_methods=self.methods,
                allow_headers=PAGE_HEADERS,
            )
            around.insert(0, pages)
        return around


class AnswerHeaders:
    """ASGI middleware that applies the rules for headers to each answer."""

    def __init__(self, app: ASGIApp, rules: Sequence[HeaderRule]) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""

        async def send_more(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._apply(MutableHeaders(scope=message))
            await send(message)

        await self._app(scope, receive, send_more if self._rules else send)

    def _apply(self, headers: MutableHeaders) -> None:
        for action, name, text in self._rules:
            at = time.time() + int(text) / 1000 if action.endswith("Date") else None
            value = text if at is None else formatdate(at, usegmt=True)
            if action.startswith("set"):
                headers[name] = value
            else:
                headers.append(name, value)


class ListenerRoutes:
    """ASGI middleware that answers 404 for what the listener of a request does not serve."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        extensions: dict[str, dict[str, bool]] = scope.get("extensions") or {}
        served = extensions.get("fairlead.listener", {})
        path: str = scope.get("path", "")
        is_admin = path == ADMIN or path.startswith(f"{ADMIN}/")
        if not served.get("admin" if is_admin else "others", True):
            missing = error_reply(HTTPStatus.NOT_FOUND, "HTTP 404 Not Found")
            await missing(scope, receive, send)
            return
        await self._app(scope, receive, send)
