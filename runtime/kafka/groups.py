"""What a request asks of all groups that it names, each of the shard that has it."""
# pyright: basic

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from ...actors.messages.classic import ClassicHeartbeat, JoinGroup
from ...actors.messages.consumers import ConsumerGroupHeartbeat
from ...actors.messages.errors import Error
from ...actors.messages.groups import ConnectCall, ListGroups, PackedCall
from ...actors.shards.packets import size_of
from ...actors.shards.refusals import refuse_connect_call, refuse_host_call
from ...events.entries.group_keys import shard_of_group
from .client.reply_taker import Lost, Wait, no_wait
from .line import ShardLine
from .topics import Topics
from .wire.bounds import LONGEST_ANSWER

OF_WORKERS: Final = (
    "this is the group of fairlead's own workers, which takes the calls of connect groups alone:"
    " use another group id"
)
NOT_OF_WORKERS: Final = "is no connect group of this node: its own is"
MUCH: Final = "the groups before it fill the answer: ask for this one again"
LOST: Final = "its process was ended, or does not answer: ask again"
SHOWN: Final = 40
"""Letters of a group id that a refusal repeats."""
AT_ONCE: Final = 32
"""How many groups of one request are asked at the same time."""


class Groups:
    """The groups of all shards."""

    def __init__(
        self, lines: Sequence[ShardLine], topics: Topics, workers_group: str, workers: ShardLine
    ) -> None:
        """`workers_group` is that of the node's own workers; `workers` leads to its process."""
        self._lines, self._topics = lines, topics
        self._workers_group, self._workers = workers_group, workers

    def line_of(self, calls: Sequence[PackedCall]) -> ShardLine | None:
        """Return where calls go that are one heartbeat, which names no topics; None: ask for them.

        Then nothing has to be awaited before that.
        """
        call = calls[0] if len(calls) == 1 else None
        if not isinstance(call, ClassicHeartbeat | ConsumerGroupHeartbeat):
            return None
        if isinstance(call, ConsumerGroupHeartbeat) and call.subscribed_topic_names is not None:
            return None
        return None if call.group_id == self._workers_group else self._line_of(call.group_id)

    def _line_of(self, group_id: str) -> ShardLine:
        return self._lines[shard_of_group(group_id, len(self._lines))]

    async def ask(self, calls: Sequence[Any], wait: Wait, *, lists: bool) -> Sequence[Any]:
        """Return the replies to a request's calls; `lists`: whether ListGroups names any here."""
        if len(calls) == 1 and not isinstance(calls[0], ListGroups):
            return [await self._ask(calls[0], wait)]
        if calls and isinstance(calls[0], ListGroups):
            asked = [_ask_line(each, calls[0]) for each in self._lines] if lists else []
            return await asyncio.gather(*asked)
        return await self._ask_each(calls)

    async def _ask_each(self, calls: Sequence[Any]) -> Sequence[Any]:
        """Return the replies of many groups, no more than one answer takes.

        A call that comes again is asked once.
        """
        replies: list[Any] = []
        asked: dict[str, tuple[Any, asyncio.Future[Any]]] = {}
        left = LONGEST_ANSWER
        for at in range(0, len(calls), AT_ONCE):
            batch = calls[at : at + AT_ONCE]
            found = await asyncio.gather(*(self._once(each, asked) for each in batch if left > 0))
            for number, call in enumerate(batch):
                loading = Error.COORDINATOR_LOAD_IN_PROGRESS
                reply = found[number] if left > 0 else refuse_host_call(call, loading, MUCH)
                left -= size_of(reply)
                replies.append(reply)
        return replies

    def _once(
        self, call: Any, asked: dict[str, tuple[Any, asyncio.Future[Any]]]
    ) -> asyncio.Future[Any]:
        """Ask, unless that was asked of the group last: then the reply is the same."""
        said = asked.get(call.group_id)
        if said is None or said[0] != call:
            said = asked[call.group_id] = call, asyncio.ensure_future(self._ask(call))
        return said[1]

    def close(self) -> None:
        """Let go of the lines, and of the broker."""
        self._topics.close()
        for each in (*self._lines, self._workers):
            each.close()

    async def _ask(self, call: Any, wait: Wait = no_wait) -> Any:
        if isinstance(call, ConnectCall):
            if call.group_id in {"", self._workers_group}:
                return await _ask_line(self._workers, call, wait)
            named = f"{call.group_id[:SHOWN]!a}{'…' if len(call.group_id) > SHOWN else ''}"
            message = f"{named} {NOT_OF_WORKERS} {self._workers_group!a}"
            return refuse_connect_call(call, Error.GROUP_ID_NOT_FOUND, message)
        if call.group_id == self._workers_group:
            is_join = isinstance(call, JoinGroup)
            error = Error.INCONSISTENT_GROUP_PROTOCOL if is_join else Error.INVALID_GROUP_ID
            return refuse_host_call(call, error, OF_WORKERS)
        await self._topics.see_those_of(call)
        return await _ask_line(self._line_of(call.group_id), call, wait)


def refuse_lost(call: PackedCall, error: Error) -> Any:
    """Return the answer to a call of which nobody knows whether it was taken."""
    if isinstance(call, ConnectCall):
        return refuse_connect_call(call, error, LOST)
    return refuse_host_call(call, error, LOST)


async def _ask_line(line: ShardLine, call: PackedCall, wait: Wait = no_wait) -> Any:
    try:
        return await line.ask(call, wait)
    except Lost as lost:
        return refuse_lost(call, lost.error)
