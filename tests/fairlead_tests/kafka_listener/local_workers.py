"""A workers' group in the same event loop."""

import asyncio
from collections.abc import Sequence
from typing import Any

from fairlead.actors.group.group_shard import CoordinatorProcess, GroupShard
from fairlead.actors.group.host import drain
from fairlead.actors.group.kind import WORKERS
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import GroupRequest, RequestedCommand
from fairlead.actors.messages.groups import (
    AlterGroupConfigs,
    AlterGroupConfigsReply,
    ConnectCall,
    ConnectReply,
    HostReply,
    NodeCall,
    NodeReply,
)
from fairlead.actors.messages.orders import PutConnector
from fairlead.actors.shards.describe import ToolCall, answer_tool
from fairlead.actors.shards.workers_group import reply_to_member
from fairlead.actors.timing import Now
from fairlead.events.group import Group
from fairlead.events.log.frame import NewEntry
from fairlead.runtime.kafka.client.reply_handler import OnHold, ReplyHandler, ignore_hold
from fairlead_tests.consumer.driver import MemoryLog

WALL_MS = 1_700_000_000_000
GROUP = "connect"


class LocalWorkers:
    """A double of the connection to the process of the workers' group; its logs are in memory."""

    def __init__(self) -> None:
        self.group = Group(GROUP)
        self.messages: list[object] = []
        """What nodes have sent."""
        self.now_ms = 0
        self._offsets = MemoryLog()
        ledger = OffsetLedger(self._offsets)
        settings = GroupSettings(max_delay_ms=0)
        self.shard = GroupShard(
            self.group,
            WORKERS,
            settings,
            ledger,
            0,
            CoordinatorProcess(7, lambda: "made-here"),
        )

    async def ask(
        self,
        call: ConnectCall | NodeCall | ToolCall | AlterGroupConfigs,
        on_hold: OnHold = ignore_hold,
    ) -> ConnectReply | NodeReply | HostReply:
        """Wait for and return the reply to a call."""
        del on_hold
        if isinstance(call, ToolCall):
            return answer_tool(self.shard, call)
        waiting = asyncio.get_running_loop().create_future()
        if isinstance(call, AlterGroupConfigs):
            self.take(call.command(), waiting)
            reply = await waiting
            return AlterGroupConfigsReply(reply.error, reply.message)
        if isinstance(call, NodeCall):
            self.messages.append(call.message)
            is_command = isinstance(call.message, RequestedCommand)
            self.take(call.message.command if is_command else call.message, waiting)
            return NodeReply(await waiting, 0, self.group.end, 0)
        self.take(call.request, waiting)
        return ConnectReply(reply_to_member(await waiting))

    def send(self, call: NodeCall, handler: ReplyHandler) -> int:
        """Send a call whose reply goes to `handler`."""
        asking = asyncio.ensure_future(self.ask(call))
        asking.add_done_callback(lambda answered: handler.answer(answered.result()))
        return 0

    def cancel(self, number: int) -> None:
        """Do nothing: an answer comes at once."""

    def take(self, request: GroupRequest, sender: "asyncio.Future[Any] | None" = None) -> None:
        """Handle a request, and deliver replies."""
        self.shard.submit(request, sender, self._now)
        for each in drain(self.shard, self, self._now):
            if each.to is not None and not each.to.done():
                each.to.set_result(each.reply)

    def configure(self, connector: str) -> None:
        """Create a connector."""
        self.take(PutConnector(GROUP, connector, {}))

    @property
    def _now(self) -> Now:
        return Now(WALL_MS + self.now_ms, self.now_ms)

    def append_offsets(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the offset log."""
        self._offsets.append(entries, now.wall_ms)

    def append(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the control log."""

    def close(self) -> None:
        """Do nothing: there is no connection."""
