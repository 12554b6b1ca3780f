"""The list of connectors, whole or in pages, and what it is expanded by.

A list of statuses or configs is encoded once, and then again for the connectors that have changed
alone; with progress, or if extended, anew once the offset log has grown. All of them are of the
logs as they are now.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Final, cast
from urllib.parse import urlencode

from msgspec import Meta, Raw
from msgspec.json import encode
from starlette.requests import Request
from starlette.responses import Response

from ......projections import views
from .....security.rights import Access, Right
from ....replies.connectors import ExpandedConnector
from ...commands.service import Served, Service
from ...reading.encoded import EncodedBody
from ...reading.logs import FollowedGroup
from ...server.bodies import negotiate
from ...server.parameters import Extended, Key
from ...server.permissions import Reach, RouteRights, access_of
from ...server.routing import Routes
from .descriptions import (
    describe_connector,
    describe_progress,
    describe_state,
    explain_hold,
    publication_warnings,
    with_warnings,
)

routes = Routes("connectors")
PROGRESS: Final = "progress"
EXPANSIONS: Final = ("status", "info", PROGRESS)
"""What a list can be expanded by."""
Limit = Annotated[
    Annotated[int, Meta(ge=1)] | None, Meta(description="How many at most; all without it.")
]
After = Annotated[Key, Meta(description="A name: only those that follow it in order.")]


@routes.add(
    "GET /connectors",
    RouteRights(Right.VIEW, Reach.VISIBLE),
    also={HTTPStatus.OK: list[str] | dict[str, ExpandedConnector]},
    errors=(HTTPStatus.SERVICE_UNAVAILABLE,),
)
def list_connectors(
    service: Served,
    request: Request,
    expand: list[str] | None = None,
    extended: Extended = False,  # noqa: FBT002
    limit: Limit = None,
    after: After = "",
) -> Response:
    """List the connectors by name; `expand` adds status, info or progress of each.

    With `limit` the header `Link` has the address of the next page (`rel="next"`), if there is one.
    With `If-None-Match` and the `ETag` of the last answer it is 304 if nothing has changed.
    """
    negotiate(request, is_read=False)
    access = access_of(request)
    with service.logs.reading(service.group_id) as logs:
        names = [each for each in views.connector_names(logs.group) if each > after]
        if access.is_limited:
            names = [each for each in names if access.sees(each)]
        page = names[:limit]
        body = _encode_list(service, logs, page, expand, extended=extended)
    return body.answer(request, _link_to_next(request, page) if len(page) < len(names) else None)


def _encode_list(
    service: Service,
    logs: FollowedGroup,
    names: list[str],
    expand: Sequence[str] | None,
    *,
    extended: bool,
) -> EncodedBody:
    """Return a list of connectors; that of before, if nothing has changed in it."""
    members = None if expand is None else tuple(each for each in EXPANSIONS if each in expand)
    lists, what = logs.lists, (members, extended, service.plugins.plugins)
    needs_offsets = extended or PROGRESS in (members or ())
    end = logs.offsets_end() if needs_offsets else 0
    # Of a group with hundreds of tasks it takes longest to encode them, and many ask again.
    key = what, tuple(names), end, explain_hold(service) if extended else ""
    if (body := lists.find(key)) is not None:
        return body
    if members is None:
        return lists.keep(key, encode(names))

    def build(name: str) -> ExpandedConnector:
        return _expand(service, logs, name, members, extended=extended)

    if not needs_offsets:
        return lists.keep(key, encode(lists.join(what, names, build)))
    built = {name: build(name) for name in names}
    if any(map(_shows_restarts, built.values())):
        return EncodedBody(encode(built))
    return lists.keep(key, encode(built))


def _shows_restarts(entry: ExpandedConnector) -> bool:
    """Return whether a status has automatic restarts, which it has for a time only."""
    status = entry.status
    return status is not None and (
        status.connector.autoRestart is not None or any(each.autoRestart for each in status.tasks)
    )


def _link_to_next(request: Request, page: Sequence[str]) -> Mapping[str, str]:
    """Return the header that leads behind a page, by an address relative to that of the request."""
    query = [each for each in request.query_params.multi_items() if each[0] != "after"]
    return {"Link": f'<?{urlencode([*query, ("after", page[-1])])}>; rel="next"'}


def expand_connectors(
    service: Service, logs: FollowedGroup, expand: Sequence[str], access: Access
) -> dict[str, ExpandedConnector]:
    """Return the requested parts of each visible connector, extended and encoded."""
    names = [each for each in views.connector_names(logs.group) if access.sees(each)]
    body = _encode_list(service, logs, names, expand, extended=True)
    return cast("dict[str, ExpandedConnector]", Raw(body.plain))  # as it is sent


def _expand(
    service: Service,
    logs: FollowedGroup,
    name: str,
    expand: Sequence[str],
    *,
    extended: bool,
) -> ExpandedConnector:
    info = None
    if "info" in expand:
        info = describe_connector(service, logs.group, name)
        if extended:
            warnings = publication_warnings(logs, name)
            stored = logs.group.connectors[name]
            info = with_warnings(service, logs.group, stored, info, warnings)
    return ExpandedConnector(
        describe_state(service, logs, name, extended=extended) if "status" in expand else None,
        info,
        describe_progress(logs, name) if PROGRESS in expand else None,
    )
