"""The routes of a connector's dead letters: page by page, or all of them as JSON lines."""

import logging
from collections.abc import AsyncGenerator
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from .....pipeline.spi.rows import LetterPage, LetterQuery
from .....security.rights import Right
from ....replies.connectors import DeadLetterInfo, DeadLetterList
from ...commands.service import Served, Service
from ...server.connections import abort_of
from ...server.errors import ApiError
from ...server.routing import JSON_LINES, JsonLines, Routes
from ...validation.letters import LetterReader
from .descriptions import MISSING, require_connector

routes = Routes("connectors")
LOGGER = logging.getLogger(__name__)
MOST: Final = 1_000
"""The maximum number of dead letters in an answer."""
_ENCODER: Final = msgspec.json.Encoder()


@routes.add(
    "GET /connectors/{connector}/dead-letters",
    Right.VIEW,
    errors=(HTTPStatus.BAD_REQUEST, *MISSING),
)
def list_dead_letters(
    service: Served,
    connector: str,
    limit: Annotated[int, Meta(ge=1, le=MOST, description="How many at most.")] = 50,
    cursor: Annotated[
        str, Meta(max_length=30_000, description="`next` of an earlier answer: older ones.")
    ] = "",
) -> DeadLetterList:
    """List the dead letters of a connector, the newest first, as its folder or topic has them.

    Of a folder 8 MiB are read for one answer at most, of a topic about as much: so an answer may
    have fewer than `limit`, and even none. There are more as long as `next` is not null. The
    secrets of the config are hidden.
    """
    page = _reader_of(service, connector).read(LetterQuery(limit, cursor))
    return DeadLetterList([DeadLetterInfo(*each) for each in page.letters], page.next, page.where)


@routes.add(
    "GET /connectors/{connector}/dead-letters/export",
    Right.VIEW,
    also={HTTPStatus.OK: JsonLines(DeadLetterInfo)},
    errors=(HTTPStatus.BAD_REQUEST, *MISSING),
)
async def export_dead_letters(service: Served, request: Request, connector: str) -> Response:
    """Return all dead letters of a connector as JSON lines, the newest first.

    If they cannot be read to the end, the connection is aborted, and logs/rest.log says why.
    """
    reader = await run_in_threadpool(_reader_of, service, connector)
    first = await run_in_threadpool(reader.read, LetterQuery(MOST))

    async def lines() -> AsyncGenerator[bytes]:
        page: LetterPage | None = first
        while page is not None:
            yield _ENCODER.encode_lines([DeadLetterInfo(*each) for each in page.letters])
            try:
                page = await run_in_threadpool(_read_next, reader, page)
            except ApiError as error:
                LOGGER.warning("an export of dead letters ends early: %s", error.message)
                abort_of(request)()
                return

    return StreamingResponse(lines(), media_type=JSON_LINES)


def _read_next(reader: LetterReader, page: LetterPage) -> LetterPage | None:
    """Return the page behind another one, if there is one; raises `ApiError`."""
    return None if page.next is None else reader.read(LetterQuery(MOST, page.next))


def _reader_of(service: Service, connector: str) -> LetterReader:
    with service.logs.reading(service.group_id) as logs:
        stored = require_connector(logs, connector)
    return service.letters_of(stored)
