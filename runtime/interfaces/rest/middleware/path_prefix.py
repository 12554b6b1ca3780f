"""Serves the interface below a prefix of the path, for a proxy that passes it on."""

from http import HTTPStatus

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class PathPrefix:
    """ASGI middleware that takes a prefix from the path; without it a path is served as well.

    So the command line, probes and Prometheus reach a node as ever. The prefix alone leads to the
    page, whose links are relative: there its path has to end with a slash.
    """

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        """`prefix` begins with a slash, and does not end with one."""
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        raw = self._prefix.encode()
        if scope["type"] != "http" or not scope["raw_path"].startswith(raw):
            await self._app(scope, receive, send)
            return
        rest = scope["raw_path"][len(raw) :]
        if not rest:
            moved = RedirectResponse(f"{self._prefix}/", HTTPStatus.PERMANENT_REDIRECT)
            await moved(scope, receive, send)
        elif not rest.startswith(b"/"):  # another word that begins alike
            await self._app(scope, receive, send)
        else:
            path = scope["path"][len(self._prefix) :]
            await self._app({**scope, "raw_path": rest, "path": path}, receive, send)
