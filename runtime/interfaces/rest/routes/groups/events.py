"""The route of what happens in a group: the lines of the node's log, read from the group's own."""

from http import HTTPStatus
from typing import Annotated, Final

from msgspec import Meta

from .....security.rights import Right
from ....replies.live.events import EventInfo, EventList, describe_event
from ...commands.service import CallerAccess, Served
from ...server.errors import not_found
from ...server.permissions import Reach, RouteRights
from ...server.routing import Routes

routes = Routes("groups")
ENTRIES_MAX: Final = 10_000
"""How many entries of a log are read for one answer; the latest ones."""
Start = Annotated[
    int, Meta(ge=-1, le=(1 << 63) - 1, description="An offset in the group's log; -1: the latest.")
]
Connector = Annotated[str, Meta(description="Only the events of this connector and its tasks.")]
ERRORS = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)


@routes.add("GET /groups/{group}/events", RouteRights(Right.VIEW, Reach.VISIBLE), errors=ERRORS)
async def list_events(
    service: Served, access: CallerAccess, group: str, start: Start = -1, connector: Connector = ""
) -> EventList:
    """List what happened in a group of workers, in the order of its log.

    That is from an offset on, and within the last 10,000 entries of the log. A later request with
    the same `start` gets the same events, and those that have happened since. A caller who sees
    only some connectors gets the events of these, and none of workers.
    """

    def is_listed(event: EventInfo) -> bool:
        if connector and event.connector != connector:
            return False
        return not access.is_limited or bool(event.connector and access.sees(event.connector))

    def read() -> EventList:
        if not service.logs.has_own_logs(group):
            raise not_found(f"there is no group {group} of workers")
        with service.logs.apart(group) as logs:
            lines, first, end = logs.events(start, ENTRIES_MAX)
        return EventList(group, first, end, [*filter(is_listed, map(describe_event, lines))])

    return await service.explaining.run(read)
