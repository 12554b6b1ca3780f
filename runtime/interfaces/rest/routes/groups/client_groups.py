"""The routes of groups of Kafka clients: a page of their list, and what each has left to read.

The logs say how far a group has read, the brokers how far its partitions were written. Both are
asked only about the groups of the page that somebody looks at.
"""

from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Final, Literal

from msgspec import Meta
from msgspec.structs import asdict
from starlette.concurrency import run_in_threadpool

from ......events.commits import ConsumerOffset
from ......events.group import Group
from ......events.model import Resource
from ......projections.shards import state_of_clients, type_of_clients
from .....security.rights import Right
from ....replies.building.clients import owners_of_partitions
from ....replies.building.groups import summarize_group
from ....replies.groups import (
    ClientGroupList,
    ClientGroupSummary,
    GroupLag,
    GroupSummary,
    PartitionLag,
)
from ...commands.service import Served, Service
from ...reading.ends import MOST_PARTITIONS, Partition
from ...server.errors import not_found
from ...server.parameters import Key
from ...server.permissions import Reach, RouteRights
from ...server.routing import Routes

routes = Routes("groups")
SHOWN: Final = 50
MOST_SHOWN: Final = 500
Limit = Annotated[int, Meta(ge=1, le=MOST_SHOWN, description="How many groups at most.")]
After = Annotated[Key, Meta(description="An id: only those that follow it in order.")]
Text = Annotated[Key, Meta(description="Only ids with this part, in upper or lower case.")]
Type = Annotated[
    Literal["", "classic", "consumer", "connect"], Meta(description="Only groups of this type.")
]
State = Annotated[Key, Meta(description="Only groups in this state.")]
WithLag = Annotated[bool, Meta(description="Whether to tell how many records are left to read.")]
Offsets = Mapping[Partition, ConsumerOffset]


@routes.add(
    "GET /client-groups",
    RouteRights(Right.VIEW, Reach.NODE),
    errors=(HTTPStatus.BAD_REQUEST,),
)
async def list_client_groups(  # noqa: PLR0913, PLR0917  # six of them are of the query
    service: Served,
    text: Text = "",
    type: Type = "",  # noqa: A002  # as the field of the answer
    state: State = "",
    after: After = "",
    limit: Limit = SHOWN,
    lag: WithLag = False,  # noqa: FBT002
) -> ClientGroupList:
    """List the groups of Kafka clients by id, a page of them.

    With `lag` the brokers are asked how far the partitions were written, each of these at most
    every two seconds. Groups of a shard whose logs cannot be read are omitted.
    """

    def is_listed(group: Group) -> bool:
        is_of_type = not type or type == type_of_clients(group).value
        return (
            is_of_type
            and (not state or state == state_of_clients(group))
            and text.lower() in group.group_id.lower()
        )

    def read() -> tuple[Sequence[GroupSummary], int, int, Mapping[str, Offsets]]:
        with service.logs.shards.reading() as shards:
            groups = [(each, shard) for shard in shards for each in shard.groups()]
            matching = sorted(
                (each for each in groups if is_listed(each[0])), key=lambda it: it[0].group_id
            )
            page = [each for each in matching if each[0].group_id > after][:limit]
            summaries = [summarize_group(group, shard.number) for group, shard in page]
            offsets = {
                group.group_id: _by_partition(shard.committed(group.group_id))
                for group, shard in (page if lag else ())
            }
            return summaries, len(matching), len(groups), offsets

    summaries, matching, total, offsets = await run_in_threadpool(read)
    if not lag:
        return ClientGroupList([_with_lag(each, None) for each in summaries], matching, total, "")
    ends = await service.ends.read({each for of_group in offsets.values() for each in of_group})
    groups = [
        _with_lag(each, _sum(_lags(offsets[each.group_id], ends.offsets))) for each in summaries
    ]
    return ClientGroupList(groups, matching, total, ends.message)


@routes.add(
    "GET /groups/{group}/lag",
    RouteRights(Right.VIEW, Reach.NODE),
    errors=(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def get_lag(service: Served, group: str) -> GroupLag:
    """Return how far a group of Kafka clients has read each partition, and what is left.

    The brokers are asked how far the partitions were written, each at most every two seconds; if
    they do not answer, what is left is null, and `message` says why.
    """
    owners, offsets = await run_in_threadpool(_read_group, service, group)
    partitions = sorted({(each.connector, each.task or 0) for each in owners} | offsets.keys())
    ends = await service.ends.read(partitions)
    lags = _lags(offsets, ends.offsets)
    told = [
        _describe(each, owners, offsets.get(each), ends.offsets.get(each), lags.get(each))
        for each in partitions[:MOST_PARTITIONS]
    ]
    return GroupLag(group, _sum(lags), ends.message, len(partitions), told)


def _read_group(service: Service, group_id: str) -> tuple[Mapping[Resource, str], Offsets]:
    """Return the owner of each partition, and the committed offsets; raises `ApiError`."""
    with service.logs.shards.holding(group_id) as shard:
        group = shard.group(group_id) if shard is not None else None
        if shard is not None and group is not None:
            return owners_of_partitions(group), _by_partition(shard.committed(group_id))
    raise not_found(f"there is no group {group_id} of Kafka's clients")


def _by_partition(committed: Collection[ConsumerOffset]) -> Offsets:
    return {(each.topic, each.partition): each for each in committed}


def _lags(offsets: Offsets, ends: Mapping[Partition, int]) -> Mapping[Partition, int]:
    """Return the records that are left in each partition of which that is known.

    A topic that was created anew may end before the committed offset.
    """
    return {
        each: max(0, ends[each] - committed.offset)
        for each, committed in offsets.items()
        if each in ends
    }


def _sum(lags: Mapping[Partition, int]) -> int | None:
    return sum(lags.values()) if lags else None


def _with_lag(summary: GroupSummary, lag: int | None) -> ClientGroupSummary:
    return ClientGroupSummary(**asdict(summary), lag=lag)


def _describe(
    partition: Partition,
    owners: Mapping[Resource, str],
    committed: ConsumerOffset | None,
    end: int | None,
    lag: int | None,
) -> PartitionLag:
    return PartitionLag(
        *partition,
        owners.get(Resource(*partition), ""),
        committed.offset if committed else None,
        end,
        lag,
        committed.time_ms if committed else None,
        committed.metadata if committed else "",
    )
