"""The id of each request, by which log lines of all processes that took part are found.

A caller may send one as `X-Request-Id`, as proxies do; it is taken if it is short and plain, since
it stands in logs. Otherwise the request gets one of its own. The answer has it as well.
"""

import re
import secrets
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .....actors.transport.log_format import request_id

REQUEST_ID: Final = "X-Request-Id"
_PLAIN: Final = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


class RequestIds:
    """ASGI middleware that gives each request an id, and tells it to the caller."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request under its id."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = Headers(scope=scope).get(REQUEST_ID, "")
        own = sent if _PLAIN.fullmatch(sent) else secrets.token_hex(8)

        async def add_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID] = own
            await send(message)

        before = request_id.set(own)
        try:
            await self._app(scope, receive, add_id)
        finally:
            request_id.reset(before)
