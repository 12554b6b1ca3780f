"""The routes of a compaction that somebody asks for: the history of a group on a running node.

The group's process trims its log in slices, between requests, as it does by itself; the answer does
not wait for the end. If that process ends meanwhile, each slice is whole, and the rest stays.
"""

from http import HTTPStatus
from typing import Annotated, Final

from msgspec import Meta
from starlette.concurrency import run_in_threadpool

from ......actors.messages.commands import CompactHistory, CompactionProgress, DescribeCompaction
from ......actors.transport.log_format import request_id
from .....security.rights import Right
from ....replies.groups import GroupCompaction
from ...commands.service import ORDER_ERRORS, PrincipalName, Served, require_group
from ...server.errors import ApiError
from ...server.routing import Routes

routes = Routes("groups")
PATH: Final = "/groups/{group}/compaction"
Limit = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)] | None


@routes.add(
    f"PUT {PATH}",
    Right.ADMINISTER,
    status=HTTPStatus.ACCEPTED,
    errors=(*ORDER_ERRORS, HTTPStatus.CONFLICT),
)
async def compact(
    service: Served,
    principal: PrincipalName,
    group: str,
    keep_ms: Limit = None,
    keep_epochs: Limit = None,
    keep_bytes: Limit = None,
) -> GroupCompaction:
    """Begin to sum up the old history of a group of workers.

    What is not said is kept as the settings `log.retention.*` of the node say. States, offsets and
    the latest value of everything stay. One compaction of a group is asked for at a time (409).
    """
    await run_in_threadpool(require_group, service, group)
    limits = keep_ms, keep_epochs, keep_bytes
    order = CompactHistory(group, *limits, principal, request_id.get())
    progress = await service.commands.compaction(order)
    if progress.is_refused:
        raise ApiError(
            HTTPStatus.CONFLICT,
            f"the history of group {group} is being compacted, by an earlier request:"
            f" {progress.trimmed} entries so far. Nothing else was begun; ask again when that one"
            f" is done, as GET {PATH.format(group=group)} tells",
        )
    return _describe(group, progress)


@routes.add(f"GET {PATH}", Right.VIEW, errors=(HTTPStatus.NOT_FOUND,))
async def describe(service: Served, group: str) -> GroupCompaction:
    """Return how far the compaction is that was asked for last."""
    await run_in_threadpool(require_group, service, group)
    progress = await service.commands.compaction(DescribeCompaction(group))
    return _describe(group, progress)


def _describe(group: str, progress: CompactionProgress) -> GroupCompaction:
    return GroupCompaction(group, progress.state.value, progress.trimmed, progress.why)
