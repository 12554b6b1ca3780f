"""Says of each request that changed something, or was refused, who sent it: in the audit log."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from typing import Final, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .....actors.transport.log_format import request_id
from ....security.audit import AuditLog
from ....security.rights import Right
from ..server.openapi import REFUSALS
from ..server.principals import Principal
from ..server.routing import ApiRoute

LONGEST_PATH: Final = 500
DONE, REFUSED, FAILED = "done", "refused", "failed"


class AuditTrail:
    """ASGI middleware that writes a line after each such request."""

    def __init__(
        self, app: ASGIApp, audit: AuditLog | None, clock: Callable[[], float] = time.time
    ) -> None:
        self._app = app
        self._audit = audit
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; one without a response counts as failed."""
        if scope["type"] != "http" or self._audit is None:
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})
        status = int(HTTPStatus.INTERNAL_SERVER_ERROR)

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        finally:
            principal = cast("Principal | None", scope["state"].get("principal"))
            line = partial(self._line, scope, status, principal)
            if status in REFUSALS:
                self._audit.write(line(), refused=principal.name if principal else "")
            elif _changes_something(scope):
                self._audit.write(line())

    def _line(self, scope: Scope, status: int, principal: Principal | None) -> dict[str, object]:
        route = scope.get("route")
        now = datetime.fromtimestamp(self._clock(), UTC)
        client = scope.get("client")
        return {
            "time": now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "principal": principal.name if principal else None,
            "authentication": principal.authentication if principal else None,
            "address": client[0] if client else None,
            "method": scope["method"],
            "path": scope["path"][:LONGEST_PATH],
            "route": getattr(route, "path_format", None),
            "connectors": scope["state"].get("connectors", []),
            "status": status,
            "outcome": _outcome_of(status),
            "request_id": request_id.get() or None,
        }


def _changes_something(scope: Scope) -> bool:
    route = scope.get("route")
    return isinstance(route, ApiRoute) and route.rights.needs in {Right.OPERATE, Right.ADMINISTER}


def _outcome_of(status: int) -> str:
    if status < HTTPStatus.BAD_REQUEST:
        return DONE
    return REFUSED if status in REFUSALS else FAILED
