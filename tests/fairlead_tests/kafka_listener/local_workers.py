"""A workers' group in the same event loop."""

import asyncio
from collections.abc import Sequence
from typing import Any

from fairlead.actors.group.group_shard import CoordinatorProcess, GroupShard
from fairlead.actors.group.host import drain
from fairlead.actors.group.kind import WORKERS
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import GroupRequest
from fairlead.actors.messages.groups import ConnectCall, ConnectReply, HostReply
from fairlead.actors.messages.orders import PutConnector
from fairlead.actors.shards.describe import ReadCall, answer_tool
from fairlead.actors.timing import Now
from fairlead.events.group import Group
from fairlead.events.log.frame import NewEntry
from fairlead.runtime.kafka.client.reply_handler import OnHold, ignore_hold
from fairlead_tests.consumer.driver import MemoryLog

WALL_MS = 1_700_000_000_000
GROUP = "connect"


class LocalWorkers:
    """A double of the connection to the process of the workers' group; nothing is written."""

    def __init__(self) -> None:
        self.group = Group(GROUP)
        self.now_ms = 0
        ledger = OffsetLedger(MemoryLog())
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
        self, call: ConnectCall | ReadCall, on_hold: OnHold = ignore_hold
    ) -> ConnectReply | HostReply:
        """Wait for and return the reply to a call."""
        del on_hold
        if isinstance(call, ReadCall):
            return answer_tool(self.shard, call)
        waiting = asyncio.get_running_loop().create_future()
        self.take(call.request, waiting)
        return ConnectReply(await waiting)

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

    def append(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the control log."""

    def close(self) -> None:
        """Do nothing: there is no connection."""
