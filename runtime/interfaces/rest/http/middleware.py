"""Around every request: it is measured, and what is too large is refused."""

import time
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .....projections.metrics import RequestMetrics

MOST_BYTES = 1 << 20
UNMATCHED = "unmatched"


class RequestMeter:
    """Counts requests by their route's template and times them; pure ASGI."""

    def __init__(self, app: ASGIApp, requests: RequestMetrics) -> None:
        self._app = app
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and see how it ends; one without an answer counts as a 500."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        code = int(HTTPStatus.INTERNAL_SERVER_ERROR)
        began = time.perf_counter()

        async def heard(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
            await send(message)

        try:
            await self._app(scope, limited(receive), heard)
        finally:
            route = getattr(scope.get("route"), "path", UNMATCHED)
            seconds = time.perf_counter() - began
            self._requests.observe(scope["method"], route, code, seconds)


def limited(receive: Receive) -> Receive:
    """Return a way to receive a body that raises once the body is too large."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MOST_BYTES:
            raise HTTPException(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {MOST_BYTES} bytes at most"
            )
        return message

    return counted
