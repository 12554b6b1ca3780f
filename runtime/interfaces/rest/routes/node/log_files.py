"""The route of the log files of this node's processes.

A caller who is limited to some connectors gets only entries that are about these and name no other:
what a caller does not see is not even named. The audit log has who did what on the whole node, and
is for those who administer it.
"""

import asyncio
import re
import time
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Final

from msgspec import Meta

from .....config.node_keys.kinds import INT32_MAX
from .....config.references.secret_patterns import redact
from .....security.audit import FILE as AUDIT
from .....security.rights import Access, Right
from ....node_logs.entries import EntryChoice, Level, LogEntry
from ....node_logs.files import (
    LogFilesError,
    LogFolderReader,
    Places,
    format_places,
    parse_places,
)
from ....replies.node import LoggedEntry, LogPage
from ...commands.service import CallerAccess, Served, Service
from ...server.errors import ApiError, not_found
from ...server.permissions import Reach, RouteRights
from ...server.routing import Routes

routes = Routes("this process")
MOST_BYTES: Final = 4 << 20
"""How much of the end of each log is read for one answer."""
MOST_ENTRIES: Final = 10_000
LONGEST_WAIT_MS: Final = 30_000
LOOK_SECONDS: Final = 0.5
"""The time between two looks for new entries."""
Name = Annotated[str, Meta(min_length=1, max_length=1_000)]


@routes.add(
    "GET /logs",
    RouteRights(Right.VIEW, Reach.VISIBLE),
    errors=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def read_logs(  # noqa: PLR0913, PLR0917  # six of them are of the query
    service: Served,
    access: CallerAccess,
    about: Annotated[
        list[Name],
        Meta(
            max_length=100,
            description="Connectors, tasks such as flights-0, or workers: only entries that name"
            " one of them.",
        ),
    ] = [],  # noqa: B006  # nobody changes it
    level: Annotated[Level | None, Meta(description="Only of this level, and graver ones.")] = None,
    tail: Annotated[
        int, Meta(ge=0, le=MOST_ENTRIES, description="How many entries at most, the last ones.")
    ] = 1_000,
    since_ms: Annotated[int, Meta(ge=0, le=INT32_MAX, description="How old an entry may be.")]
    | None = None,
    after: Annotated[
        str, Meta(max_length=10_000, description="`next` of an earlier answer: only what is new.")
    ] = "",
    wait_ms: Annotated[
        int,
        Meta(ge=0, le=LONGEST_WAIT_MS, description="How long to wait if there is none yet."),
    ] = 0,
) -> LogPage:
    """Read the log files of this node's processes, merged in the order of their times.

    Of each log the last 4 MiB are read. What looks like a secret is hidden, and entries that the
    caller may not see are left out.
    """
    since = None if since_ms is None else timedelta(milliseconds=since_ms)
    choice = EntryChoice(about, since, level)
    try:
        places = parse_places(after)
    except ValueError as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"after: {error}") from None
    until = time.monotonic() + wait_ms / 1_000
    while True:

        def read(places: Places = places) -> tuple[LogPage, Places]:
            return _read(service, choice, _sight_of(service, access), places, tail)

        page, places = await service.explaining.run(read)
        if page.entries or time.monotonic() >= until:
            return page
        await asyncio.sleep(min(LOOK_SECONDS, wait_ms / 1_000))


def _read(
    service: Service,
    choice: EntryChoice,
    is_visible: Callable[[LogEntry], bool],
    places: Places,
    tail: int,
) -> tuple[LogPage, Places]:
    """Return the entries behind these places, and the places where they end.

    No more entries are looked at than an answer takes, the latest first.
    """
    reader = LogFolderReader(service.log_folder, places, MOST_BYTES)
    try:
        latest = reversed([*reader.read()])
    except LogFilesError as error:
        raise not_found(str(error)) from None
    chosen = islice((each for each in latest if choice.wants(each) and is_visible(each)), tail)
    lines = [LoggedEntry(each.file, redact(each.text)) for each in chosen]
    is_cut = reader.is_cut or next(latest, None) is not None
    return LogPage(lines[::-1], is_cut, format_places(reader.places)), reader.places


def _sight_of(service: Service, access: Access) -> Callable[[LogEntry], bool]:
    """Return what tells whether a caller may see an entry."""
    is_of_all = access.has_everywhere(Right.ADMINISTER)
    if not access.is_limited:
        return lambda entry: is_of_all or entry.file != AUDIT
    with service.logs.reading_all() as groups:
        names = {name for logs in groups.values() for name in logs.group.connectors}
    hidden = "|".join(re.escape(each) for each in names if not access.sees(each))
    names_hidden = re.compile(rf"(?<![\w.])({hidden})(?!\w)" if hidden else r"(?!)")

    def is_visible(entry: LogEntry) -> bool:
        about = entry.connectors()
        is_own = bool(about) and all(map(access.sees, about)) and entry.file != AUDIT
        return is_own and not names_hidden.search(entry.text)

    return is_visible
