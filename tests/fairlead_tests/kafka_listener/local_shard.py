"""A shard in the same event loop, with a virtual clock."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from fairlead.actors.group.group_shard import CoordinatorProcess
from fairlead.actors.group.host import drain
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import ConnectReply, EndHold, HostCall
from fairlead.actors.shards.hosting import ConnectCaller, HostedGroups
from fairlead.actors.timing import Now
from fairlead.actors.transport.ports import HostPort
from fairlead.events.log.frame import NewEntry
from fairlead.runtime.kafka.client.reply_handler import (
    CallInFlight,
    OnHold,
    RepeatedCall,
    ReplyHandler,
    ignore_hold,
)
from fairlead_tests.consumer.driver import MemoryLog
from fairlead_tests.shards.driver import AT_ONCE, WALL_MS, AnsweringAtOnce


class LocalShard:
    """A double of the connection to a shard's process; nothing is written."""

    def __init__(
        self, kind: type[HostedGroups] = AnsweringAtOnce, settings: GroupSettings = AT_ONCE
    ) -> None:
        ids = (f"u{number}" for number in count(1))
        self._offsets = MemoryLog()
        self.groups = kind(
            (),
            self._offsets,
            settings,
            CoordinatorProcess(1, lambda: next(ids)),
            Now(WALL_MS, 0),
        )
        self.now_ms = 0
        self.epoch = 1
        self.owner: HostPort | None = None
        """The listener of the node that has the shard; None: this one."""
        self.others: dict[str, HostPort] = {}
        """The listeners of other nodes, by name."""
        self.calls = 0
        """The number of calls so far."""
        self._handlers: dict[int, ReplyHandler] = {}
        self._last_replies: dict[int, Any] = {}
        """The last replies to repeated calls, by number."""
        self._next_error: Error | None = None
        """The error of the next call, if it is to fail."""

    @property
    def now(self) -> Now:
        """The current time."""
        return Now(WALL_MS + self.now_ms, self.now_ms)

    async def ask(self, call: HostCall, on_hold: OnHold = ignore_hold) -> Any:
        """Return the reply to a call."""
        pending = CallInFlight(asyncio.get_running_loop().create_future(), on_hold)
        number = self.send(call, pending)
        try:
            return await pending.answered
        finally:
            self.cancel(number)

    def send(self, call: HostCall, handler: ReplyHandler) -> int:
        """Queue a call for a later step of the loop; return its number."""
        self.calls += 1
        number = self.calls
        self._handlers[number] = handler
        asyncio.get_running_loop().call_soon(self._decide, replace(call, number=number))
        return number

    def repeat(self, kept: RepeatedCall, handler: ReplyHandler) -> None:
        """Queue a repeated call; an unchanged reply is not delivered again."""
        self.calls += 1
        if not kept.stream_number:
            kept.number, kept.stream_number = self.calls, 1
            self._last_replies[kept.number] = None
        self._handlers[kept.number] = handler
        call: Any = replace(kept.call, number=kept.number)  # a shard gets no others
        asyncio.get_running_loop().call_soon(self._decide, call)

    def drop(self, kept: RepeatedCall) -> None:
        """Drop the reply to a call."""
        self.cancel(kept.number)
        self._last_replies.pop(kept.number, None)
        kept.stream_number = 0

    def cancel(self, number: int) -> None:
        """Drop the reply to a call."""
        self._handlers.pop(number, None)

    def lose_next(self, error: Error) -> None:
        """Lose the next call."""
        self._next_error = error

    def _decide(self, call: HostCall) -> None:
        error, self._next_error = self._next_error, None
        if error is not None:
            self._handlers.pop(call.number).fail(error)
            return
        self._take(call)
        if (handler := self._handlers.get(call.number)) is not None:
            group_id = getattr(call, "group_id", "")
            handler.hold(lambda: self._take(EndHold(group_id, call.number)))

    def _take(self, call: HostCall) -> None:
        self.groups.submit(call, 1, self.now)
        self._deliver()

    def pass_to(self, at_ms: int) -> None:
        """Advance the clock, running all timers meanwhile."""
        while (tick_ms := self.groups.next_tick_ms(self.now)) <= at_ms:
            self.now_ms = max(self.now_ms, tick_ms)
            self.groups.run_timers(self.now)
            self._deliver()
        self.now_ms = max(self.now_ms, at_ms)

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def append_offsets(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the offset log."""
        self._offsets.append(entries, now.wall_ms)

    def append(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the control log."""

    def _deliver(self) -> None:
        for each in drain(self.groups, self, self.now):
            reply: Any = each.reply
            if isinstance(each.to, ConnectCaller):
                reply = ConnectReply(reply, each.to.number)
            handler = self._handlers.pop(reply.number, None)
            if handler is not None and self._last_replies.get(reply.number) == reply:
                handler.repeat_answer()
            elif handler is not None:
                if reply.number in self._last_replies:
                    self._last_replies[reply.number] = reply
                handler.answer(reply)
        for caller in self.groups.take_given_up():
            if (handler := self._handlers.pop(caller.number, None)) is not None:
                handler.answer(ConnectReply(None, caller.number))
