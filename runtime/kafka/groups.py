"""Sends the calls of a request to the shards of their groups."""
# pyright: basic

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from ...actors.messages.classic import ClassicHeartbeat, JoinGroup
from ...actors.messages.consumers import ConsumerGroupHeartbeat
from ...actors.messages.errors import Error
from ...actors.messages.groups import ConnectCall, HostCall, ListGroups
from ...actors.messages.members import JOIN_EPOCH, Heartbeat
from ...actors.shards.describe import ReadCall
from ...actors.shards.packets import size_of
from ...actors.shards.refusals import refuse_host_call
from ...events.entries.group_keys import shard_of_group
from .client.reply_handler import CallLost, OnHold, ignore_hold
from .shard_connection import ShardConnection
from .topics import Topics
from .wire.bounds import LONGEST_ANSWER
from .wire.served import BY_PROTOCOL

OF_WORKERS: Final = (
    "this is the group of fairlead's own workers, which takes the calls of connect groups alone:"
    " use another group id"
)
TRUNCATED: Final = "the groups before it fill the answer: ask for this one again"
LOST: Final = "its process was ended, or does not answer: ask again"
AT_ONCE: Final = 32
"""The maximum number of groups of one request that are asked concurrently."""


class Groups:
    """The groups of all shards, and the workers' group."""

    def __init__(
        self,
        shards: Sequence[ShardConnection],
        topics: Topics,
        workers_group: str,
        workers: ShardConnection,
        protocols: Sequence[str] = tuple(BY_PROTOCOL),
    ) -> None:
        """`workers_group` is the group id of the node's workers, `workers` its connection.

        Members may join by these protocols.
        """
        self._protocols = frozenset(protocols)
        self.hidden_apis = frozenset[int]().union(
            *(apis for name, apis in BY_PROTOCOL.items() if name not in self._protocols)
        )
        """The APIs that are not advertised, as their protocol is not allowed."""
        self._shards, self._topics = shards, topics
        self._workers_group, self._workers = workers_group, workers

    def find_shard(self, calls: Sequence[HostCall]) -> ShardConnection | None:
        """Return the shard of a single heartbeat that names no topics, None for other calls.

        Nothing has to be awaited before such a heartbeat is sent.
        """
        call = calls[0] if len(calls) == 1 else None
        if not isinstance(call, ClassicHeartbeat | ConsumerGroupHeartbeat):
            return None
        if isinstance(call, ConsumerGroupHeartbeat) and call.subscribed_topic_names is not None:
            return None
        if call.group_id == self._workers_group or self._refuse_protocol(call) is not None:
            return None
        return self._shard_of(call.group_id)

    def _shard_of(self, group_id: str) -> ShardConnection:
        return self._shards[shard_of_group(group_id, len(self._shards))]

    async def ask(self, calls: Sequence[Any], on_hold: OnHold, *, lists: bool) -> Sequence[Any]:
        """Return the replies to a request's calls; without `lists` ListGroups returns no group."""
        if len(calls) == 1 and not isinstance(calls[0], ListGroups):
            return [await self._ask(calls[0], on_hold)]
        if calls and isinstance(calls[0], ListGroups):
            processes = (*self._shards, self._workers) if lists else ()
            pending = [_ask_shard(each, calls[0]) for each in processes]
            return await asyncio.gather(*pending)
        return await self._ask_each(calls)

    async def _ask_each(self, calls: Sequence[Any]) -> Sequence[Any]:
        """Return the replies of many groups, as far as they fit in one response.

        Equal calls are sent once.
        """
        replies: list[Any] = []
        pending: dict[str, tuple[Any, asyncio.Future[Any]]] = {}
        left = LONGEST_ANSWER
        for at in range(0, len(calls), AT_ONCE):
            batch = calls[at : at + AT_ONCE]
            answers = await asyncio.gather(
                *(self._ask_once(each, pending) for each in batch if left > 0)
            )
            for number, call in enumerate(batch):
                loading = Error.COORDINATOR_LOAD_IN_PROGRESS
                reply = answers[number] if left > 0 else refuse_host_call(call, loading, TRUNCATED)
                left -= size_of(reply)
                replies.append(reply)
        return replies

    def _ask_once(
        self, call: Any, pending: dict[str, tuple[Any, asyncio.Future[Any]]]
    ) -> asyncio.Future[Any]:
        """Send a call, unless it equals the previous one to its group: then share the reply."""
        last = pending.get(call.group_id)
        if last is None or last[0] != call:
            last = pending[call.group_id] = call, asyncio.ensure_future(self._ask(call))
        return last[1]

    def close(self) -> None:
        """Close the connections to shards and to the broker."""
        self._topics.close()
        for each in (*self._shards, self._workers):
            each.close()

    def _refuse_protocol(self, call: Any) -> Any:
        """Return the refusal of a first join by a protocol that is not allowed; None: it may."""
        protocol = _protocol_of_join(call)
        if not protocol or protocol in self._protocols:
            return None
        allowed = ",".join(sorted(self._protocols))
        message = f"no member joins by the protocol {protocol}: group.protocols.allowed = {allowed}"
        return refuse_host_call(call, Error.UNSUPPORTED_VERSION, message)

    async def _ask(self, call: Any, on_hold: OnHold = ignore_hold) -> Any:
        if (refused := self._refuse_protocol(call)) is not None:
            return refused
        if isinstance(call, ConnectCall):
            is_own = call.group_id in {"", self._workers_group}
            group = self._workers if is_own else self._shard_of(call.group_id)
            return await _ask_shard(group, call, on_hold)
        if call.group_id == self._workers_group and isinstance(call, ReadCall):
            return await _ask_shard(self._workers, call)
        if call.group_id == self._workers_group:
            is_join = isinstance(call, JoinGroup)
            error = Error.INCONSISTENT_GROUP_PROTOCOL if is_join else Error.INVALID_GROUP_ID
            return refuse_host_call(call, error, OF_WORKERS)
        await self._topics.wait_until_known(call)
        return await _ask_shard(self._shard_of(call.group_id), call, on_hold)


def _protocol_of_join(call: Any) -> str:
    """Return the protocol by which a new member joins with this call; "" if none does.

    A member that is there already goes on, so its later joins are no first ones.
    """
    if isinstance(call, JoinGroup):
        return "" if call.member_id else "classic"
    request = call.request if isinstance(call, ConnectCall) else call
    if not isinstance(request, ConsumerGroupHeartbeat | Heartbeat):
        return ""
    if request.member_epoch != JOIN_EPOCH:
        return ""
    return "connect" if isinstance(request, Heartbeat) else "consumer"


def refuse_lost(call: HostCall, error: Error) -> Any:
    """Return the reply to a lost call; it is unknown whether it was accepted."""
    return refuse_host_call(call, error, LOST)


async def _ask_shard(shard: ShardConnection, call: HostCall, on_hold: OnHold = ignore_hold) -> Any:
    try:
        return await shard.ask(call, on_hold)
    except CallLost as lost:
        return refuse_lost(call, lost.error)
