"""A line to groups that live in the same event loop, under a clock that the test sets."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from fairlead.actors.group.shard import Now, drain
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import EndHold, HostCall
from fairlead.actors.shards.hosting import HostedGroups
from fairlead.events.log.frame import NewEntry
from fairlead.runtime.kafka.client.reply_taker import Asker, KeptCall, ReplyTaker, Wait, no_wait
from fairlead_tests.consumer.driver import MemoryLog
from fairlead_tests.shards.driver import AT_ONCE, WALL_MS, AnsweringAtOnce


class LocalLine:
    """Stands where the lines to a shard's process do; nothing is written down."""

    def __init__(self, kind: type[HostedGroups] = AnsweringAtOnce) -> None:
        ids = (f"u{number}" for number in count(1))
        self._offsets = MemoryLog()
        self.groups = kind(
            (),
            self._offsets,
            AT_ONCE,
            1,
            Now(WALL_MS, 0),
            lambda: next(ids),
        )
        self.now_ms = 0
        self.epoch = 1
        self.calls = 0
        """How many calls have come."""
        self._callers: dict[int, ReplyTaker] = {}
        self._told: dict[int, Any] = {}
        """What was answered last to calls that are kept, by number."""
        self._lost: Error | None = None
        """What becomes of the next call, if it is lost."""

    @property
    def now(self) -> Now:
        """This moment."""
        return Now(WALL_MS + self.now_ms, self.now_ms)

    async def ask(self, call: HostCall, wait: Wait = no_wait) -> Any:
        """Return the reply to a call."""
        asker = Asker(asyncio.get_running_loop().create_future(), wait)
        number = self.send(call, asker)
        try:
            return await asker.answered
        finally:
            self.forget(number)

    def send(self, call: HostCall, caller: ReplyTaker) -> int:
        """Have a call decided, a moment later; return its number."""
        self.calls += 1
        number = self.calls
        self._callers[number] = caller
        asyncio.get_running_loop().call_soon(self._decide, replace(call, number=number))
        return number

    def repeat(self, kept: KeptCall, caller: ReplyTaker) -> None:
        """Have a call decided as any other; the answer of before is not said again."""
        self.calls += 1
        if not kept.life:
            kept.number, kept.life = self.calls, 1
            self._told[kept.number] = None
        self._callers[kept.number] = caller
        call: Any = replace(kept.call, number=kept.number)  # a line to a shard has no others
        asyncio.get_running_loop().call_soon(self._decide, call)

    def drop(self, kept: KeptCall) -> None:
        """Have nobody wait for its answer any more."""
        self.forget(kept.number)
        self._told.pop(kept.number, None)
        kept.life = 0

    def forget(self, number: int) -> None:
        """Have nobody wait for an answer any more."""
        self._callers.pop(number, None)

    def lose_next(self, error: Error) -> None:
        """Have the next call lost."""
        self._lost = error

    def _decide(self, call: HostCall) -> None:
        lost, self._lost = self._lost, None
        if lost is not None:
            self._callers.pop(call.number).lose(lost)
            return
        self._take(call)
        if (caller := self._callers.get(call.number)) is not None:
            group_id = getattr(call, "group_id", "")
            caller.let_wait(lambda: self._take(EndHold(group_id, call.number)))

    def _take(self, call: HostCall) -> None:
        self.groups.take(call, 1, self.now)
        self._say()

    def pass_to(self, at_ms: int) -> None:
        """Let time pass, as often as something is due meanwhile."""
        while (tick_ms := self.groups.next_tick_ms(self.now)) <= at_ms:
            self.now_ms = max(self.now_ms, tick_ms)
            self.groups.pass_time(self.now)
            self._say()
        self.now_ms = max(self.now_ms, at_ms)

    def close(self) -> None:
        """There is nothing to let go of."""

    def append_offsets(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the offset log."""
        self._offsets.append(entries, now.wall_ms)

    def append(self, entries: Sequence[NewEntry], now: Now) -> None:
        """Append to the control log."""

    def _say(self) -> None:
        for each in drain(self.groups, self, self.now):
            reply: Any = each.reply
            caller = self._callers.pop(reply.number, None)
            if caller is not None and self._told.get(reply.number) == reply:
                caller.answer_again()
            elif caller is not None:
                if reply.number in self._told:
                    self._told[reply.number] = reply
                caller.answer(reply)
