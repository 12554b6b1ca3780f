"""The route of the changes of a page, as they happen (server-sent events).

A stream lasts until its reader ends it, or the process ends. It has no answer to wait for: so it
asks again and again whether its caller is still admitted, and with the same rights.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from http import HTTPStatus
from typing import Annotated, Final

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from .....security.rights import Access, Right
from ....replies.live.messages import MESSAGES, StreamGap, StreamOpened
from ...commands.service import CallerAccess, Served
from ...reading.feed import PageFeed
from ...server.connections import abort_of
from ...server.errors import ApiError
from ...server.permissions import Reach, RouteRights
from ...server.routing import EVENT_STREAM, EventStream, Routes
from .state import ERRORS, UNREAD

routes = Routes("page")
QUIET_SECONDS: Final = 15.0
"""After so long without a message a comment is sent: proxies end what is silent."""
ADMISSION_SECONDS: Final = 30.0
"""How often it is asked whether the caller is still admitted."""
Id = Annotated[str, Meta(max_length=64, description="As the header `Last-Event-ID`.")]


@routes.add(
    "GET /events",
    RouteRights(Right.VIEW, Reach.VISIBLE),
    also={HTTPStatus.OK: EventStream(MESSAGES)},
    errors=(HTTPStatus.BAD_REQUEST, *ERRORS),
)
async def follow_events(
    service: Served, access: CallerAccess, request: Request, after: Id = ""
) -> Response:
    """Send what changes on a page, as server-sent events, until the caller ends it.

    A message `change` holds all that has changed since the one before; a `step` each 15 seconds has
    the rates, the lags and the use of workers. The header `Last-Event-ID`, or else `after`, is the
    id of the last message that the caller has, or the `sequence` of `/state`: then the ones behind
    it come first. If those are not there any more, the first message is `gap`: read `/state` again.
    Then `open` says behind which one all others follow.
    """
    if service.page.view is None:
        raise UNREAD
    last_id = request.headers.get("last-event-id", after)
    blocks = _blocks(service.page, access, last_id, request)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(blocks, headers=headers, media_type=EVENT_STREAM)


async def _blocks(
    feed: PageFeed, access: Access, last_id: str, request: Request
) -> AsyncGenerator[bytes]:
    """Yield the parts of a stream."""
    yield b"retry: 1000\n\n"
    last = feed.resume(last_id)
    if last is None:
        last = feed.sequence
        yield feed.spell(StreamGap(last))
    yield feed.spell(StreamOpened(last))
    stream = feed.open(access, last, abort_of(request))
    asked_at = time.monotonic()
    try:
        while not feed.is_closed:
            blocks = feed.take(stream)
            if blocks:
                yield b"".join(blocks)
            elif not await _wait(stream.woken, QUIET_SECONDS):
                yield b": \n\n"
            if time.monotonic() - asked_at > ADMISSION_SECONDS:
                asked_at = time.monotonic()
                if not await _is_admitted(request, access):
                    return
    finally:
        feed.end(stream)


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    """Return whether an event came in time."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


async def _is_admitted(request: Request, access: Access) -> bool:
    """Return whether the caller would be admitted now, with the same rights."""
    try:
        principal = await request.app.state.identify(request)
    except ApiError:
        return False
    return bool(principal.access == access)
