"""Sends the calls of a request to the shards of their groups."""
# pyright: basic

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ...actors.messages.asks import MemberAsk, UnreadableAsk, refuse_asked
from ...actors.messages.classic import ClassicHeartbeat, JoinGroup
from ...actors.messages.consumers import ConsumerGroupHeartbeat
from ...actors.messages.errors import Error
from ...actors.messages.groups import (
    AlterGroupConfigs,
    ConnectCall,
    ConnectReply,
    HostCall,
    ListGroups,
    ListTransactions,
    NodeCall,
    NodeReply,
    PackedCall,
)
from ...actors.messages.members import JOIN_EPOCH, Heartbeat
from ...actors.messages.offsets import EndTransaction, OffsetCommit
from ...actors.shards.describe import ToolCall
from ...actors.shards.packets import size_of
from ...actors.shards.refusals import refuse_host_call
from ...actors.transport.ports import HostPort
from ...events.entries.group_keys import shard_of_group
from .broker.transactions import CommitRefused, Tell, Transactions
from .client.reply_handler import CallLost, OnHold, ignore_hold
from .shard_connection import ShardConnection
from .topics import Topics
from .wire.bounds import LONGEST_ANSWER
from .wire.served import BY_PROTOCOL
from .wire.terms import TopicIds

OF_WORKERS: Final = (
    "this is the group of fairlead's own workers, whose members send the calls of connect groups"
    " alone: use another group id"
)
OF_OTHERS: Final = (
    "only the node's own group has configs, offsets and statuses: members of this one have them at"
    " Kafka"
)
OF_NO_NODE: Final = "this node serves another group of workers: see group.id"
TRUNCATED: Final = "the groups before it fill the answer: ask for this one again"
LOST: Final = "its process was ended, or does not answer: ask again"
RETRY_SECONDS: Final = 0.5
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
        open_transactions: Callable[[Tell], Transactions],
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
        self._transactions = open_transactions(self._end_transaction)
        self._workers_group, self._workers = workers_group, workers

    @property
    def owner(self) -> HostPort | None:
        """The listener of the node that owns all groups; None: this one, or it is not known."""
        return self._shards[0].owner if self._shards else None

    @property
    def other_nodes(self) -> Mapping[str, HostPort]:
        """The listeners of the nodes that live and own no groups, by name."""
        return self._shards[0].others if self._shards else {}

    async def watch_nodes(self) -> None:
        """Look up which nodes there are; runs until it is cancelled."""
        if self._shards:
            await self._shards[0].watch_nodes()

    @property
    def topic_ids(self) -> TopicIds:
        """The ids of topics as of the last poll of the brokers."""
        return self._topics.ids

    async def wait_for_topic_ids(self, unknown: Collection[str]) -> None:
        """Poll the topics at once, as a client names some by unknown ids."""
        await self._topics.wait_for_ids(unknown)

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

    def find_workers(self, group_id: str) -> ShardConnection | None:
        """Return the connection to the workers' group, None if that has another id."""
        return self._workers if group_id == self._workers_group else None

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
        self._transactions.close()
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

    def _refuse_ask(self, ask: MemberAsk) -> ConnectReply | None:
        """Return the refusal of an ask that no group is asked; None: the workers' group is."""
        asked = ask.request
        if isinstance(asked, UnreadableAsk):
            return ConnectReply(refuse_asked(asked, asked.error, asked.message))
        if ask.group_id != self._workers_group:
            return ConnectReply(refuse_asked(asked, Error.INVALID_GROUP_ID, OF_OTHERS))
        return None

    async def _ask(self, call: Any, on_hold: OnHold = ignore_hold) -> Any:
        if (refused := self._refuse_protocol(call)) is not None:
            return refused
        if isinstance(call, ConnectCall):
            if isinstance(call.request, MemberAsk) and (refused := self._refuse_ask(call.request)):
                return refused
            is_own = call.group_id in {"", self._workers_group}
            group = self._workers if is_own else self._shard_of(call.group_id)
            return await _ask_shard(group, call, on_hold)
        if isinstance(call, NodeCall) and call.group_id != self._workers_group:
            return NodeReply(error=Error.INVALID_GROUP_ID, message=OF_NO_NODE)
        if call.group_id == self._workers_group:
            return await self._ask_workers_group(call, on_hold)
        return await self._ask_clients_group(call, on_hold)

    async def _ask_workers_group(self, call: Any, on_hold: OnHold) -> Any:
        if isinstance(call, ToolCall | AlterGroupConfigs | NodeCall):
            return await _ask_shard(self._workers, call, on_hold)
        is_join = isinstance(call, JoinGroup)
        error = Error.INCONSISTENT_GROUP_PROTOCOL if is_join else Error.INVALID_GROUP_ID
        return refuse_host_call(call, error, OF_WORKERS)

    async def _ask_clients_group(self, call: Any, on_hold: OnHold) -> Any:
        await self._topics.wait_until_known(call)
        shard = self._shard_of(call.group_id)
        if not isinstance(call, OffsetCommit) or call.transaction is None:
            return await _ask_shard(shard, call, on_hold)
        try:
            return await self._transactions.commit(call, partial(_ask_shard, shard))
        except CommitRefused as refused:
            return refuse_host_call(call, refused.error, str(refused))

    # -- transactions

    async def wait_for_transactions(self) -> None:
        """Wait for the transactions with offsets of groups that an earlier process waited for."""
        for shard in self._shards:
            while (reply := await _ask_shard(shard, ListTransactions())).error is not Error.NONE:
                await asyncio.sleep(RETRY_SECONDS)
            await self._transactions.wait_for(sorted(reply.transactions))

    async def _end_transaction(self, end: EndTransaction) -> bool:
        reply = await _ask_shard(self._shard_of(end.group_id), end)
        return reply.error is Error.NONE


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


def refuse_lost(call: PackedCall, error: Error) -> Any:
    """Return the reply to a lost call; it is unknown whether it was accepted."""
    return refuse_host_call(call, error, LOST)


async def _ask_shard(
    shard: ShardConnection, call: PackedCall, on_hold: OnHold = ignore_hold
) -> Any:
    try:
        return await shard.ask(call, on_hold)
    except CallLost as lost:
        return refuse_lost(call, lost.error)
